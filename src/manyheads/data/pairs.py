"""`Pairs`: a parallel corpus as ids on disk, and the padded batches made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.data.ragged import Ragged, RaggedWriter
from manyheads.text.tokenizer import BEGIN, END, PAD, Tokenizer

_LINES_AT_ONCE = 10_000
_IDS = "int32"
_TEXT = "uint8"  # UTF-8
_SIDES = ("source", "target")


@dataclass(frozen=True)
class PairBatch:
    """Padded ids of some pairs. Each source ends with END; targets are shifted by BEGIN for what the decoder reads."""

    source: NDArray[np.int64]  # B × S
    target_read: NDArray[np.int64]  # B × T: BEGIN y_1 … y_n
    target_written: NDArray[np.int64]  # B × T: y_1 … y_n END

    @property
    def n_tokens(self) -> int:
        """Real target tokens: what the loss is averaged over."""
        return int((self.target_written != PAD).sum())


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences on disk, as ids and as text."""

    ids: tuple[Ragged, Ragged]
    texts: tuple[Ragged, Ragged]

    @classmethod
    def write(
        cls, folder: Path, pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, max_length: int
    ) -> "Counter[str]":
        """Tokenise pairs into a folder, in bounded memory; how many were kept, and why the others were not."""
        folder.mkdir(parents=True, exist_ok=True)
        counts: Counter[str] = Counter(kept=0)
        with ExitStack() as stack:
            ids = [stack.enter_context(RaggedWriter(folder / f"{side}-ids", _IDS)) for side in _SIDES]
            texts = [stack.enter_context(RaggedWriter(folder / f"{side}-text", _TEXT)) for side in _SIDES]
            for chunk in _chunks(pairs):
                columns = [tokenizer.encode_many([pair[side] for pair in chunk]) for side in (0, 1)]
                for pair, *encoded in zip(chunk, *columns, strict=True):
                    verdict = _verdict(encoded, max_length)
                    counts[verdict] += 1
                    if verdict == "kept":
                        for side in (0, 1):
                            ids[side].append(encoded[side])
                            texts[side].append(np.frombuffer(pair[side].encode(), np.uint8))
        return counts

    @classmethod
    def open(cls, folder: Path) -> "Pairs":
        """What `write` stored."""
        source_ids, target_ids = (Ragged(folder / f"{side}-ids", _IDS) for side in _SIDES)
        source_texts, target_texts = (Ragged(folder / f"{side}-text", _TEXT) for side in _SIDES)
        return cls((source_ids, target_ids), (source_texts, target_texts))

    def __len__(self) -> int:
        return len(self.ids[0])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """N × 2: the pieces of each source and target, with the one that ends it."""
        return np.stack([self.ids[0].lengths, self.ids[1].lengths], axis=1) + 1

    def text(self, side: int, index: int) -> str:
        """One sentence as it was given; side 0 is the source, 1 the target."""
        return self.texts[side][index].tobytes().decode()

    def batch(self, indices: NDArray[np.int64]) -> PairBatch:
        """These pairs, each in its likeliest pieces."""
        return make_batch(*([column[index] for index in indices.tolist()] for column in self.ids))

    def sampled_batch(
        self,
        indices: NDArray[np.int64],
        tokenizer: Tokenizer,
        *,
        strength: float,
        seed: int,
        max_length: int,
    ) -> PairBatch:
        """These pairs, each cut into pieces at random: a pure function of the arguments.

        A sentence whose random pieces would not fit into `max_length` keeps its likeliest ones.
        """
        columns = []
        for side in (0, 1):
            rows = indices.tolist()
            sampled = tokenizer.sample_many([self.text(side, row) for row in rows], strength, 2 * seed + side)
            columns.append(
                [ids if len(ids) < max_length else self.ids[side][row] for ids, row in zip(sampled, rows, strict=True)]
            )
        return make_batch(*columns)


def make_batch(sources: Sequence[ArrayLike], targets: Sequence[ArrayLike]) -> PairBatch:
    """Sequences of ids as a padded batch, with the ids that begin and end a sentence."""
    return PairBatch(
        source=pad(sources, after=END),
        target_read=pad(targets, before=BEGIN),
        target_written=pad(targets, after=END),
    )


def pad(sequences: Sequence[ArrayLike], *, before: int | None = None, after: int | None = None) -> NDArray[np.int64]:
    """Sequences of ids as rows of one array, filled up with PAD; `before` and `after` are put around each."""
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    start = 0 if before is None else 1
    extra = start + (0 if after is None else 1)
    rows = np.full((len(arrays), max((len(array) for array in arrays), default=0) + extra), PAD, dtype=np.int64)
    for row, array in zip(rows, arrays, strict=True):
        if before is not None:
            row[0] = before
        row[start : start + len(array)] = array
        if after is not None:
            row[start + len(array)] = after
    return rows


def _verdict(encoded: Sequence[Sequence[int]], max_length: int) -> str:
    if not all(encoded):
        return "empty"
    # One place is for the id that ends a sentence.
    return "kept" if max(map(len, encoded)) < max_length else "too long"


def _chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    iterator = iter(pairs)
    while chunk := list(islice(iterator, _LINES_AT_ONCE)):
        yield chunk
