"""`ModelInput`: the tokens that a model reads; also windows of long texts, batches by length, and pooling."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.data import plan_batches
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.tokens.tokenizer import BOS, EOS, Token, Tokenizer
from manyheads.text.tokens.words import is_blank

_BATCH_TOKENS = 4096  # padded tokens


@dataclass(frozen=True)
class ModelInput:
    """One text as the tokens that a model reads, with their character offsets in the text or in the answer.

    A language model reads both as one text, so the offsets of an answer count from the beginning of the text.
    """

    text: str
    answer: str = ""
    source: tuple[Token, ...] = ()  # the encoder's input
    target: tuple[Token, ...] = ()  # the decoder's input; at each position it predicts the next token
    last: Token | None = None  # the token after the last position, if known: EOS, or the last before the limit

    @property
    def written(self) -> tuple[Token, ...]:
        """The token that follows each position of the target, as far as known."""
        return self.target[1:] if self.last is None else (*self.target[1:], self.last)


def windows(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Windows (start, end) that cover items of these sizes, each of total size at most `limit`.

    If there are several, each begins in the middle of the one before, so that an item at the edge of one window has
    context on both sides in another. A single item larger than the limit has a window of its own.
    """
    spans = []
    start = 0
    while True:
        end, size = start, 0
        while end < len(sizes) and (end == start or size + sizes[end] <= limit):
            size += sizes[end]
            end += 1
        spans.append((start, end))
        if end >= len(sizes):
            return spans
        start = max(start + 1, (start + end + 1) // 2)


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The indices of all texts in batches of similar length."""
    column = np.array(lengths, dtype=np.int64).reshape(-1, 1)
    for batch in plan_batches(column, _BATCH_TOKENS, seed=0, epoch=0):
        yield batch.tolist()


def encoder_input(
    tokenizer: Tokenizer, text: str, answer: str | None, tokens: Iterable[Token], *, limit: int
) -> ModelInput:
    """The input of a model with an encoder only: BOS, the text's tokens, and what closes them."""
    if answer is not None:
        raise DataError(_("This model has no decoder and generates no answer. Leave the answer out."))
    refuse_blank(text)
    last = () if tokenizer.closes is None else (special_token(tokenizer, tokenizer.closes, len(text)),)
    return ModelInput(text, source=(special_token(tokenizer, BOS), *check_fits(tokens, limit), *last))


def refuse_blank(text: str) -> None:
    """Raise DataError if a text is blank."""
    if is_blank(text):
        raise DataError(_("The text is empty: there is nothing to read. Give a sentence."))


def check_fits(tokens: Iterable[Token], limit: int, what: str = "") -> tuple[Token, ...]:
    """The tokens; DataError if the model cannot read so many at once."""
    checked = tuple(tokens)
    if len(checked) > limit:
        raise DataError(
            _(
                "{what} has {n_tokens:,} tokens; this model reads at most {limit:,} at once. Give a part of it.",
                what=what or _("The text"),
                n_tokens=len(checked),
                limit=limit,
            )
        )
    return checked


def special_token(tokenizer: Tokenizer, token_id: int, offset: int = 0) -> Token:
    """A token that is not part of the text, such as BOS; its span is empty."""
    return Token(tokenizer.id_to_token(token_id), token_id, offset, offset)


def shift_spans(tokens: Iterable[Token], by: int, most: int) -> Iterator[Token]:
    """The tokens of a part of a text with their offsets in the whole text, which has `most` characters."""
    for token in tokens:
        yield Token(token.text, token.id, min(token.start + by, most), min(token.end + by, most))


def with_output(
    model_input: ModelInput,
    tokenizer: Tokenizer,
    answer: str,
    ids: Sequence[int],
    *,
    has_ended: bool,
    after: int | None = None,
) -> ModelInput:
    """The input with a generated answer as its target; its last token is EOS, or the last id if it was cut off.

    If the answer continues the text itself, `after` is the offset at which it begins.
    """
    size = len(answer) if after is None else len(model_input.text) + len(answer)
    tokens = tuple(shift_spans(tokenizer.tokens_from_ids(ids, is_continuation=after is not None), after or 0, size))
    last = special_token(tokenizer, EOS, size) if has_ended else tokens[-1] if tokens else None
    read = tokens if has_ended else tokens[:-1]
    return replace(model_input, answer=answer, target=(*model_input.target, *read), last=last)


Pooling = Literal["first", "mean", "max", "mean-max", "attention"]


class Pool(nn.Module):
    """One vector per text of any length; padded positions do not count."""

    def __init__(self, kind: Pooling, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.width = 2 * width if kind == "mean-max" else width
        if kind == "attention":
            self.query = nn.Linear(width, 1, bias=False)

    def forward(self, x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B P"]:
        """The pooled vectors."""
        match self.kind:
            case "first":
                return x[:, 0]
            case "mean":
                return _mean(x, is_real)
            case "max":
                return _max(x, is_real)
            case "mean-max":
                return torch.cat([_mean(x, is_real), _max(x, is_real)], dim=1)
            case "attention":
                scores = self.query(x)[..., 0].masked_fill(~is_real, -torch.inf)
                return (scores.softmax(1)[..., None] * x).sum(1)


def _mean(x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B W"]:
    return (x * is_real[..., None]).sum(1) / is_real.sum(1, keepdim=True)


def _max(x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B W"]:
    return x.masked_fill(~is_real[..., None], -torch.inf).amax(1)
