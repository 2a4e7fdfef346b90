"""Statistics of attention maps over one text: pure functions of attention weights.

Every statistic is a ratio of two sums. Each function returns, by the name of the statistic, (numerator of each head,
denominator). The statistic of a sample is the ratio of the sums over its texts, so resampling the texts gives its
interval. Maps are H × Q × K. Baselines (uniform attention, a fixed offset, the diagonal) are maps too and go through
the same functions.

confidence      mean of the largest weight, without BOS and EOS (Voita 2019)
entropy         mean entropy of a row, in nats (Clark 2019); `spread` is its ratio to the entropy of a uniform row
distance        mean of Σ weight × (key position − query position), self-attention only
near            weight within two positions
offset±n        how often the largest weight is n positions from the query (Voita 2019)
weight±1        mean weight on the previous or the next position (Elhage 2021)
bos, eos,       mean weight on BOS, on EOS, on punctuation (Clark 2019)
punctuation
rare            how often the largest weight is on one of the two rarest tokens of the text (Voita 2019)
duplicate       mean weight on other occurrences of the same token, over positions that have one (Wang 2023)
induction       mean weight on the token after an earlier occurrence, over positions that have one (Olsson 2022)
kind>, kind<    how often the largest weight of a word, itself excluded, is on the word it depends on by this relation
                (>), or on a word that depends on it (<) (Clark 2019, Voita 2019)
align …         1 − AER of the links from each target word to its largest weight (Och 2003)
… @±n           the same of the word n words from each case: of another word of the same text, to the same words. What
                a neighbor does as often is not done for the sake of the relation.

Word alignment has four variants. A row of a decoder's cross-attention belongs to a position that reads one token and
writes the next; which of the two its weights align differs from layer to layer (Chen 2020): `read` and `written`. A
large weight on a short vector contributes little, so besides `weights` there are `norms`, ‖α f(x)‖ (Kobayashi 2020).
"""

from collections.abc import Mapping, Sequence, Set

import numpy as np

from manyheads.lens.traces.encoded_examples import Bools, EncodedExample, Floats, TokenPositions, pool_to_words
from manyheads.text.reading.gold_alignments import Link
from manyheads.text.tokens.tokenizer import BOS, EOS

Counts = dict[str, tuple[Floats, Floats | float]]

OFFSETS = (-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5)
ALIGNMENT_VARIANTS = tuple(f"align {kind} {token}" for kind in ("weights", "norms") for token in ("read", "written"))
_NEAR = 2  # positions
NEIGHBORS = (-2, -1, 1, 2)  # words from a word with a relation


def uniform_map(n_queries: int, n_keys: int, *, is_causal: bool) -> Floats:
    """Return the map of a head that attends to every visible key equally."""
    visible = np.tril(np.ones((n_queries, n_keys))) if is_causal else np.ones((n_queries, n_keys))
    return np.asarray(visible / visible.sum(-1, keepdims=True))[None]


def offset_maps(n_queries: int, n_keys: int, offsets: Sequence[int], *, is_causal: bool) -> Floats:
    """Return the maps of heads that attend at fixed offsets, clipped to the visible positions."""
    positions = np.arange(n_queries)
    last = np.minimum(positions, n_keys - 1) if is_causal else np.full(n_queries, n_keys - 1)
    maps = np.zeros((len(offsets), n_queries, n_keys))
    for number, offset in enumerate(offsets):
        maps[number, positions, (positions + offset).clip(0, last)] = 1.0
    return maps


def diagonal_map(n_queries: int, n_keys: int) -> Floats:
    """Return the map of a head that attends to the same relative position in the other text."""
    positions = np.arange(n_queries)
    keys = ((positions + 0.5) * n_keys / max(n_queries, 1)).astype(np.int64)
    maps = np.zeros((1, n_queries, n_keys))
    maps[0, positions, keys.clip(0, n_keys - 1)] = 1.0
    return maps


def count_self(weights: Floats, positions: TokenPositions, *, is_causal: bool) -> Counts:
    """Count the token statistics of self-attention over one text."""
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
    """Count the token statistics of cross-attention from one text to another."""
    rows = ~queries.is_special
    distances = np.arange(len(keys.ids))[None] - np.arange(len(queries.ids))[:, None]
    return _count_rows(weights, rows, keys, is_causal=False) | _count_offsets(weights, rows, distances)


def _count_rows(weights: Floats, rows: Bools, keys: TokenPositions, *, is_causal: bool) -> Counts:
    counted, n_rows = weights[:, rows], float(rows.sum())
    on_text = counted * ~keys.is_special
    logs = np.log(counted, out=np.zeros_like(counted), where=counted > 0)
    entropy = -(counted * logs).sum(-1)
    n_visible = np.flatnonzero(rows) + 1.0 if is_causal else np.full(int(rows.sum()), float(len(keys.ids)))
    has_choice = n_visible > 1
    largest_entropy = np.log(n_visible[has_choice])
    counts: Counts = {
        "confidence": (on_text.max(-1).sum(-1), n_rows),
        "entropy": (entropy.sum(-1), n_rows),
        "spread": ((entropy[:, has_choice] / largest_entropy).sum(-1), float(has_choice.sum())),
        "rare": (keys.is_rare[on_text.argmax(-1)].sum(-1).astype(np.float64), n_rows),
    }
    for name, selected in (
        ("bos", keys.ids == BOS),
        ("eos", keys.ids == EOS),
        ("punctuation", keys.is_punctuation),
    ):
        if selected.any():
            counts[name] = (counted[..., selected].sum((1, 2)), n_rows)
    return counts


def _count_offsets(weights: Floats, rows: Bools, distances: np.ndarray) -> Counts:
    """Count each offset over the rows that have a key at this offset."""
    largest = weights.argmax(-1)
    offsets = np.take_along_axis(np.broadcast_to(distances, weights.shape), largest[..., None], -1)[..., 0]
    counts: Counts = {}
    for offset in OFFSETS:
        at_offset = distances == offset
        counted = rows & at_offset.any(1)
        if counted.any():
            hits = (offsets[:, counted] == offset).sum(-1).astype(np.float64)
            counts[f"offset{offset:+d}"] = (hits, float(counted.sum()))
        if abs(offset) == 1:
            counts[f"weight{offset:+d}"] = _mass(weights, at_offset, rows)
    return counts


def _mass(weights: Floats, selected: Bools, rows: Bools) -> tuple[Floats, float]:
    """Return the weight on selected pairs, over the rows that have one."""
    counted = rows & selected.any(1)
    return (weights * selected)[:, counted].sum((1, 2)), float(counted.sum())


def count_relations(words: Floats, positions: TokenPositions, *, is_causal: bool) -> Counts:
    """Count how often the largest weight of a word is on a related word; `words` are maps between words.

    A word with several dependents is correct with any of them. Under a causal mask only earlier words count.
    """
    gold: dict[str, dict[int, set[int]]] = {}
    for relation in positions.relations:
        for arrow, start, end in ((">", relation.word, relation.head), ("<", relation.head, relation.word)):
            if start != end and not (is_causal and end > start):
                gold.setdefault(relation.kind + arrow, {}).setdefault(start, set()).add(end)
    others = words.copy()
    diagonal = np.arange(words.shape[1])
    others[:, diagonal, diagonal] = -1.0
    largest = others.argmax(-1)
    counts: Counts = {}
    for name, ends in gold.items():
        counts[name] = _count_hits(largest, list(ends.items()))
        for offset in NEIGHBORS:
            neighbors = _neighbors(ends, offset, words.shape[1], is_causal=is_causal)
            counts[neighbor_name(name, offset)] = _count_hits(largest, neighbors)
    return counts


def _count_hits(largest: np.ndarray, cases: Sequence[tuple[int, Set[int]]]) -> tuple[Floats, float]:
    """Count for each head in how many cases the largest weight of a word is on one of some others."""
    hits = np.zeros(len(largest))
    for start, ends in cases:
        hits += np.isin(largest[:, start], list(ends))
    return hits, float(len(cases))


def _neighbors(
    gold: Mapping[int, Set[int]], offset: int, n_words: int, *, is_causal: bool
) -> list[tuple[int, Set[int]]]:
    """Return for each case the neighbor at an offset, with the words that are correct for the case.

    A neighbor that is one of these words, has the same relation to one of them, or cannot see any, is no case.
    """
    cases: list[tuple[int, Set[int]]] = []
    for start, ends in gold.items():
        word = start + offset
        if not 0 <= word < n_words or word in ends or gold.get(word, set()) & ends:
            continue
        if not is_causal or min(ends) < word:
            cases.append((word, ends))
    return cases


def neighbor_name(statistic: str, offset: int) -> str:
    """Return the name of the same statistic of the neighbors at an offset."""
    return f"{statistic} @{offset:+d}"


def relation_words(weights: Floats, positions: TokenPositions) -> Floats:
    """Pool self-attention between tokens to attention between words."""
    return pool_to_words(weights, positions.shares, positions.shares)


def aligned_maps(weights: Floats, norms: Floats, encoded: EncodedExample) -> dict[str, Floats]:
    """Pool cross-attention to H × target words × (source words + 1), for every alignment variant.

    The last column is the weight on tokens outside any word, such as EOS: a target word with its largest weight there
    has no link. `weights` and `norms` are H × Q × K with a row for each position that the decoder reads.
    """
    source, target = encoded.sides
    outside = (source.shares.sum(1, keepdims=True) == 0).astype(np.float64)
    keys = np.concatenate([source.shares, outside], axis=1)
    return {
        f"align {kind} {token}": pool_to_words(strengths, rows, keys)
        for kind, strengths in (("weights", weights), ("norms", norms))
        for token, rows in (("read", target.shares), ("written", target.next_shares))
    }


def argmax_links(words: Floats) -> list[set[Link]]:
    """Return the links (source word, target word) of each map from `aligned_maps`: the largest of each row."""
    n_words = words.shape[-1] - 1
    largest = words.argmax(-1)
    has_weight = words.sum(-1) > 0
    return [
        {(int(key), row) for row, key in enumerate(keys) if key < n_words and row_has_weight[row]}
        for keys, row_has_weight in zip(largest, has_weight, strict=True)
    ]


def count_links(words: Floats, sure: Set[Link], possible: Set[Link]) -> tuple[Floats, Floats]:
    """Return |A ∩ S| + |A ∩ P| and |A| + |S| of each map; AER is 1 − their ratio (Och 2003)."""
    links = argmax_links(words)
    correct = [len(own & sure) + len(own & possible) for own in links]
    total = [len(own) + len(sure) for own in links]
    return np.array(correct, dtype=np.float64), np.array(total, dtype=np.float64)


def count_alignment(maps: dict[str, Floats], encoded: EncodedExample) -> Counts:
    """Count 1 − AER of each of several maps from target words to source words."""
    sure, possible = encoded.example.sure, encoded.example.possible
    if sure is None or possible is None:
        return {}
    counts: Counts = {}
    for name, words in maps.items():
        counts[name] = count_links(words, sure, possible)
        for offset in NEIGHBORS:
            counts[neighbor_name(name, offset)] = count_links(_shifted(words, offset), sure, possible)
    return counts


def _shifted(words: Floats, offset: int) -> Floats:
    """Give each target word the row of the word at an offset; a word without such a neighbor has no weight."""
    shifted = np.zeros_like(words)
    rows = np.arange(words.shape[1])
    rows = rows[(rows + offset >= 0) & (rows + offset < words.shape[1])]
    shifted[:, rows] = words[:, rows + offset]
    return shifted
