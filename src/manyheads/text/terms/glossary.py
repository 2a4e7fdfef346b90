"""Glossaries: files of terms, and where the terms occur in a text, as whole words."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import line_name, read_lines
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.words import CHINESE_AND_KANA, is_blank

# Between two of these, a word goes on. Chinese words are not separated.
_LETTER = rf"(?![{CHINESE_AND_KANA}])[^\W_]"
_START = rf"(?:(?<![^\W_])|(?<=[{CHINESE_AND_KANA}]))"
_APOSTROPHES = "'’"


@dataclass(frozen=True)
class FoundTerm:
    """An occurrence of a term: the characters from `start` up to, but not including, `end`."""

    term: str
    start: int
    end: int


def find_terms(text: str, terms: Iterable[str], *, ignore_case: bool = False) -> list[FoundTerm]:
    """Return where terms occur in a text, in order; of those that overlap, the first and longest.

    Capitals do not matter, unless the term has one after its first character (IBM, New York). Any white space matches
    any other, and so do the two kinds of apostrophe and of accented letters.
    """
    folded = _fold(text)
    present = tuple(
        sorted((term for term in terms if _folded_term(term) in folded), key=lambda term: (-len(term), term))
    )
    if not present:
        return []
    found = []
    for match in _pattern(present, ignore_case).finditer(text):
        term = match[0] if match[0] in present else present[(match.lastindex or 1) - 1]
        found.append(FoundTerm(term, *match.span()))
    return found


@lru_cache(maxsize=1 << 15)
def _folded_term(term: str) -> str:
    return _fold(term)


def _fold(text: str) -> str:
    """A form in which a text contains a term wherever it may occur."""
    folded = unicodedata.normalize("NFC", " ".join(text.split()).replace("’", "'")).casefold()
    return unicodedata.normalize("NFC", folded)


@lru_cache(maxsize=1024)
def _pattern(terms: tuple[str, ...], ignore_case: bool) -> "re.Pattern[str]":
    """One group for each term; a longer one is tried before a shorter one."""
    return re.compile("|".join(f"({_term_pattern(term, ignore_case)})" for term in terms))


def _term_pattern(term: str, ignore_case: bool) -> str:
    words = unicodedata.normalize("NFC", term).split()
    is_exact = not ignore_case and any(map(str.isupper, term.strip()[1:]))
    body = r"\s+".join(
        "".join(_character_pattern(character, is_exact=is_exact) for character in word) for word in words
    )
    start = _START if re.match(_LETTER, words[0]) else ""
    end = rf"(?!{_LETTER})" if re.match(_LETTER, words[-1][-1]) else ""
    return f"{start}(?:{body}){end}" if is_exact else f"{start}(?i:{body}){end}"


def _character_pattern(character: str, *, is_exact: bool) -> str:
    if character in _APOSTROPHES:
        return f"[{_APOSTROPHES}]"
    ways = [character, unicodedata.normalize("NFD", character)]
    if character == "ß" and not is_exact:
        ways.append("ss")
    return "(?:" + "|".join(map(re.escape, dict.fromkeys(ways))) + ")"


def read_glossary(path: Path | str) -> dict[str, str]:
    """Return the target term of each source term of a file, which may be compressed as .gz or .zst.

    A line that is not a pair of terms, or that has another target for the source of an earlier line, raises DataError.
    """
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if is_blank(line) or line.startswith("#"):
            continue
        terms = [" ".join(term.split()) for term in line.split("\t")]
        if len(terms) != 2 or any(map(is_blank, terms)):
            raise DataError(
                _(
                    "{where}: {line!r} is not a source term, a tab and a target term. Correct the line, or put # "
                    "before it.",
                    where=line_name(path, number),
                    line=shortened(line),
                )
            )
        source, target = terms
        earlier = found.setdefault(source, (target, number))
        if earlier[0] != target:
            raise DataError(
                _(
                    "{where}: {term!r} has another target term in line {earlier}. Remove one of the two lines.",
                    where=line_name(path, number),
                    term=shortened(source),
                    earlier=earlier[1],
                )
            )
    if not found:
        raise DataError(_("{path} has no terms. Write one per line: a source term, a tab, a target term.", path=path))
    return {source: target for source, (target, _number) in found.items()}
