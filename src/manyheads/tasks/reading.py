"""What every task that reads texts shares: long texts in windows, texts of like length together, calibration, and
which pieces a model reads of one text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.data import plan_batches
from manyheads.errors import DataError
from manyheads.tasks.task import Reading
from manyheads.text.tokenizer import BEGIN, END, Piece, Tokenizer

_TOKENS_AT_ONCE = 4096  # padded pieces that are read together
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


def like_lengths(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of all texts, those of like length together, as many as are read at once."""
    column = np.array(lengths, dtype=np.int64).reshape(-1, 1)
    for batch in plan_batches(column, _TOKENS_AT_ONCE, seed=0, epoch=0):
        yield batch.tolist()


def read_alone(tokenizer: Tokenizer, text: str, answer: str | None, pieces: Iterable[Piece], *, limit: int) -> Reading:
    """The reading of a model that has an encoder only: BEGIN and the text's pieces."""
    if answer is not None:
        raise DataError("This model has no decoder: it reads a text, and writes no answer. Leave the answer out.")
    refuse_blank(text)
    return Reading(text, source=(special(tokenizer, BEGIN), *fitting(pieces, limit)))


def refuse_blank(text: str) -> None:
    """Of nothing, nothing is read."""
    if not text.strip():
        raise DataError("The text is empty: there is nothing to read. Give a sentence.")


def fitting(pieces: Iterable[Piece], limit: int, what: str = "The text") -> tuple[Piece, ...]:
    """The pieces, if they are no more than the model reads at once."""
    found = tuple(pieces)
    if len(found) > limit:
        raise DataError(
            f"{what} has {len(found):,} pieces; this model reads at most {limit:,} at once. Give a part of it."
        )
    return found


def special(tokenizer: Tokenizer, piece_id: int, place: int = 0) -> Piece:
    """A piece that is not of the text, like BEGIN: its span is empty."""
    return Piece(tokenizer.piece(piece_id), piece_id, place, place)


def moved(pieces: Iterable[Piece], by: int, most: int) -> Iterator[Piece]:
    """The pieces of a part, each with its place in the whole, which has `most` characters."""
    for piece in pieces:
        yield Piece(piece.text, piece.id, min(piece.start + by, most), min(piece.end + by, most))


def with_written(
    reading: Reading,
    tokenizer: Tokenizer,
    answer: str,
    ids: Sequence[int],
    *,
    has_ended: bool,
    after: int | None = None,
) -> Reading:
    """The reading with what was written, and read but for the last: END, or without it the last of the ids.

    Of an answer that goes on in the text's own line, `after` is the place where it does.
    """
    size = len(answer) if after is None else len(reading.text) + len(answer)
    pieces = tuple(moved(tokenizer.places(ids, is_inner=after is not None), after or 0, size))
    last = special(tokenizer, END, size) if has_ended else pieces[-1] if pieces else None
    read = pieces if has_ended else pieces[:-1]
    return replace(reading, answer=answer, target=(*reading.target, *read), last=last)


def log_chances(logits: Float[Tensor, "N C"], *, several: bool) -> Float[Tensor, "N C"]:
    """The logarithm of each label's probability: of one label that all share it, of several each its own."""
    return F.logsigmoid(logits) if several else logits.log_softmax(-1)


def fit_temperature(logits: Float[Tensor, "N C"], wanted: Float[Tensor, "N C"], *, several: bool) -> float:
    """What to divide logits by for probabilities that are the likeliest for what was wanted (Guo 2017).

    `wanted` is 1 for the labels of a text and 0 for others. Where there is nothing to learn from, 1.
    """
    if not len(logits):
        return 1.0

    def cost(log_temperature: float) -> float:
        scaled = logits.double() / np.exp(log_temperature)
        loss = F.binary_cross_entropy_with_logits(scaled, wanted.double()) if several else -(
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
