"""How strongly each head acts on each text, and examples from where it acts strongly to where it hardly acts.

The strength of a head at a text is the mean of ‖head_i W_i^O‖ over all positions, as a share of the sum over the heads
of its attention. Examples are drawn from all ranks: the strongest alone would show what a head does at its best, not
what it does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from manyheads.lens.heads import Head, heads_of
from manyheads.lens.roles.head_counts import MapTap, kind_of, map_shape, run_batch, value_norms
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats, Span
from manyheads.model import MultiHeadAttention, Transformer, evaluating
from manyheads.tasks import Progress
from manyheads.tasks.lens_output import token_text
from manyheads.tasks.model_inputs import batches_by_length
from manyheads.text.tokens.tokenizer import EOS, Tokenizer

Stratum = Literal["strongest", "strong", "middle", "weak", "weakest"]

STRATA: tuple[Stratum, ...] = ("strongest", "strong", "middle", "weak", "weakest")
_N_PER_STRATUM = 2

# B texts, H heads, Q query positions, K key positions.


@dataclass(frozen=True)
class HeadExample:
    """A text with the pair of tokens between which a head moves most."""

    stratum: Stratum
    strength: float
    text: str
    answer: str | None
    query: str  # of cross-attention, the token that is written
    key: str
    query_span: Span | None  # in the text, or in the answer for a token of the decoder; None for special tokens
    key_span: Span | None
    weight: float


@dataclass(frozen=True, eq=False)
class HeadStrengths:
    """The strength of every head at every text, and its largest contribution ‖α f(x)‖ there."""

    strengths: Mapping[Head, Floats]  # one number per text
    links: Mapping[Head, NDArray[np.int64]]  # texts × (query, key)
    weights: Mapping[Head, Floats]  # of these links

    def mean(self, head: Head) -> float:
        """The mean strength over all texts."""
        return float(self.strengths[head].mean())


def measure_strengths(
    model: Transformer, encoded_examples: Sequence[EncodedExample], progress: Progress = lambda done: None
) -> HeadStrengths:
    """Measure how strongly every head acts on every text; progress is in texts."""
    n_texts, heads = len(encoded_examples), heads_of(model)
    strengths = {head: np.zeros(n_texts) for head in heads}
    links = {head: np.zeros((n_texts, 2), dtype=np.int64) for head in heads}
    weights = {head: np.zeros(n_texts) for head in heads}
    lengths = [sum(len(side.ids) for side in encoded.sides) for encoded in encoded_examples]
    with evaluating(model):
        for numbers in batches_by_length(lengths):
            batch = [encoded_examples[number] for number in numbers]
            tap = _StrengthTap(model, batch)
            run_batch(model, batch, tap)
            for head, rows in tap.rows.items():
                for number, (strength, query, key, weight) in zip(numbers, rows, strict=True):
                    strengths[head][number], weights[head][number] = strength, weight
                    links[head][number] = query, key
            progress(len(numbers))
    return HeadStrengths(strengths, links, weights)


class _StrengthTap(MapTap):
    """Reduces what each attention computes to one row per text and head: strength, query, key, weight."""

    def __init__(self, model: Transformer, batch: Sequence[EncodedExample]) -> None:
        super().__init__(model, self._keep_links)
        self.batch = batch
        self.links: dict[str, list[list[tuple[int, int, float]]]] = {}
        self.rows: dict[Head, list[tuple[float, int, int, float]]] = {}

    def receive(self, name: str, value: Tensor) -> None:
        """Receive a named value; `weights` come before `heads`."""
        super().receive(name, value)
        attention, _, what = name.rpartition(".")
        if what != "heads":
            return
        norms = value_norms(self.attentions[attention], value).cpu().double().numpy()  # B H Q
        for row, encoded in enumerate(self.batch):
            n_queries, _ = map_shape(attention, encoded)
            means = norms[row, :, :n_queries].mean(-1)
            shares = means / (means.sum() or 1.0)
            for number, share in enumerate(shares.tolist()):
                self.rows.setdefault(Head(attention, number), []).append((share, *self.links[attention][row][number]))

    def _keep_links(self, attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        self.links[attention.name] = []
        for row, encoded in enumerate(self.batch):
            n_queries, n_keys = map_shape(attention.name, encoded)
            moved = norms[row, :, :n_queries, :n_keys].cpu().double().numpy().copy()
            if kind_of(attention.name) != "decoder.cross":  # BOS and EOS are no words that look at others
                side = encoded.sides[-1 if attention.name.startswith("decoder") else 0]
                moved[:, side.is_special] = -1.0
            best = moved.reshape(len(moved), -1).argmax(-1)
            pairs = [divmod(index, n_keys) for index in best.tolist()]
            self.links[attention.name].append(
                [(query, key, float(weights[row, head, query, key])) for head, (query, key) in enumerate(pairs)]
            )


def stratified_examples(
    head: Head, strengths: HeadStrengths, encoded_examples: Sequence[EncodedExample], tokenizer: Tokenizer
) -> list[HeadExample]:
    """Return two texts of each stratum, by decreasing strength; a text that occurs twice is shown once."""
    order = np.argsort(-strengths.strengths[head], kind="stable").tolist()
    by_text = {
        tuple(side.text for side in encoded_examples[number].example.texts): number for number in reversed(order)
    }
    ranked = [number for number in order if number in set(by_text.values())]
    chosen: dict[int, Stratum] = {}
    for place, stratum in enumerate(STRATA):
        first = round(place / (len(STRATA) - 1) * max(0, len(ranked) - _N_PER_STRATUM))
        for number in ranked[first : first + _N_PER_STRATUM]:
            chosen.setdefault(number, stratum)
    return [
        _example(head, stratum, number, strengths, encoded_examples, tokenizer) for number, stratum in chosen.items()
    ]


def _example(
    head: Head,
    stratum: Stratum,
    number: int,
    strengths: HeadStrengths,
    encoded_examples: Sequence[EncodedExample],
    tokenizer: Tokenizer,
) -> HeadExample:
    encoded = encoded_examples[number]
    query, key = strengths.links[head][number].tolist()
    is_cross = kind_of(head.attention) == "decoder.cross"
    read = encoded.sides[-1 if head.attention.startswith("decoder") else 0]
    queries, query_spans = read.ids.tolist(), read.spans
    if is_cross:
        queries, query_spans = [*queries[1:], EOS], (*query_spans[1:], None)
    key_side = encoded.sides[0] if is_cross else read
    texts = [side.text for side in encoded.example.texts]
    return HeadExample(
        stratum=stratum,
        strength=float(strengths.strengths[head][number]),
        text=texts[0],
        answer=texts[1] if len(texts) > 1 else None,
        query=_name(tokenizer, queries, query),
        key=_name(tokenizer, key_side.ids.tolist(), key),
        query_span=query_spans[query],
        key_span=key_side.spans[key],
        weight=float(strengths.weights[head][number]),
    )


def _name(tokenizer: Tokenizer, ids: Sequence[int], position: int) -> str:
    return token_text(tokenizer, ids[position], ids[:position]).strip() or "␣"
