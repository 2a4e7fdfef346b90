"""`LensOutput`: the answer of any task to one model input, with probabilities and alternatives, as the lens shows it.

`Task.lens_output` computes an answer under the gates of the moment. `Task.lens_probe` fixes an answer and computes its
log-probability and logits for several copies of the input at once, so that each copy can have gates of its own.
`WriterProbe` is the probe of a model with a decoder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.errors import LensError
from manyheads.messages import Message, _
from manyheads.model import Transformer, evaluating
from manyheads.settings import did_you_mean
from manyheads.tasks.model_inputs import ModelInput
from manyheads.text.tokens.tokenizer import BOS, EOS, METASPACE, PAD, UNK, Token, Tokenizer

N_ALTERNATIVES = 5
_NAMES = {  # what may be chosen by its name, and the error if there is nothing to choose
    "label": (Message("a label"), Message("This model has no labels.")),
    "intent": (Message("an intent"), Message("This model has no intents.")),
    "tag": (Message("a tag"), Message("This model has no tags.")),
}
SPECIAL_NAMES = {PAD: "PAD", UNK: "UNK", BOS: "BOS", EOS: "EOS"}

Span = tuple[int, int]  # start and end, in characters


@dataclass(frozen=True)
class TokenChoice:
    """A token that the model could write, with its probability."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class WrittenToken:
    """A token of the answer; of the byte tokens of one character, the first has its text and the others have none."""

    text: str
    probability: float
    alternatives: tuple[TokenChoice, ...]  # the most probable tokens, best first


@dataclass(frozen=True)
class LabelChoice:
    """A label or an intent with its probability."""

    name: str
    probability: float


@dataclass(frozen=True)
class LabeledSpan:
    """A labeled span of the text."""

    start: int
    end: int
    label: str
    probability: float | None


@dataclass(frozen=True)
class FilledMask:
    """A mask of the text and the tokens that could fill it, best first."""

    start: int
    end: int
    alternatives: tuple[TokenChoice, ...]


@dataclass(frozen=True)
class AlignedSpans:
    """A word of the text and a word of the answer that are aligned."""

    source: Span
    target: Span


@dataclass(frozen=True)
class LensOutput:
    """The answer to one model input; what a task does not have is empty."""

    task: str
    answer: str  # of classify the label, of tag the line of `predict`, of masked the text without masks
    tokens: tuple[WrittenToken, ...] = ()  # one for each target position from `first`
    first: int = 0
    labels: tuple[LabelChoice, ...] = ()  # best first
    ngram_share: float | None = None  # of the linear model in the decision; heads act on the rest; None: there is none
    spans: tuple[LabeledSpan, ...] = ()
    masks: tuple[FilledMask, ...] = ()
    alignment: tuple[AlignedSpans, ...] = ()  # set by `Aligner.align_output`
    log_probability: float | None = None  # of the answer, in nats
    notes: tuple[Message, ...] = ()  # what the reader should know about this answer

    def to_json(self) -> dict[str, Any]:
        """Return the output as a JSON object; notes are objects with the keys en and zh."""
        return {**asdict(self), "notes": [note.by_language() for note in self.notes]}


@dataclass(frozen=True)
class Alternatives:
    """Two of the columns of `LensProbe.logits`: what the model chose, and what it could have chosen instead."""

    chosen: str
    instead: str
    columns: tuple[int, int]


@runtime_checkable
class LensProbe(Protocol):
    """A fixed answer to one model input, measured under the gates of the moment.

    Gates may have one row for each of `n_rows` copies of the input.
    """

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the answer in each copy, as the model's output has it: mixed and calibrated."""

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """What was chosen at a position, and the token id or name given instead; LensError if there is no such."""

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """The logits of all choices at a position in each copy."""


def token_text(tokenizer: Tokenizer, token_id: int, before: Sequence[int] = ()) -> str:
    """A token as people read it: spaces for ▁; a byte that completes a character after the ids `before` is that one."""
    if token_id in SPECIAL_NAMES:
        return SPECIAL_NAMES[token_id]
    byte = tokenizer.byte_of(token_id)
    if byte is None:
        return tokenizer.id_to_token(token_id).replace(METASPACE, " ")
    sequence = [byte]
    for earlier in reversed(before[-3:]):
        if not 0x80 <= sequence[0] < 0xC0:  # a lead byte, or a character of one byte
            break
        previous = tokenizer.byte_of(earlier)
        if previous is None:
            break
        sequence.insert(0, previous)
    try:
        return bytes(sequence).decode()
    except UnicodeDecodeError:
        return tokenizer.id_to_token(token_id)


def top_tokens(
    tokenizer: Tokenizer,
    log_probabilities: Float[Tensor, " V"],
    before: Sequence[int] = (),
    also: Sequence[int] = (),
) -> tuple[TokenChoice, ...]:
    """The most probable tokens that a model may write and those of `also`, best first."""
    allowed = log_probabilities.clone()
    allowed[[PAD, UNK, BOS]] = -float("inf")
    best = allowed.topk(min(N_ALTERNATIVES, len(allowed) - 3)).indices.tolist()
    chosen = sorted({*best, *also}, key=lambda token_id: -float(allowed[token_id]))
    return tuple(
        TokenChoice(token_id, token_text(tokenizer, token_id, before), float(allowed[token_id].exp()))
        for token_id in chosen
    )


def find_name(instead: int | str, names: Sequence[str], what: Literal["label", "intent", "tag"]) -> int:
    """The index of a label, an intent or a tag; LensError if it is not one of the model's."""
    if not isinstance(instead, str) or instead not in names:
        one_of_them, none = _NAMES[what]
        known = did_you_mean(str(instead), names) if names else none
        raise LensError(_("{name!r} is not {what} of this model. {known}", name=instead, what=one_of_them, known=known))
    return names.index(instead)


def check_token_id(instead: int | str, vocab_size: int) -> int:
    """The token id; LensError if the vocabulary does not have it."""
    if not isinstance(instead, int) or isinstance(instead, bool) or not 0 <= instead < vocab_size:
        raise LensError(
            _(
                "{token_id!r} is not a token id of this model. Give a number from 0 to {last:,}.",
                token_id=instead,
                last=vocab_size - 1,
            )
        )
    return instead


def refuse_position(position: int, allowed: str) -> LensError:
    """The error for a position at which nothing was chosen."""
    return LensError(
        _("Nothing is chosen at position {position}. Allowed: {allowed}.", position=position, allowed=allowed)
    )


_MAX_LOGITS = 1 << 23  # computed at once

# N copies of the input, T target positions, W width, V vocabulary.


@dataclass(frozen=True)
class WriterProbe:
    """A model that writes the target of one input, from the position `first` on."""

    task: str
    model: Transformer
    tokenizer: Tokenizer
    model_input: ModelInput
    first: int  # the position that writes the first token of the answer
    notes: tuple[Message, ...] = ()

    def output(self, also: Sequence[Sequence[int]] = ()) -> LensOutput:
        """The tokens of the answer, from one forward pass; `also` are more alternatives of each token, by their ids."""
        tokens, total = [], 0.0
        with evaluating(self.model):
            hidden = self._hidden(1)[0, self.first : len(self.written)]
            for position, row in enumerate(self._log_probabilities(hidden), start=self.first):
                more = also[position - self.first] if also else ()
                tokens.append(self._written_token(position, row, more))
                total += float(row[self.written[position].id])
        return LensOutput(
            task=self.task,
            answer=self.model_input.answer,
            tokens=tuple(tokens),
            first=self.first,
            log_probability=total if tokens else None,
            notes=self.notes,
        )

    @property
    def written(self) -> tuple[Token, ...]:
        """The token that follows each position, as far as known."""
        return self.model_input.written

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the answer in each copy of the input."""
        ids = self._ids(self.written[self.first :]).cpu()
        with evaluating(self.model):
            hidden = self._hidden(n_rows)[:, self.first : len(self.written)].flatten(0, 1)
            n_at_once = max(1, _MAX_LOGITS // self.model.settings.vocab_size)
            logs = [
                self.model.output.logits(part).cpu().double().log_softmax(-1).gather(1, part_ids[:, None])[:, 0]
                for part, part_ids in zip(hidden.split(n_at_once), ids.repeat(n_rows).split(n_at_once), strict=True)
            ]
            return torch.cat(logs).reshape(n_rows, len(ids)).sum(1)

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """The token that is written at a position, and another one."""
        if not 0 <= position < len(self.written):
            last = len(self.written) - 1
            raise refuse_position(position, _("0 to {last}", last=last) if last >= 0 else _("none, without answer"))
        chosen, before = self.written[position], [token.id for token in self.model_input.target[: position + 1]]
        other = check_token_id(instead, self.tokenizer.vocab_size)
        names = [token_text(self.tokenizer, token_id, before) for token_id in (chosen.id, other)]
        return Alternatives(names[0], names[1], (chosen.id, other))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """The logits of the token after a position in each copy of the input."""
        with evaluating(self.model):
            return self.model.output.logits(self._hidden(n_rows)[:, position]).cpu().double()

    def _hidden(self, n_rows: int) -> Float[Tensor, "N T W"]:
        source, target = (
            self._ids(tokens).expand(n_rows, -1) if tokens else None
            for tokens in (self.model_input.source, self.model_input.target)
        )
        return self.model.hidden(source, target)

    def _ids(self, tokens: tuple[Token, ...]) -> Int[Tensor, " T"]:
        return torch.tensor([token.id for token in tokens], dtype=torch.long, device=self.model.device)

    def _log_probabilities(self, hidden: Float[Tensor, "T W"]) -> Iterator[Float[Tensor, " V"]]:
        """The log-probabilities of the token after each position, in parts that fit in memory."""
        for part in hidden.split(max(1, _MAX_LOGITS // self.model.settings.vocab_size)):
            yield from self.model.output.logits(part).cpu().double().log_softmax(-1)  # MPS has no float64

    def _written_token(
        self, position: int, log_probabilities: Float[Tensor, " V"], also: Sequence[int]
    ) -> WrittenToken:
        token, before = self.written[position], [token.id for token in self.model_input.target[: position + 1]]
        probability = float(log_probabilities[token.id].exp())
        alternatives = top_tokens(self.tokenizer, log_probabilities, before, also)
        return WrittenToken(self._text(position), probability, alternatives)

    def _text(self, position: int) -> str:
        """The characters of the answer that a token covers; its name if it covers none."""
        token = self.written[position]
        if token.id in SPECIAL_NAMES:
            return SPECIAL_NAMES[token.id]
        # A language model reads its answer as part of the text.
        whole = self.model_input.answer if self.model_input.source else self.model_input.text + self.model_input.answer
        if self.tokenizer.byte_of(token.id) is not None and position > self.first:
            previous = self.written[position - 1]
            is_byte = self.tokenizer.byte_of(previous.id) is not None
            if is_byte and (previous.start, previous.end) == (token.start, token.end):
                return ""
        return whole[token.start : token.end] or token.text.replace(METASPACE, " ")
