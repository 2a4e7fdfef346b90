"""Interventions on one text: its answer, the answer without some heads, and how much of it depends on each head.

All functions set gates on the model for as long as they run, and a model has one set of gates: callers that share a
model between threads hold a lock. When a function returns or raises, the gates are as they were before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.decode import DecodeSettings, is_looping
from manyheads.errors import DataError, LensError
from manyheads.lens.aligner import Aligner
from manyheads.lens.heads import Head, ablation_gates, find_heads, heads_of
from manyheads.messages import Message, _
from manyheads.model import Transformer, gated
from manyheads.model.attention import Replacement
from manyheads.tasks import GenerativeTask, ModelInput, Task
from manyheads.tasks.lens_output import LensOutput, WriterProbe
from manyheads.text.markup.copyable_spans import copyable_spans

_BATCH_POSITIONS = 2048  # of all copies of a text in one forward pass


@dataclass(frozen=True)
class AblatedText:
    """The output for one text without some heads."""

    free: LensOutput  # the model answers again
    forced: LensOutput | None  # the probabilities of the original answer; None for a model without a decoder
    log_probability_change: float | None  # of the original answer; negative: less probable without the heads

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "free": self.free.to_json(),
            "forced": None if self.forced is None else self.forced.to_json(),
            "log_probability_change": self.log_probability_change,
        }


@dataclass(frozen=True)
class HeadContrast:
    """How much each head contributes to one choice instead of another."""

    chosen: str
    instead: str
    difference: float  # logit(chosen) − logit(instead) with all heads
    heads: tuple[tuple[Head, float], ...]  # how much of the difference is lost without each head

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        heads = [{"head": str(head), "effect": effect} for head, effect in self.heads]
        return {**asdict(self), "heads": heads}


def ablate_text(
    task: Task,
    model_input: ModelInput,
    heads: Iterable[Head | str],
    decode: DecodeSettings,
    aligner: Aligner | None = None,
) -> AblatedText:
    """Return the output without these heads: the model's new answer, and the probability of its original one.

    The new answer is decoded with PyTorch. Without heads to ablate, it is the model's own answer. An aligner adds the
    word alignment of a translation, as the remaining heads see it. Callers hold a lock, see above.
    """
    probe, original = task.lens_probe(model_input), task.lens_output(model_input)
    before = None if original.log_probability is None else float(probe.log_probabilities(1)[0])
    with gated(task.model, ablation_gates(task.model, find_heads(task.model, heads))):
        read = write_answer(task, model_input.text, decode)
        free = task.lens_output(read)
        forced = None
        if isinstance(probe, WriterProbe):  # the alternatives of the original answer stay, to be compared
            forced = probe.output([[choice.id for choice in token.alternatives] for token in original.tokens])
        if aligner is not None:
            free = aligner.align_output(read.text, free)
            forced = None if forced is None else aligner.align_output(model_input.text, forced)
        change = None if before is None else float(probe.log_probabilities(1)[0]) - before
    return AblatedText(free, forced, change)


def text_importance(
    task: Task, model_input: ModelInput, progress: Callable[[float], None] = lambda share: None
) -> list[tuple[Head, float]]:
    """Return how much log-probability the answer loses without each single head, in nats; positive: the head helps.

    The answer is the target of the input, or the present prediction of a model without a decoder. Its probability is
    that of the output: of a classifier, mixed with the linear model and calibrated; of a tagger, that of the best path
    and of the intent; of a masked language model, that of the tokens for all masks. Every head costs a forward pass:
    `progress` is called with the share of heads done. Callers hold a lock, see above.
    """
    if task.lens_output(model_input).log_probability is None:
        raise LensError(_("There is no answer whose probability could change. Give an answer, or a text with [MASK]."))
    probe = task.lens_probe(model_input)
    whole = float(probe.log_probabilities(1)[0])
    without = without_each_head(task.model, model_input, probe.log_probabilities, progress)
    return [(head, whole - float(value)) for head, value in zip(heads_of(task.model), without, strict=True)]


def contrast_heads(
    task: Task,
    model_input: ModelInput,
    position: int,
    instead: int | str,
    progress: Callable[[float], None] = lambda share: None,
) -> HeadContrast:
    """Return which heads make the model choose what it chose at a position instead of something else.

    A position is that of the target at which a token was written, that of a mask, or that of a token whose word has a
    tag; −1 is the label of the text or its intent. `instead` is a token id, or the name of a label, an intent or a tag.
    An effect is positive if the head speaks for the choice. Callers hold a lock, see above.
    """
    probe = task.lens_probe(model_input)
    choice = probe.alternatives(position, instead)
    chosen, other = choice.columns

    def difference(n_rows: int) -> Float[Tensor, " N"]:
        logits = probe.logits(position, n_rows)
        return logits[:, chosen] - logits[:, other]

    whole = float(difference(1)[0])
    without = without_each_head(task.model, model_input, difference, progress)
    effects = [(head, whole - float(value)) for head, value in zip(heads_of(task.model), without, strict=True)]
    return HeadContrast(choice.chosen, choice.instead, whole, tuple(effects))


def without_each_head(
    model: Transformer,
    model_input: ModelInput,
    measure: Callable[[int], Float[Tensor, " N"]],
    progress: Callable[[float], None] = lambda share: None,
    replacements: Mapping[str, Replacement] = MappingProxyType({}),
) -> list[float]:
    """Return a measure of the text without each head: copies of the text in one pass, each with gates of its own.

    `replacements` stand in for the output of the head that is ablated; without them, it is zero.
    """
    n_positions = max(1, len(model_input.source) + len(model_input.target))
    measured: list[float] = []
    for gates, n_rows in _row_gates(model, max(1, _BATCH_POSITIONS // n_positions)):
        with gated(model, gates, replacements):
            measured += measure(n_rows).tolist()
        progress(len(measured) / len(heads_of(model)))
    return measured


def _row_gates(model: Transformer, n_at_once: int) -> Iterator[tuple[dict[str, Tensor], int]]:
    """Yield gates that ablate one head in each row, and the number of rows."""
    heads = heads_of(model)
    for start in range(0, len(heads), n_at_once):
        part = heads[start : start + n_at_once]
        gates = {
            attention.name: torch.ones(len(part), attention.heads.n_heads, device=model.device)
            for attention in model.attentions()
        }
        for row, head in enumerate(part):
            gates[head.attention][row, head.number] = 0.0
        yield gates, len(part)


@dataclass(frozen=True)
class AnsweredInput:
    """What a model reads and writes for one text, and notes about how this differs from the text as it was given."""

    model_input: ModelInput
    notes: tuple[Message, ...] = ()


def answer_text(task: Task, text: str, decode: DecodeSettings, answer: str | None = None) -> AnsweredInput:
    """Return the input of a text with this answer, or with the answer of `predict`.

    The text is normalized as `predict` does it. A text that `predict` would divide is one input. A model without a
    decoder takes no answer. Raises `DataError` for a text that is empty or too long.
    """
    text, notes = task.text_to_read(text)
    if answer is not None or not isinstance(task, GenerativeTask):
        return AnsweredInput(task.model_input(text, answer), notes)
    return AnsweredInput(write_answer(task, text, decode), notes)


def write_answer(task: Task, text: str, decode: DecodeSettings) -> ModelInput:
    """Return the input of a text with the model's own answer, under the gates of the moment."""
    model_input = task.model_input(text)
    if not isinstance(task, GenerativeTask):
        return model_input
    best, written = task.generate_one(model_input, decode)
    source = [token.id for token in model_input.source]
    if not source or not (is_looping(best.ids, source) or copyable_spans(text)):
        return written
    # `predict` searches again after a loop, and for spans that are to be copied.
    (expected,) = task.predict([text], decode)
    if expected.answer == written.answer or getattr(expected, "parts", ()):
        return written
    try:
        return task.model_input(text, expected.answer)
    except DataError:  # its tokens may be others, and more, than those that were written
        return written
