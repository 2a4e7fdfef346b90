"""Similarity of heads: the Jensen–Shannon divergence between their rows (Clark 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.lens.heads import Head
from manyheads.lens.roles.head_counts import for_each_map, kind_of
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats
from manyheads.model import Transformer

SAMPLE = 40  # texts; all maps of one text are in memory at once


@dataclass(frozen=True, eq=False)
class Similarity:
    """The pairwise distances of the heads of one kind of attention: 0 identical, 1 disjoint."""

    kind: str
    heads: tuple[str, ...]
    distances: Floats  # heads × heads, the mean over rows, in bits
    n_texts: int


def js_divergence(maps: Floats) -> Floats:
    """Return the mean Jensen–Shannon divergence, in bits, between the rows of each pair of maps N × Q × K."""
    entropies = _entropy(maps)
    distances = np.zeros((len(maps), len(maps)))
    for number, attention_map in enumerate(maps):
        divergences = _entropy((maps[number:] + attention_map) / 2) - (entropies[number:] + entropies[number]) / 2
        distances[number, number:] = distances[number:, number] = divergences.mean(-1).clip(min=0)
    return distances


def _entropy(maps: Floats) -> Floats:
    logs = np.log2(maps, out=np.zeros_like(maps), where=maps > 0)
    return np.asarray(-(maps * logs).sum(-1))


def compare_heads(model: Transformer, encoded_examples: Sequence[EncodedExample]) -> list[Similarity]:
    """Return the distances between the heads of each kind of attention, over the first `SAMPLE` texts."""
    encoded_examples = encoded_examples[:SAMPLE]
    heads: dict[str, list[str]] = {}
    for attention in model.attentions():
        names = [str(Head(attention.name, number)) for number in range(attention.heads.n_heads)]
        heads.setdefault(kind_of(attention.name), []).extend(names)
    totals: dict[str, Floats] = {}
    for encoded in encoded_examples:
        for kind, maps in _maps_by_kind(model, encoded).items():
            totals[kind] = totals.get(kind, 0.0) + js_divergence(maps) / len(encoded_examples)
    return [Similarity(kind, tuple(heads[kind]), totals[kind], len(encoded_examples)) for kind in totals]


def _maps_by_kind(model: Transformer, encoded: EncodedExample) -> dict[str, Floats]:
    maps: dict[str, list[Floats]] = {}

    def keep(_: int, name: str, weights: Floats, norms: Floats) -> None:
        maps.setdefault(kind_of(name), []).append(weights)

    for_each_map(model, [encoded], keep)
    return {kind: np.concatenate(own) for kind, own in maps.items()}
