"""How alike heads are: the Jensen–Shannon divergence of their rows (Clark 2019), over a few texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.lens.encoded_examples import EncodedExample, Floats
from manyheads.lens.head_counts import for_each_map, kind_of
from manyheads.lens.heads import Head
from manyheads.model import Transformer

SAMPLE = 40  # texts: all maps of one text are held at once, so it is a few


@dataclass(frozen=True, eq=False)
class Similarity:
    """The heads of one kind of attention and how far apart they are: 0 alike, 1 nothing in common."""

    kind: str
    heads: tuple[str, ...]
    distances: Floats  # heads × heads, the mean over rows, in bits
    n_texts: int


def js_divergence(maps: Floats) -> Floats:
    """The mean Jensen–Shannon divergence, in bits, between the rows of each two of several maps N × Q × K."""
    own = _entropy(maps)
    distances = np.zeros((len(maps), len(maps)))
    for number, one in enumerate(maps):
        between = _entropy((maps[number:] + one) / 2) - (own[number:] + own[number]) / 2
        distances[number, number:] = distances[number:, number] = between.mean(-1).clip(min=0)
    return distances


def _entropy(maps: Floats) -> Floats:
    logs = np.log2(maps, out=np.zeros_like(maps), where=maps > 0)
    return np.asarray(-(maps * logs).sum(-1))


def compare_heads(model: Transformer, encoded_examples: Sequence[EncodedExample]) -> list[Similarity]:
    """How far apart the heads of each kind of attention are at the first of these texts."""
    encoded_examples = encoded_examples[:SAMPLE]
    totals: dict[str, Floats] = {}
    names: dict[str, list[str]] = {}
    for encoded in encoded_examples:
        maps: dict[str, list[Floats]] = {}
        heads: dict[str, list[str]] = {}

        def keep(
            _: int,
            name: str,
            weights: Floats,
            __: Floats,
            maps: dict[str, list[Floats]] = maps,
            heads: dict[str, list[str]] = heads,
        ) -> None:
            maps.setdefault(kind_of(name), []).append(weights)
            heads.setdefault(kind_of(name), []).extend(str(Head(name, number)) for number in range(len(weights)))

        for_each_map(model, [encoded], keep)
        for kind, own in maps.items():
            distances = js_divergence(np.concatenate(own))
            totals[kind] = totals.get(kind, 0.0) + distances / len(encoded_examples)
            names[kind] = heads[kind]
    return [Similarity(kind, tuple(names[kind]), totals[kind], len(encoded_examples)) for kind in totals]
