"""Watching heads: a model reads a sample, and what each head does at every text is counted and then forgotten.

Attention maps are taken one attention at a time from a tap, over batches of like length; none is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data import pad
from manyheads.lens.alignment import aligned_maps
from manyheads.lens.encoded_examples import EncodedExample, Floats
from manyheads.lens.heads import Head
from manyheads.lens.measures import (
    OFFSETS,
    Counts,
    count_alignment,
    count_cross,
    count_relations,
    count_self,
    diagonal_map,
    offset_maps,
    relation_words,
    uniform_map,
)
from manyheads.model import Transformer, evaluating
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.tap import Tap
from manyheads.tasks.model_inputs import batches_by_length
from manyheads.text.tokenizer import PAD

MapCallback = Callable[[int, str, Floats, Floats], None]  # of a text's number: an attention's name, weights, norms
BASELINES = ("uniform", *(f"offset{offset:+d}" for offset in OFFSETS), "diagonal")


@dataclass(frozen=True, eq=False)
class HeadCounts:
    """The counts of every statistic: of each attention's heads, and of baselines for each kind of attention."""

    n_texts: int
    names: Mapping[str, tuple[str, ...]]  # of the statistics, by kind of attention
    counts: Mapping[str, Floats]  # by attention: texts × heads × statistics × 2
    baselines: Mapping[str, Floats]  # by kind: texts × baselines × statistics × 2

    @property
    def heads(self) -> list[Head]:
        """Every head that was watched, in the model's order."""
        return [Head(name, number) for name, counts in self.counts.items() for number in range(counts.shape[1])]


def kind_of(attention: str) -> str:
    """encoder.self of encoder.0.self: which attentions can be compared."""
    stack, _, use = attention.split(".")
    return f"{stack}.{use}"


def collect_counts(model: Transformer, encoded_examples: Sequence[EncodedExample]) -> HeadCounts:
    """Count what every head of a model does at these texts."""
    found: dict[str, list[Counts]] = {
        attention.name: [{} for _ in encoded_examples] for attention in model.attentions()
    }

    def count(number: int, name: str, weights: Floats, norms: Floats) -> None:
        found[name][number] = count_heads(kind_of(name), weights, norms, encoded_examples[number])

    for_each_map(model, encoded_examples, count)
    return tabulate(found, encoded_examples)


def tabulate(found: Mapping[str, Sequence[Counts]], encoded_examples: Sequence[EncodedExample]) -> HeadCounts:
    """What was counted at each text, by attention, beside the baselines at the same texts."""
    based = {
        kind: [count_baselines(kind, encoded) for encoded in encoded_examples]
        for kind in dict.fromkeys(map(kind_of, found))
    }
    names = {kind: tuple(dict.fromkeys(name for counts in rows for name in counts)) for kind, rows in based.items()}
    n_heads = {name: len(rows[0]["confidence"][0]) for name, rows in found.items()}
    return HeadCounts(
        n_texts=len(encoded_examples),
        names=names,
        counts={name: _table(rows, names[kind_of(name)], n_heads[name]) for name, rows in found.items()},
        baselines={kind: _table(rows, names[kind], len(BASELINES)) for kind, rows in based.items()},
    )


def count_heads(kind: str, weights: Floats, norms: Floats, encoded: EncodedExample) -> Counts:
    """What the heads of one attention do at one text."""
    if kind == "decoder.cross":
        source, target = encoded.sides
        counts = count_cross(weights, target, source)
        if encoded.example.has_gold_alignment:
            counts |= count_alignment(aligned_maps(weights, norms, encoded), encoded)
        return counts
    positions = encoded.sides[-1 if kind == "decoder.self" else 0]
    is_causal = kind == "decoder.self"
    counts = count_self(weights, positions, is_causal=is_causal)
    if positions.relations:
        counts |= count_relations(relation_words(weights, positions), positions, is_causal=is_causal)
    return counts


def count_baselines(kind: str, encoded: EncodedExample) -> Counts:
    """The same statistics of maps that know nothing: even attention, and attention fixed on an offset or the diagonal.

    Of relations and alignments the offsets are counted in words, as Clark and Voita count them.
    """
    if kind == "decoder.cross":
        source, target = encoded.sides
        counts = count_cross(_baselines(len(target.ids), len(source.ids), is_causal=False), target, source)
        if encoded.example.has_gold_alignment:
            n_target, n_source = target.shares.shape[1], source.shares.shape[1]
            maps = _baselines(n_target, n_source, is_causal=False)
            words = np.concatenate([maps, np.zeros_like(maps[..., :1])], axis=-1)
            names = [f"align {how} {shift}" for how in ("weights", "norms") for shift in ("read", "written")]
            counts |= count_alignment(dict.fromkeys(names, words), encoded)
        return counts
    positions = encoded.sides[-1 if kind == "decoder.self" else 0]
    is_causal = kind == "decoder.self"
    n_positions, n_words = positions.shares.shape
    counts = count_self(_baselines(n_positions, n_positions, is_causal=is_causal), positions, is_causal=is_causal)
    if positions.relations:
        counts |= count_relations(_baselines(n_words, n_words, is_causal=is_causal), positions, is_causal=is_causal)
    return counts


def _baselines(n_queries: int, n_keys: int, *, is_causal: bool) -> Floats:
    even = uniform_map(n_queries, n_keys, is_causal=is_causal)
    offsets = offset_maps(n_queries, n_keys, OFFSETS, is_causal=is_causal)
    return np.concatenate(
        [even, offsets, offsets[OFFSETS.index(0)][None] if is_causal else diagonal_map(n_queries, n_keys)]
    )


def _table(rows: Sequence[Counts], names: Sequence[str], n_heads: int) -> Floats:
    table = np.zeros((len(rows), n_heads, len(names), 2))
    for row, counts in zip(table, rows, strict=True):
        for column, name in enumerate(names):
            if name in counts:
                row[:, column, 0], row[:, column, 1] = counts[name]
    return table


def for_each_map(model: Transformer, encoded_examples: Sequence[EncodedExample], callback: MapCallback) -> None:
    """Give every text's attention maps to a callback, attention by attention, without padding, as H × Q × K."""
    with evaluating(model):
        for rows in batches_by_length([sum(len(side.ids) for side in encoded.sides) for encoded in encoded_examples]):
            _read_batch(model, [encoded_examples[row] for row in rows], rows, callback)


def _read_batch(
    model: Transformer, batch: Sequence[EncodedExample], numbers: Sequence[int], callback: MapCallback
) -> None:
    device = model.device
    sides = [
        torch.from_numpy(pad([encoded.sides[side].ids for encoded in batch])).to(device)
        for side in range(len(batch[0].sides))
    ]

    def receive(attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        for row, number in enumerate(numbers):
            lengths = [len(side.ids) for side in batch[row].sides]
            is_cross = attention.name.endswith(".cross")
            n_queries = lengths[-1] if attention.name.startswith("decoder") else lengths[0]
            n_keys = lengths[0] if is_cross else n_queries
            own = (whole[row, :, :n_queries, :n_keys].double().cpu().numpy() for whole in (weights, norms))
            callback(number, attention.name, *own)

    tap = MapTap(model, receive)
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
    """Hands each attention's weights on as they come, with the norms ‖α f(x)‖ of what they bring."""

    def __init__(self, model: Transformer, receive: Callable[[MultiHeadAttention, Tensor, Tensor], None]) -> None:
        super().__init__()
        self.attentions = {attention.name: attention for attention in model.attentions()}
        self.callback = receive
        self.lengths: Tensor | None = None

    def receive(self, name: str, value: Tensor) -> None:
        """Take a value; only v and weights matter, and v comes first."""
        attention, _, what = name.rpartition(".")
        if what == "v":
            self.lengths = _lengths(self.attentions[attention], value)
        elif what == "weights" and self.lengths is not None:
            self.callback(self.attentions[attention], value, value * self.lengths[:, :, None])


def _lengths(attention: MultiHeadAttention, v: Tensor) -> Tensor:
    """‖v_j W_i^O‖ of every head and key, B × H × K: how long what is looked at is, once it has been mixed in."""
    if not isinstance(attention.output, nn.Linear):
        return v.norm(dim=-1)
    of_heads = attention.output.weight.T.unflatten(0, (v.size(1), v.size(-1)))  # H E W
    gram = of_heads @ of_heads.mT
    return ((v @ gram) * v).sum(-1).clamp(min=0).sqrt()
