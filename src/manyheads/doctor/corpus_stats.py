"""`collect_stats`: one pass over a set of rows that collects the columns of numbers that the data checks need.

A text takes about 35 bytes, however long it is. Lines shown as examples are read again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from manyheads.data.cleaning import LENGTH_RATIO, CleanSettings, rejection_reason
from manyheads.doctor.character_classes import SCRIPTS, character_flags, script_table
from manyheads.errors import DataError
from manyheads.messages import Message
from manyheads.tasks.findings import MAX_EXAMPLES, excerpt
from manyheads.tasks.task_doctor import MAX_ROWS, Source
from manyheads.text.reading.readers import Row

N_TRIGRAMS = 1 << 16
_CHUNK_SIZE = 10_000  # rows
_CHUNK_CHARACTERS = 4_000_000
_LEADING_CHARACTERS = 500  # of each line, for language identification: one huge line must not outweigh all others
# A Chinese or Korean character counts as several letters: a Chinese sentence with an English name stays Chinese.
_LETTER_WEIGHTS = np.array([4 if name in ("Han", "Kana", "Hangul") else 1 for name in SCRIPTS[1:]], np.int32)

# UTF-8 that was decoded as Latin-1, Windows-1252 or GBK.
_MOJIBAKE = re.compile(
    "Ã[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|â€[\u0080-\u00bf™œ˜¦“”¢¡º]|Â[\u00a0-\u00bf]|ï»¿|锟斤拷|烫烫烫|屯屯屯"
)


@dataclass(frozen=True)
class CorpusStats:
    """The columns. A side is a text of a row: of pairs, side 0 is the source, side 1 the target."""

    source: Source
    read_error: str = ""  # why reading stopped before the end
    is_truncated: bool = False  # there are more rows than were examined
    row_hashes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    hashes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))  # ignoring case and spacing
    n_bytes: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    n_letters: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    scripts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 2), np.uint8))  # the most common of a line
    flags: NDArray[np.uint16] = field(default_factory=lambda: np.zeros((0, 2), np.uint16))  # character classes
    is_mojibake: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 2), np.bool_))
    has_stray_space: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 2), np.bool_))
    is_blank: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 2), np.bool_))
    is_ratio_outlier: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # by the cleaning rule
    trigrams: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, N_TRIGRAMS), np.int64))

    def __len__(self) -> int:
        return len(self.row_hashes)

    @property
    def name(self) -> str:
        """The name of the set."""
        return self.source.name

    @property
    def noun(self) -> Message:
        """What its rows are called."""
        return self.source.noun

    @property
    def sides(self) -> range:
        """The indices of a row's texts."""
        return range(self.source.n_texts)

    def examples(self, indices: Iterable[int], side: int | None = None) -> tuple[str, ...]:
        """Return the first few of these rows with file and line: all sides, or one."""
        wanted = sorted({int(index) for index in islice(indices, MAX_EXAMPLES)})
        found = dict(_select(self.source.read(), wanted))
        sides = tuple(self.sides) if side is None else (side,)
        return tuple(
            f"{self.source.location(index, sides[0])}: {' → '.join(excerpt(found[index][shown]) for shown in sides)}"
            for index in wanted
            if index in found
        )


def collect_stats(source: Source, clean: CleanSettings, max_rows: int = MAX_ROWS) -> CorpusStats:
    """Read a set once; unreadable text ends the pass and becomes `read_error`."""
    by_ratio = CleanSettings(
        max_ratio=clean.max_ratio, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False
    )
    chunks: list[dict[str, NDArray[np.generic]]] = []
    trigrams = np.zeros((source.n_texts, N_TRIGRAMS), np.int64)
    n_rows, is_truncated = 0, False
    faults: list[str] = []
    try:
        rows = iter(source.read())
        while not faults and (chunk := _take(rows, min(_CHUNK_SIZE, max_rows - n_rows), faults)):
            is_ratio_outlier = [len(trigrams) == 2 and rejection_reason(row, by_ratio) == LENGTH_RATIO for row in chunk]
            chunks.append({**_columns(chunk, trigrams), "is_ratio_outlier": np.array(is_ratio_outlier, np.bool_)})
            n_rows += len(chunk)
        is_truncated = not faults and n_rows == max_rows and next(rows, None) is not None
    except DataError as error:
        faults.append(str(error))
    read_error = faults[0] if faults else ""
    columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]} if chunks else {}
    return CorpusStats(source=source, read_error=read_error, is_truncated=is_truncated, trigrams=trigrams, **columns)


def trigram_ids(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the hash bucket of every character trigram."""
    wide = codes.astype(np.uint64)
    mixed = (wide[:-2] * np.uint64(961) + wide[1:-1]) * np.uint64(961) + wide[2:]
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(48)).astype(np.int64)


def code_points(lines: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points of lower-cased lines, with a line break around each line, and the start of each line.

    Lone surrogates become the replacement character.
    """
    joined = "\n" + "\n".join(line.lower() for line in lines) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32)
    return codes, np.concatenate([[0], np.flatnonzero(codes == 10)[1:-1]])


def leading_code_points(lines: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the `code_points` of the part of each line that is used for language identification."""
    return code_points([line[:_LEADING_CHARACTERS] for line in lines])


def _take(rows: Iterator[Row], count: int, faults: list[str]) -> list[Row]:
    """Return the next rows, fewer of long ones; an error is appended to `faults`, and the rows before it are kept."""
    taken: list[Row] = []
    n_characters = 0
    try:
        for row in islice(rows, count):
            taken.append(row)
            n_characters += sum(map(len, row))
            if n_characters >= _CHUNK_CHARACTERS:
                break
    except DataError as error:
        faults.append(str(error))
    return taken


def _columns(chunk: Sequence[Row], trigrams: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
    sides = []
    for side in range(len(trigrams)):
        lines = [row[side].strip("\n").replace("\n", " ") for row in chunk]
        codes, starts = code_points(lines)
        trigrams[side] += np.bincount(trigram_ids(leading_code_points(lines)[0]), minlength=N_TRIGRAMS)
        sides.append(_describe(lines, codes, starts))
    columns = {name: np.stack([described[name] for described in sides], axis=1) for name in sides[0]}
    return {"row_hashes": np.array([hash(row) for row in chunk], np.int64), **columns}


def _describe(
    lines: Sequence[str], codes: NDArray[np.uint32], starts: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    """Return the columns of one side."""
    flags = character_flags()[codes]
    flags[codes == 10] = 0  # the line breaks added by code_points
    flags[_is_within_number(codes)] = 0
    scripts = script_table()[codes]
    letters = np.stack(
        [np.add.reduceat(scripts == index, starts, dtype=np.int32) for index in range(1, len(SCRIPTS))]
    )  # without "none"
    n_letters = letters.sum(axis=0, dtype=np.int32)
    weighted = letters * _LETTER_WEIGHTS[:, None]
    folded = [" ".join(line.casefold().split()) for line in lines]
    has_mojibake = _MOJIBAKE.search("\n".join(lines)) is not None
    return {
        "hashes": np.array([hash(line) for line in folded], np.int64),
        "n_bytes": np.array([len(line.encode("utf-8", "replace")) for line in lines], np.int32),
        "n_letters": n_letters,
        "scripts": np.where(n_letters > 0, weighted.argmax(axis=0) + 1, 0).astype(np.uint8),
        "flags": np.bitwise_or.reduceat(flags, starts),
        "is_mojibake": np.array([has_mojibake and _MOJIBAKE.search(line) is not None for line in lines], np.bool_),
        "has_stray_space": np.array([line != line.strip() for line in lines], np.bool_),
        "is_blank": np.array([not line for line in folded], np.bool_),
    }


def _is_within_number(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which characters are commas or colons between digits (1,000, 9:30): half-width in any language."""
    is_digit = (codes >= ord("0")) & (codes <= ord("9"))
    is_within = (codes == ord(",")) | (codes == ord(":"))
    is_within[1:-1] &= is_digit[:-2] & is_digit[2:]
    return is_within


def _select(rows: Iterable[Row], wanted: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield the wanted rows by index, reading no further than the last."""
    if not wanted:
        return
    left = set(wanted)
    for index, row in enumerate(islice(rows, wanted[-1] + 1)):
        if index in left:
            yield index, row
