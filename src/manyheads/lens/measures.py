"""What is counted in the attention of heads over one text: pure functions over weights.

Every statistic is a ratio of two sums, so each function gives, by the statistic's name, (what each head adds, out of what).
A sample's statistic is the ratio of the sums over its texts, and drawing the texts again gives its interval. The maps are
H × Q × K; baselines (attention spread evenly, or fixed on one offset) are maps too, counted by the same functions.

confidence      mean of the largest weight, BOS and EOS excluded (Voita 2019)
entropy         mean entropy of a row, in nats (Clark 2019); `spread` is its share of that of an even row
distance        mean of Σ weight × (key's place − query's place), self-attention only
near            weight within two positions
offset±n        how often the largest weight is n positions from the query (Voita 2019)
weight±1        mean weight of the neighbour before or after (Elhage 2021)
begin, end,     mean weight that BOS, EOS, or punctuation receives (Clark 2019)
punctuation
rare            how often the largest weight is on one of the text's two rarest tokens (Voita 2019)
duplicate       mean weight of the same token elsewhere, of positions that have one (Wang 2023)
induction       mean weight of what followed the same token earlier, of positions that have one (Olsson 2022)
kind>, kind<    how often the largest weight of a word, itself excluded, is on the word it depends on by this relation
                (>), or on one that depends on it (<) (Clark 2019, Voita 2019)
align …         1 − AER of the links from each target word to its largest weight (Och 2003); see lens/alignment
"""

from collections.abc import Sequence

import numpy as np

from manyheads.lens.alignment import count_links
from manyheads.lens.encoded_examples import Bools, EncodedExample, Floats, TokenPositions, pool_to_words
from manyheads.text.tokenizer import BOS, EOS

Counts = dict[str, tuple[Floats, Floats | float]]

OFFSETS = (-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5)
_NEAR = 2  # positions


def uniform_map(n_queries: int, n_keys: int, *, is_causal: bool) -> Floats:
    """A head that looks everywhere alike."""
    visible = np.tril(np.ones((n_queries, n_keys))) if is_causal else np.ones((n_queries, n_keys))
    return np.asarray(visible / visible.sum(-1, keepdims=True))[None]


def offset_maps(n_queries: int, n_keys: int, offsets: Sequence[int], *, is_causal: bool) -> Floats:
    """Heads that always look so many positions away; at the edge of what they may see, at the edge."""
    positions = np.arange(n_queries)
    last = np.minimum(positions, n_keys - 1) if is_causal else np.full(n_queries, n_keys - 1)
    maps = np.zeros((len(offsets), n_queries, n_keys))
    for number, offset in enumerate(offsets):
        maps[number, positions, (positions + offset).clip(0, last)] = 1.0
    return maps


def diagonal_map(n_queries: int, n_keys: int) -> Floats:
    """A head that looks as far along the other text as it stands in its own."""
    positions = np.arange(n_queries)
    aims = ((positions + 0.5) * n_keys / max(n_queries, 1)).astype(np.int64)
    maps = np.zeros((1, n_queries, n_keys))
    maps[0, positions, aims.clip(0, n_keys - 1)] = 1.0
    return maps


def count_self(weights: Floats, positions: TokenPositions, *, is_causal: bool) -> Counts:
    """What self-attention over one text adds to every statistic of tokens."""
    rows = ~positions.is_special
    distances = np.arange(len(positions.ids))[None] - np.arange(len(positions.ids))[:, None]
    counts = _count_rows(weights, rows, positions, is_causal=is_causal)
    n_rows = float(rows.sum())
    counts["distance"] = ((weights * distances)[:, rows].sum((1, 2)), n_rows)
    counts["near"] = ((weights * (np.abs(distances) <= _NEAR))[:, rows].sum((1, 2)), n_rows)
    counts |= _count_offsets(weights, rows, distances)
    same = positions.ids[None] == positions.ids[:, None]
    earlier = same & (distances < 0)
    counts["duplicate"] = _mass(weights, earlier if is_causal else same & (distances != 0), rows)
    if is_causal:
        after = np.zeros_like(earlier)
        after[:, 1:] = earlier[:, :-1]
        counts["induction"] = _mass(weights, after & (distances < 0), rows)
    return counts


def count_cross(weights: Floats, queries: TokenPositions, keys: TokenPositions) -> Counts:
    """What cross-attention from one text to another adds to every statistic of tokens."""
    rows = ~queries.is_special
    distances = np.arange(len(keys.ids))[None] - np.arange(len(queries.ids))[:, None]
    return _count_rows(weights, rows, keys, is_causal=False) | _count_offsets(weights, rows, distances)


def _count_rows(weights: Floats, rows: Bools, keys: TokenPositions, *, is_causal: bool) -> Counts:
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
        ("bos", keys.ids == BOS),
        ("eos", keys.ids == EOS),
        ("punctuation", keys.is_punctuation),
    ):
        if is_there.any():
            counts[name] = (seen[..., is_there].sum((1, 2)), n_rows)
    return counts


def _count_offsets(weights: Floats, rows: Bools, distances: np.ndarray) -> Counts:
    """At each offset, of the positions that have such a neighbour."""
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
    """The weight on wanted positions, of the rows that have any."""
    able = rows & wanted.any(1)
    return (weights * wanted)[:, able].sum((1, 2)), float(able.sum())


def count_relations(words: Floats, positions: TokenPositions, *, is_causal: bool) -> Counts:
    """How often the largest weight of a word is on the one it is related to; `words` are maps between words.

    A word that several others depend on is right with any of them. Under a causal mask only what stands earlier can
    be found, and only that is asked for.
    """
    wanted: dict[str, dict[int, set[int]]] = {}
    for relation in positions.relations:
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


def count_alignment(maps: dict[str, Floats], encoded: EncodedExample) -> Counts:
    """1 − AER of each of several maps from target words to source words."""
    sure, possible = encoded.example.sure, encoded.example.possible
    if sure is None or possible is None:
        return {}
    return {name: count_links(words, sure, possible) for name, words in maps.items()}


def relation_words(weights: Floats, positions: TokenPositions) -> Floats:
    """A text's attention to itself, between its words."""
    return pool_to_words(weights, positions.shares, positions.shares)
