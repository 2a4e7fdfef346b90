"""`HeadCounts`: the counts of every attention statistic, of each head at each text.

The model reads the texts in batches of similar length. A tap passes on the maps of one attention at a time, so no map
is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data import pad
from manyheads.lens.heads import Head
from manyheads.lens.roles.measures import (
    ALIGNMENT_VARIANTS,
    OFFSETS,
    Counts,
    aligned_maps,
    count_alignment,
    count_cross,
    count_relations,
    count_self,
    diagonal_map,
    offset_maps,
    relation_words,
    uniform_map,
)
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats
from manyheads.model import Transformer, evaluating
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.tap import Tap
from manyheads.tasks import Progress
from manyheads.tasks.model_inputs import batches_by_length
from manyheads.text.tokens.tokenizer import PAD

MapCallback = Callable[[int, str, Floats, Floats], None]  # (number of the text, name of the attention, weights, norms)
BASELINES = ("uniform", *(f"offset{offset:+d}" for offset in OFFSETS), "diagonal")


@dataclass(frozen=True, eq=False)
class HeadCounts:
    """The counts of every statistic: of each attention's heads, and of the baselines of each kind of attention."""

    n_texts: int
    names: Mapping[str, tuple[str, ...]]  # of the statistics, by kind of attention
    counts: Mapping[str, Floats]  # by attention: texts × heads × statistics × 2
    baselines: Mapping[str, Floats]  # by kind: texts × baselines × statistics × 2

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order of a forward pass."""
        return [Head(name, number) for name, counts in self.counts.items() for number in range(counts.shape[1])]


def kind_of(attention: str) -> str:
    """Return the kind of an attention: `encoder.self` for `encoder.0.self`. Heads of one kind are comparable."""
    stack, _, use = attention.split(".")
    return f"{stack}.{use}"


def collect_counts(
    model: Transformer, encoded_examples: Sequence[EncodedExample], progress: Progress = lambda done: None
) -> HeadCounts:
    """Count every statistic of every head of a model at these texts; each text has one map per attention to count."""
    counted: dict[str, list[Counts]] = {
        attention.name: [{} for _ in encoded_examples] for attention in model.attentions()
    }

    def count(number: int, name: str, weights: Floats, norms: Floats) -> None:
        counted[name][number] = count_heads(kind_of(name), weights, norms, encoded_examples[number])
        progress(1)

    for_each_map(model, encoded_examples, count)
    return tabulate(counted, encoded_examples)


def tabulate(counted: Mapping[str, Sequence[Counts]], encoded_examples: Sequence[EncodedExample]) -> HeadCounts:
    """Combine the counts of each attention at each text with the baselines at the same texts."""
    baselines = {
        kind: [count_baselines(kind, encoded) for encoded in encoded_examples]
        for kind in dict.fromkeys(map(kind_of, counted))
    }
    names = {kind: tuple(dict.fromkeys(name for counts in rows for name in counts)) for kind, rows in baselines.items()}
    n_heads = {name: len(rows[0]["confidence"][0]) for name, rows in counted.items()}
    return HeadCounts(
        n_texts=len(encoded_examples),
        names=names,
        counts={name: _table(rows, names[kind_of(name)], n_heads[name]) for name, rows in counted.items()},
        baselines={kind: _table(rows, names[kind], len(BASELINES)) for kind, rows in baselines.items()},
    )


def count_heads(kind: str, weights: Floats, norms: Floats, encoded: EncodedExample) -> Counts:
    """Count the statistics of the heads of one attention at one text."""
    if kind == "decoder.cross":
        source, target = encoded.sides
        counts = count_cross(weights, target, source)
        if encoded.example.has_gold_alignment:
            counts |= count_alignment(aligned_maps(weights, norms, encoded), encoded)
        return counts
    is_causal = kind == "decoder.self"
    positions = encoded.sides[-1 if is_causal else 0]
    counts = count_self(weights, positions, is_causal=is_causal)
    if positions.relations:
        counts |= count_relations(relation_words(weights, positions), positions, is_causal=is_causal)
    return counts


def count_baselines(kind: str, encoded: EncodedExample) -> Counts:
    """Count the same statistics of the baselines: uniform attention, fixed offsets, and the diagonal.

    For relations and alignments the offsets are in words, as in Clark 2019 and Voita 2019.
    """
    if kind == "decoder.cross":
        source, target = encoded.sides
        counts = count_cross(_baselines(len(target.ids), len(source.ids), is_causal=False), target, source)
        if encoded.example.has_gold_alignment:
            n_target, n_source = target.shares.shape[1], source.shares.shape[1]
            maps = _baselines(n_target, n_source, is_causal=False)
            words = np.concatenate([maps, np.zeros_like(maps[..., :1])], axis=-1)
            counts |= count_alignment(dict.fromkeys(ALIGNMENT_VARIANTS, words), encoded)
        return counts
    is_causal = kind == "decoder.self"
    positions = encoded.sides[-1 if is_causal else 0]
    n_positions, n_words = positions.shares.shape
    counts = count_self(_baselines(n_positions, n_positions, is_causal=is_causal), positions, is_causal=is_causal)
    if positions.relations:
        counts |= count_relations(_baselines(n_words, n_words, is_causal=is_causal), positions, is_causal=is_causal)
    return counts


def _baselines(n_queries: int, n_keys: int, *, is_causal: bool) -> Floats:
    uniform = uniform_map(n_queries, n_keys, is_causal=is_causal)
    offsets = offset_maps(n_queries, n_keys, OFFSETS, is_causal=is_causal)
    diagonal = offsets[OFFSETS.index(0)][None] if is_causal else diagonal_map(n_queries, n_keys)
    return np.concatenate([uniform, offsets, diagonal])


def _table(rows: Sequence[Counts], names: Sequence[str], n_heads: int) -> Floats:
    table = np.zeros((len(rows), n_heads, len(names), 2))
    for row, counts in zip(table, rows, strict=True):
        for column, name in enumerate(names):
            if name in counts:
                row[:, column, 0], row[:, column, 1] = counts[name]
    return table


def for_each_map(model: Transformer, encoded_examples: Sequence[EncodedExample], callback: MapCallback) -> None:
    """Call `callback` with the maps of every text and attention, H × Q × K without padding."""
    with evaluating(model):
        for rows in batches_by_length([sum(len(side.ids) for side in encoded.sides) for encoded in encoded_examples]):
            _read_batch(model, [encoded_examples[row] for row in rows], rows, callback)


def _read_batch(
    model: Transformer, batch: Sequence[EncodedExample], numbers: Sequence[int], callback: MapCallback
) -> None:
    def receive(attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        for row, number in enumerate(numbers):
            n_queries, n_keys = map_shape(attention.name, batch[row])
            maps = (padded[row, :, :n_queries, :n_keys].cpu().double().numpy() for padded in (weights, norms))
            callback(number, attention.name, *maps)

    run_batch(model, batch, MapTap(model, receive))


def map_shape(attention: str, encoded: EncodedExample) -> tuple[int, int]:
    """Return the number of queries and keys of an attention at one text."""
    lengths = [len(side.ids) for side in encoded.sides]
    n_queries = lengths[-1] if attention.startswith("decoder") else lengths[0]
    return n_queries, lengths[0] if attention.endswith(".cross") else n_queries


def run_batch(model: Transformer, batch: Sequence[EncodedExample], tap: Tap) -> None:
    """Run one forward pass over several texts, padded at the end."""
    sides = [
        torch.from_numpy(pad([encoded.sides[side].ids for encoded in batch])).to(model.device)
        for side in range(len(batch[0].sides))
    ]
    source, target = (sides[0], None) if model.settings.has_encoder else (None, sides[0])
    target = sides[1] if len(sides) > 1 else target
    model.hidden(
        source,
        target,
        source_is_real=None if source is None else source != PAD,
        target_is_real=None if target is None else target != PAD,
        tap=tap,
    )


class MapTap(Tap):
    """Calls back with the weights and norms ‖α f(x)‖ of each attention as they are computed."""

    def __init__(self, model: Transformer, callback: Callable[[MultiHeadAttention, Tensor, Tensor], None]) -> None:
        super().__init__()
        self.attentions = {attention.name: attention for attention in model.attentions()}
        self.callback = callback
        self.value_norms: Tensor | None = None

    def receive(self, name: str, value: Tensor) -> None:
        """Receive a named value; `v` comes before `weights`, and the others are ignored."""
        attention, _, what = name.rpartition(".")
        if what == "v":
            self.value_norms = value_norms(self.attentions[attention], value)
        elif what == "weights" and self.value_norms is not None:
            self.callback(self.attentions[attention], value, value * self.value_norms[:, :, None])


def value_norms(attention: MultiHeadAttention, v: Tensor) -> Tensor:
    """Return ‖v_j W_i^O‖ of every head and key, B × H × K."""
    if not isinstance(attention.output, nn.Linear):
        return v.norm(dim=-1)
    matrices = attention.output.weight.T.unflatten(0, (v.size(1), v.size(-1)))  # H E W
    gram = matrices @ matrices.mT
    return ((v @ gram) * v).sum(-1).clamp(min=0).sqrt()
