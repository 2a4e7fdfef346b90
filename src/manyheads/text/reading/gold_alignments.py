"""Gold word alignments: links between the words of a text and the words of its translation.

Three formats are read: Pharaoh, one sentence per line with links such as `3-4`; TALP, the same with `3p4` or `3?4`
for possible links; NAACL, one link per line, `sentence source target S|P`. Words are numbered from 0 if a 0 occurs,
else from 1. If the links do not fit the texts, they are tried with source and target swapped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _, join_and
from manyheads.text.reading.files import line_name
from manyheads.text.reading.readers import read_lines, read_pairs
from manyheads.text.suggestions import shortened

Link = tuple[int, int]

# Python refuses to convert numbers of thousands of digits; no text has so many words.
_PAIR = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")
_LINK = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SPsp]))?(?:\s+\S+)?")
_SEPARATOR = "|||"


@dataclass(frozen=True)
class AlignedPair:
    """The words of two texts and the gold links between them, numbered from 0. Sure links are also possible links."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]


def read_alignments(texts: Sequence[Path | str], links: Path | str) -> list[AlignedPair]:
    """Read sentence pairs and their gold links; the texts are two parallel files or one of `source ||| target` lines.

    Words are separated by spaces. A text without words raises, and so does a link to a word that does not exist.
    """
    pairs = list(_read_texts(texts))
    sentence_links = _read_links(Path(links), len(pairs))
    base = 0 if any(0 in link for _line, sure, possible in sentence_links for link in sure | possible) else 1
    for is_swapped in (False, True):
        invalid = _first_invalid_link(pairs, sentence_links, base, is_swapped=is_swapped)
        if invalid is None:
            return [
                _aligned_pair(source, target, sure, possible, base, is_swapped=is_swapped)
                for (source, target), (_line, sure, possible) in zip(pairs, sentence_links, strict=True)
            ]
    number, link, source, target = _first_invalid_link(pairs, sentence_links, base, is_swapped=False) or _NO_LINK
    raise DataError(
        _(
            "{where}: the link {i}-{j} is out of range: in {texts} the texts have {n_source} and {n_target} words. "
            "Give the texts that the links were made for.",
            where=line_name(links, number),
            i=link[0],
            j=link[1],
            texts=join_and(texts),
            n_source=len(source),
            n_target=len(target),
        )
    )


def _read_texts(texts: Sequence[Path | str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if len(texts) == 1:
        rows: Iterator[tuple[str, str]] = _split_lines(Path(texts[0]))
    else:
        rows = ((row[0], row[1]) for row in read_pairs(texts))
    for number, (source, target) in enumerate(rows, start=1):
        words = tuple(source.split()), tuple(target.split())
        if not all(words):
            raise DataError(
                _(
                    "{where}: a text without words cannot be aligned. Remove the pair.",
                    where=line_name(texts[0], number),
                )
            )
        yield words


def _split_lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        source, separator, target = line.partition(_SEPARATOR)
        if not separator:
            raise DataError(
                _(
                    "{where}: there is no {separator} between source and target. Give two parallel files, or one "
                    'file with "source {separator} target" on each line.',
                    where=line_name(path, number),
                    separator=_SEPARATOR,
                )
            )
        yield source, target


# For each sentence: its line in the file of links, its sure links, its possible links.
_SentenceLinks = list[tuple[int, set[Link], set[Link]]]


def _read_links(path: Path, n_pairs: int) -> _SentenceLinks:
    lines = list(read_lines(path))
    if any(_LINK.fullmatch(line.strip()) for line in lines[:1]):
        return _links_by_line(path, lines, n_pairs)
    if len(lines) != n_pairs:
        raise DataError(
            _(
                "{path} has {n_lines:,} lines of links, but there are {n_pairs:,} pairs. Write one line per pair.",
                path=path,
                n_lines=len(lines),
                n_pairs=n_pairs,
            )
        )
    sentence_links: _SentenceLinks = []
    for number, line in enumerate(lines, start=1):
        sure: set[Link] = set()
        possible: set[Link] = set()
        for cell in line.split():
            match = _PAIR.fullmatch(cell)
            if match is None:
                raise DataError(
                    _(
                        '{where}: "{link}" is not a link. Write 3-4, or 3p4 for a possible link.',
                        where=line_name(path, number),
                        link=shortened(cell),
                    )
                )
            (sure if match[2] == "-" else possible).add((int(match[1]), int(match[3])))
        sentence_links.append((number, sure, possible))
    return sentence_links


def _links_by_line(path: Path, lines: Sequence[str], n_pairs: int) -> _SentenceLinks:
    sentence_links: _SentenceLinks = [(1, set(), set()) for _pair in range(n_pairs)]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _LINK.fullmatch(line.strip())
        if match is None or not 1 <= int(match[1]) <= n_pairs:
            raise DataError(
                _(
                    '{where}: "{link}" is not a link of one of the {n_pairs:,} pairs. Write the numbers of the '
                    "sentence, the source word and the target word, from 1, and S or P.",
                    where=line_name(path, number),
                    link=shortened(line.strip()),
                    n_pairs=n_pairs,
                )
            )
        _line, sure, possible = sentence_links[int(match[1]) - 1]
        sentence_links[int(match[1]) - 1] = (number, sure, possible)
        (possible if (match[4] or "S").upper() == "P" else sure).add((int(match[2]), int(match[3])))
    return sentence_links


# The line of a link in its file, the link, and the words of the two texts.
_InvalidLink = tuple[int, Link, tuple[str, ...], tuple[str, ...]]
_NO_LINK: _InvalidLink = (0, (0, 0), (), ())


def _first_invalid_link(
    pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
    sentence_links: _SentenceLinks,
    base: int,
    *,
    is_swapped: bool,
) -> _InvalidLink | None:
    """Return the first link to a word that does not exist, or None."""
    for (source, target), (number, sure, possible) in zip(pairs, sentence_links, strict=True):
        first, second = (target, source) if is_swapped else (source, target)
        for i, j in sorted(sure | possible):
            if not (base <= i < len(first) + base and base <= j < len(second) + base):
                return number, (i, j), source, target
    return None


def _aligned_pair(
    source: tuple[str, ...],
    target: tuple[str, ...],
    sure: set[Link],
    possible: set[Link],
    base: int,
    *,
    is_swapped: bool,
) -> AlignedPair:
    renumbered = [
        frozenset((j - base, i - base) if is_swapped else (i - base, j - base) for i, j in links)
        for links in (sure, sure | possible)
    ]
    return AlignedPair(source, target, *renumbered)
