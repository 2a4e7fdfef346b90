"""`Pairs`: a parallel corpus as ids on disk, and the padded batches made of it."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.data.chunks import chunks
from manyheads.data.ragged import Mapped, Ragged, RaggedWriter
from manyheads.data.texts import Texts
from manyheads.text.tokenizer import BEGIN, END, PAD, Tokenizer

_IDS = "int32"
_ROWS = "rows"
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
    texts: Texts
    rows: Mapped  # which pair of the texts each of these is

    @classmethod
    def write(cls, folder: Path, texts: Texts, tokenizer: Tokenizer, max_length: int) -> "Counter[str]":
        """Tokenise texts into a folder, in bounded memory; how many were kept, and why the others were not."""
        folder.mkdir(parents=True, exist_ok=True)
        counts: Counter[str] = Counter(kept=0)
        with ExitStack() as stack:
            ids = [stack.enter_context(RaggedWriter(folder / f"{side}-ids", _IDS)) for side in _SIDES]
            rows = stack.enter_context((folder / _ROWS).open("wb"))
            start = 0
            for chunk in chunks(texts):
                columns = [tokenizer.encode_many([pair[side] for pair in chunk]) for side in (0, 1)]
                verdicts = [_verdict(pair, max_length) for pair in zip(*columns, strict=True)]
                kept = [place for place, verdict in enumerate(verdicts) if verdict == "kept"]
                counts.update(verdicts)
                for writer, column in zip(ids, columns, strict=True):
                    writer.extend(column if len(kept) == len(column) else [column[place] for place in kept])
                rows.write((np.array(kept, np.int64) + start).tobytes())
                start += len(chunk)
        return counts

    @classmethod
    def open(cls, folder: Path, texts: Texts) -> "Pairs":
        """What `write` stored of these texts."""
        source_ids, target_ids = (Ragged(folder / f"{side}-ids", _IDS) for side in _SIDES)
        return cls((source_ids, target_ids), texts, Mapped(folder / _ROWS, "int64"))

    def __len__(self) -> int:
        return len(self.ids[0])

    @property
    def lengths(self) -> NDArray[np.int32]:
        """N × 2: the pieces of each source and target, with the one that ends it."""
        lengths = np.empty((len(self), 2), dtype=np.int32)
        for side, column in enumerate(self.ids):
            lengths[:, side] = column.lengths
        lengths += 1
        return lengths

    def places(self, boundaries: Sequence[int]) -> list[int]:
        """Where pairs numbered so in the texts, or the next that were kept, stand here."""
        return np.searchsorted(self.rows.values, boundaries).tolist()

    def text(self, side: int, index: int) -> str:
        """One sentence as it was given; side 0 is the source, 1 the target."""
        return self.texts.text(side, int(self.rows.values[index]))

    def batch(self, indices: NDArray[np.int64]) -> PairBatch:
        """These pairs, each in its likeliest pieces."""
        batch = make_batch(*([column[index] for index in indices.tolist()] for column in self.ids))
        self._let_go()
        return batch

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
        batch = make_batch(*columns)
        self._let_go()
        return batch

    def _let_go(self) -> None:
        for mapped in (*self.ids, *self.texts.columns, self.rows):
            mapped.let_go()


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


def _verdict(encoded: tuple[list[int], ...], max_length: int) -> str:
    if not all(encoded):
        return "empty"
    # One place is for the id that ends a sentence.
    return "kept" if max(map(len, encoded)) < max_length else "too long"
