"""What every task that reads texts shares: long texts in windows, texts of like length together, calibration, and
which tokens a model reads of one text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.data import plan_batches
from manyheads.errors import DataError
from manyheads.tasks.task import ModelInput
from manyheads.text.tokenizer import BOS, EOS, Token, Tokenizer

_TOKENS_AT_ONCE = 4096  # padded tokens that are read together
_TEMPERATURES = (0.05, 20.0)


def windows(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Stretches of things of these sizes that together hold all, each at most `limit` in size, as (start, end).

    Where one does not hold all, each next one begins in the middle of the one before, so that whatever stands at the
    edge of one has both its neighbourhoods in another. A single thing beyond the limit has a stretch of its own.
    """
    found = []
    start = 0
    while True:
        end, size = start, 0
        while end < len(sizes) and (end == start or size + sizes[end] <= limit):
            size += sizes[end]
            end += 1
        found.append((start, end))
        if end >= len(sizes):
            return found
        start = max(start + 1, (start + end + 1) // 2)


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of all texts, those of like length together, as many as are read at once."""
    column = np.array(lengths, dtype=np.int64).reshape(-1, 1)
    for batch in plan_batches(column, _TOKENS_AT_ONCE, seed=0, epoch=0):
        yield batch.tolist()


def encoder_input(
    tokenizer: Tokenizer, text: str, answer: str | None, tokens: Iterable[Token], *, limit: int
) -> ModelInput:
    """The model_input of a model that has an encoder only: BOS and the text's tokens."""
    if answer is not None:
        raise DataError("This model has no decoder: it reads a text, and writes no answer. Leave the answer out.")
    refuse_blank(text)
    return ModelInput(text, source=(special_token(tokenizer, BOS), *check_fits(tokens, limit)))


def refuse_blank(text: str) -> None:
    """Of nothing, nothing is read."""
    if not text.strip():
        raise DataError("The text is empty: there is nothing to read. Give a sentence.")


def check_fits(tokens: Iterable[Token], limit: int, what: str = "The text") -> tuple[Token, ...]:
    """The tokens, if they are no more than the model reads at once."""
    found = tuple(tokens)
    if len(found) > limit:
        raise DataError(
            f"{what} has {len(found):,} tokens; this model reads at most {limit:,} at once. Give a part of it."
        )
    return found


def special_token(tokenizer: Tokenizer, token_id: int, place: int = 0) -> Token:
    """A token that is not of the text, like BOS: its span is empty."""
    return Token(tokenizer.id_to_token(token_id), token_id, place, place)


def shift_spans(tokens: Iterable[Token], by: int, most: int) -> Iterator[Token]:
    """The tokens of a part, each with its place in the whole, which has `most` characters."""
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
    """The model_input with what was written, and read but for the last: EOS, or without it the last of the ids.

    Of an answer that goes on in the text's own line, `after` is the place where it does.
    """
    size = len(answer) if after is None else len(model_input.text) + len(answer)
    tokens = tuple(shift_spans(tokenizer.tokens_from_ids(ids, is_continuation=after is not None), after or 0, size))
    last = special_token(tokenizer, EOS, size) if has_ended else tokens[-1] if tokens else None
    read = tokens if has_ended else tokens[:-1]
    return replace(model_input, answer=answer, target=(*model_input.target, *read), last=last)


def label_log_probabilities(logits: Float[Tensor, "N C"], *, multi_label: bool) -> Float[Tensor, "N C"]:
    """The logarithm of each label's probability: of one label that all share it, of several each its own."""
    return F.logsigmoid(logits) if multi_label else logits.log_softmax(-1)


def fit_temperature(logits: Float[Tensor, "N C"], wanted: Float[Tensor, "N C"], *, multi_label: bool) -> float:
    """What to divide logits by for probabilities that are the likeliest for what was wanted (Guo 2017).

    `wanted` is 1 for the labels of a text and 0 for others. Where there is nothing to learn from, 1.
    """
    if not len(logits):
        return 1.0

    def cost(log_temperature: float) -> float:
        scaled = logits.double() / np.exp(log_temperature)
        loss = F.binary_cross_entropy_with_logits(scaled, wanted.double()) if multi_label else -(
            (scaled.log_softmax(-1) * wanted).sum(-1).mean()
        )  # fmt: skip
        return float(loss)

    # The cost has one lowest point along 1 / temperature: the thirds it cannot lie in are cut off, one after another.
    low, high = np.log(_TEMPERATURES)
    for _ in range(40):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if cost(left) <= cost(right):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))
