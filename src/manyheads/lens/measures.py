"""What is counted in the attention of heads over one text: pure functions over weights.

Every figure is a ratio of two sums, so each function gives, by the figure's name, (what each head adds, out of what).
A sample's figure is the ratio of the sums over its texts, and drawing the texts again gives its interval. The maps are
H × Q × K; baselines (attention spread evenly, or fixed on one offset) are maps too, counted by the same functions.

confidence      mean of the largest weight, BEGIN and END excluded (Voita 2019)
entropy         mean entropy of a row, in nats (Clark 2019); `spread` is its share of that of an even row
distance        mean of Σ weight × (key's place − query's place), self-attention only
near            weight within two places
offset±n        how often the largest weight is n places from the query (Voita 2019)
weight±1        mean weight of the neighbour before or after (Elhage 2021)
begin, end,     mean weight that BEGIN, END, or punctuation receives (Clark 2019)
punctuation
rare            how often the largest weight is on one of the text's two rarest pieces (Voita 2019)
duplicate       mean weight of the same piece elsewhere, of places that have one (Wang 2023)
induction       mean weight of what followed the same piece earlier, of places that have one (Olsson 2022)
kind>, kind<    how often the largest weight of a word, itself excluded, is on the word it depends on by this relation
                (>), or on one that depends on it (<) (Clark 2019, Voita 2019)
align …         1 − AER of the links from each target word to its largest weight (Och 2003); see lens/alignment
"""

from collections.abc import Sequence

import numpy as np

from manyheads.lens.alignment import count_links
from manyheads.lens.places import Bools, Floats, Places, Scene, to_words
from manyheads.text.tokenizer import BEGIN, END

Counts = dict[str, tuple[Floats, Floats | float]]

OFFSETS = (-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5)
_NEAR = 2  # places


def even_map(n_queries: int, n_keys: int, *, is_causal: bool) -> Floats:
    """A head that looks everywhere alike."""
    visible = np.tril(np.ones((n_queries, n_keys))) if is_causal else np.ones((n_queries, n_keys))
    return np.asarray(visible / visible.sum(-1, keepdims=True))[None]


def offset_maps(n_queries: int, n_keys: int, offsets: Sequence[int], *, is_causal: bool) -> Floats:
    """Heads that always look so many places away; at the edge of what they may see, at the edge."""
    places = np.arange(n_queries)
    last = np.minimum(places, n_keys - 1) if is_causal else np.full(n_queries, n_keys - 1)
    maps = np.zeros((len(offsets), n_queries, n_keys))
    for number, offset in enumerate(offsets):
        maps[number, places, (places + offset).clip(0, last)] = 1.0
    return maps


def diagonal_map(n_queries: int, n_keys: int) -> Floats:
    """A head that looks as far along the other text as it stands in its own."""
    places = np.arange(n_queries)
    aims = ((places + 0.5) * n_keys / max(n_queries, 1)).astype(np.int64)
    maps = np.zeros((1, n_queries, n_keys))
    maps[0, places, aims.clip(0, n_keys - 1)] = 1.0
    return maps


def count_self(weights: Floats, places: Places, *, is_causal: bool) -> Counts:
    """What self-attention over one text adds to every figure of pieces."""
    rows = ~places.is_special
    distances = np.arange(len(places.ids))[None] - np.arange(len(places.ids))[:, None]
    counts = _count_rows(weights, rows, places, is_causal=is_causal)
    n_rows = float(rows.sum())
    counts["distance"] = ((weights * distances)[:, rows].sum((1, 2)), n_rows)
    counts["near"] = ((weights * (np.abs(distances) <= _NEAR))[:, rows].sum((1, 2)), n_rows)
    counts |= _count_offsets(weights, rows, distances)
    same = places.ids[None] == places.ids[:, None]
    earlier = same & (distances < 0)
    counts["duplicate"] = _mass(weights, earlier if is_causal else same & (distances != 0), rows)
    if is_causal:
        after = np.zeros_like(earlier)
        after[:, 1:] = earlier[:, :-1]
        counts["induction"] = _mass(weights, after & (distances < 0), rows)
    return counts


def count_cross(weights: Floats, queries: Places, keys: Places) -> Counts:
    """What cross-attention from one text to another adds to every figure of pieces."""
    rows = ~queries.is_special
    distances = np.arange(len(keys.ids))[None] - np.arange(len(queries.ids))[:, None]
    return _count_rows(weights, rows, keys, is_causal=False) | _count_offsets(weights, rows, distances)


def _count_rows(weights: Floats, rows: Bools, keys: Places, *, is_causal: bool) -> Counts:
    seen, n_rows = weights[:, rows], float(rows.sum())
    of_text = seen * ~keys.is_special
    logs = np.log(seen, out=np.zeros_like(seen), where=seen > 0)
    entropy = -(seen * logs).sum(-1)
    n_visible = np.flatnonzero(rows) + 1.0 if is_causal else np.full(int(rows.sum()), float(len(keys.ids)))
    has_choice = n_visible > 1
    most = np.log(n_visible[has_choice])
    counts: Counts = {
        "confidence": (of_text.max(-1).sum(-1), n_rows),
        "entropy": (entropy.sum(-1), n_rows),
        "spread": ((entropy[:, has_choice] / most).sum(-1), float(has_choice.sum())),
        "rare": (keys.is_rare[of_text.argmax(-1)].sum(-1).astype(np.float64), n_rows),
    }
    for name, is_there in (
        ("begin", keys.ids == BEGIN),
        ("end", keys.ids == END),
        ("punctuation", keys.is_punctuation),
    ):
        if is_there.any():
            counts[name] = (seen[..., is_there].sum((1, 2)), n_rows)
    return counts


def _count_offsets(weights: Floats, rows: Bools, distances: np.ndarray) -> Counts:
    """At each offset, of the places that have such a neighbour."""
    largest = weights.argmax(-1)
    found = np.take_along_axis(np.broadcast_to(distances, weights.shape), largest[..., None], -1)[..., 0]
    counts: Counts = {}
    for offset in OFFSETS:
        is_there = distances == offset
        able = rows & is_there.any(1)
        if able.any():
            counts[f"offset{offset:+d}"] = ((found[:, able] == offset).sum(-1).astype(np.float64), float(able.sum()))
        if abs(offset) == 1:
            counts[f"weight{offset:+d}"] = _mass(weights, is_there, rows)
    return counts


def _mass(weights: Floats, wanted: Bools, rows: Bools) -> tuple[Floats, float]:
    """The weight on wanted places, of the rows that have any."""
    able = rows & wanted.any(1)
    return (weights * wanted)[:, able].sum((1, 2)), float(able.sum())


def count_relations(words: Floats, places: Places, *, is_causal: bool) -> Counts:
    """How often the largest weight of a word is on the one it is related to; `words` are maps between words.

    A word that several others depend on is right with any of them. Under a causal mask only what stands earlier can
    be found, and only that is asked for.
    """
    wanted: dict[str, dict[int, set[int]]] = {}
    for relation in places.relations:
        for name, start, end in ((">", relation.word, relation.head), ("<", relation.head, relation.word)):
            if start != end and not (is_causal and end > start):
                wanted.setdefault(relation.kind + name, {}).setdefault(start, set()).add(end)
    others = words.copy()
    diagonal = np.arange(words.shape[1])
    others[:, diagonal, diagonal] = -1.0
    largest = others.argmax(-1)
    counts: Counts = {}
    for name, ends in wanted.items():
        right = sum(np.isin(largest[:, start], list(aims)).astype(np.float64) for start, aims in ends.items())
        counts[name] = (np.asarray(right), float(len(ends)))
    return counts


def count_alignment(maps: dict[str, Floats], scene: Scene) -> Counts:
    """1 − AER of each of several maps from target words to source words."""
    sure, possible = scene.example.sure, scene.example.possible
    if sure is None or possible is None:
        return {}
    return {name: count_links(words, sure, possible) for name, words in maps.items()}


def relation_words(weights: Floats, places: Places) -> Floats:
    """A text's attention to itself, between its words."""
    return to_words(weights, places.shares, places.shares)
