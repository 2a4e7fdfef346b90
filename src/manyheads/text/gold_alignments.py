"""Gold word alignments: which word of one text stands for which of another.

Three forms are read. A line a sentence with pairs `3-4`, as of Pharaoh; in it `3p4` (or `3?4`) may mark what is only
possible, as in the TALP files. Or a line a link, `sentence source target S|P`, as of the NAACL shared task. Words are
counted from 0 where a 0 occurs, else from 1; which text is meant by the first number is told by what fits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.errors import DataError
from manyheads.text.readers import read_lines, read_pairs
from manyheads.text.suggestions import shortened

Link = tuple[int, int]

_PAIR = re.compile(r"(\d+)([-p?])(\d+)")
_LINK = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SPsp]))?(?:\s+\S+)?")
_SEPARATOR = "|||"


@dataclass(frozen=True)
class AlignedPair:
    """Two texts as words, and gold links between them, counted from 0. What is sure is possible too."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    def swapped(self) -> "AlignedPair":
        """The same the other way round."""
        sure, possible = (frozenset((j, i) for i, j in links) for links in (self.sure, self.possible))
        return AlignedPair(self.target, self.source, sure, possible)


def read_alignments(texts: Sequence[Path | str], links: Path | str) -> list[AlignedPair]:
    """The pairs of two parallel files of words, or of one with `source ||| target` a line, and their gold links.

    Words are what spaces separate. Sentences without any word on a side are refused, as is a link to no word.
    """
    pairs = list(_read_texts(texts))
    given = _read_links(Path(links), len(pairs))
    base = 0 if any(0 in link for _, sure, possible in given for link in sure | possible) else 1
    for is_swapped in (False, True):
        misfit = _misfit(pairs, given, base, is_swapped=is_swapped)
        if misfit is None:
            return [
                _pair(source, target, sure, possible, base, is_swapped=is_swapped)
                for (source, target), (_, sure, possible) in zip(pairs, given, strict=True)
            ]
    number, link, source, target = _misfit(pairs, given, base, is_swapped=False) or (0, (0, 0), (), ())
    raise DataError(
        f"{links}, line {number}: the link {link[0]}-{link[1]} has no words in {' and '.join(map(str, texts))}, whose "
        f"texts have {len(source)} and {len(target)} there. Give the texts that the links were made for."
    )


def _read_texts(texts: Sequence[Path | str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if len(texts) == 1:
        rows: Iterator[tuple[str, str]] = _split_lines(Path(texts[0]))
    else:
        rows = ((row[0], row[1]) for row in read_pairs(texts))
    for number, (source, target) in enumerate(rows, start=1):
        words = tuple(source.split()), tuple(target.split())
        if not all(words):
            raise DataError(f"{texts[0]}, line {number}: a text without words cannot be aligned.")
        yield words


def _split_lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        source, separator, target = line.partition(_SEPARATOR)
        if not separator:
            raise DataError(
                f"{path}, line {number}: there is no {_SEPARATOR} between source and target. Give two parallel files, "
                f'or one with "source {_SEPARATOR} target" a line.'
            )
        yield source, target


# Of each sentence: the line it was told in, sure links, possible links.
_Given = list[tuple[int, set[Link], set[Link]]]


def _read_links(path: Path, n_pairs: int) -> _Given:
    lines = list(read_lines(path))
    if any(_LINK.fullmatch(line.strip()) for line in lines[:1]):
        return _links_by_line(path, lines, n_pairs)
    if len(lines) != n_pairs:
        raise DataError(
            f"{path} has {len(lines):,} lines of links, but the texts have {n_pairs:,} pairs. They must match."
        )
    given: _Given = []
    for number, line in enumerate(lines, start=1):
        sure: set[Link] = set()
        possible: set[Link] = set()
        for cell in line.split():
            match = _PAIR.fullmatch(cell)
            if match is None:
                raise DataError(f'{path}, line {number}: "{shortened(cell)}" is no link. Write 3-4, or 3p4 if unsure.')
            (sure if match[2] == "-" else possible).add((int(match[1]), int(match[3])))
        given.append((number, sure, possible))
    return given


def _links_by_line(path: Path, lines: Sequence[str], n_pairs: int) -> _Given:
    given: _Given = [(1, set(), set()) for _ in range(n_pairs)]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _LINK.fullmatch(line.strip())
        if match is None or not 1 <= int(match[1]) <= n_pairs:
            raise DataError(
                f'{path}, line {number}: "{shortened(line.strip())}" is no link of the {n_pairs:,} pairs. Write the '
                "numbers of sentence, source word and target word, counted from 1, and S or P."
            )
        _, sure, possible = given[int(match[1]) - 1]
        given[int(match[1]) - 1] = (number, sure, possible)
        (possible if (match[4] or "S").upper() == "P" else sure).add((int(match[2]), int(match[3])))
    return given


_Misfit = tuple[int, Link, tuple[str, ...], tuple[str, ...]]


def _misfit(
    pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], given: _Given, base: int, *, is_swapped: bool
) -> _Misfit | None:
    """The first link that leads to no word."""
    for (source, target), (number, sure, possible) in zip(pairs, given, strict=True):
        first, second = (target, source) if is_swapped else (source, target)
        for i, j in sorted(sure | possible):
            if not (base <= i < len(first) + base and base <= j < len(second) + base):
                return number, (i, j), source, target
    return None


def _pair(
    source: tuple[str, ...],
    target: tuple[str, ...],
    sure: set[Link],
    possible: set[Link],
    base: int,
    *,
    is_swapped: bool,
) -> AlignedPair:
    kept = [
        frozenset((j - base, i - base) if is_swapped else (i - base, j - base) for i, j in links)
        for links in (sure, sure | possible)
    ]
    return AlignedPair(source, target, *kept)
