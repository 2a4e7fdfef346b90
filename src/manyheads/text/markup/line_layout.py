"""Layout of plain text: `content_spans` finds the text of each line, without indentation, bullets and numbers.

What is outside these spans is layout, which a translation repeats unchanged: line breaks of every kind, blank lines,
tabs and spaces around a line, rules such as -----, and `- `, `* `, `•`, `1. `, `(a) `, `> ` and `# ` at its start.
"""

import re
from collections.abc import Sequence

Span = tuple[int, int]

_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
LINE_BREAK = re.compile(f"[{_BREAKS}]")
_LINE = re.compile(f"[^{_BREAKS}]+")
_MARKS = re.compile(
    r"""
    (?: (?: [-–—*+•·▪◦‣●○■□►>] | \#{1,6} | ☐ | ☑ ) [ \t\u00a0\u3000]++   # - * • > #
      | [•·▪◦‣●○■□►] (?=\S)
      | \[[ xX]\] [ \t]++                                               # a task list: [x]
      | \(? (?: [0-9]{1,3} | [A-Za-z] | [ivxIVX]{1,4} ) \) [ \t\u00a0\u3000]++   # 1) a) (iv)
      | [0-9]{1,3} 、 [ \t]*+                                            # 1、
    )
    """,
    re.VERBOSE,
)
_LONGEST_LETTERS = 5  # characters of a letter or a Roman number with its bracket, in `_MARKS`
_NUMBER = re.compile(r"([0-9]{1,3})\.[ \t\u00a0\u3000]++(?=\S)")
# In these languages a number with a period is also an ordinal: "3. Mai".
_ORDINAL_LANGUAGES = "bs cs da de et fi hr hu is lv nb nn no pl sk sl sr tr"


def content_spans(text: str, language: str = "") -> list[Span]:
    """Return the span of the text of each line that has any, in order; `language` is a code such as "de" or empty.

    Lines without a letter, such as -----, ``` or 123, are layout.
    """
    # Most texts are one line that begins with a letter and is not a list item such as "a) " or "iv) ".
    if text[:1].isalpha() and ")" not in text[:_LONGEST_LETTERS] and text.isprintable() and not text[-1].isspace():
        return [(0, len(text))]
    return _content_spans(text, language)


def _content_spans(text: str, language: str) -> list[Span]:
    lines = [_stripped(text, *match.span()) for match in _LINE.finditer(text)]
    lines = [line for line in lines if _has_word(text, *line)]
    numbers = [_number(text, line) for line in lines]
    spans = [
        (_content_start(text, line, is_number=_is_list_number(numbers, index, language)), line[1])
        for index, line in enumerate(lines)
    ]
    return [(start, end) for start, end in spans if any(map(str.isalpha, text[start:end]))]


def _stripped(text: str, start: int, end: int) -> Span:
    line = text[start:end]
    return start + len(line) - len(line.lstrip()), start + len(line.rstrip())


def _number(text: str, line: Span) -> int | None:
    match = _NUMBER.match(text, *line)
    return int(match[1]) if match else None


def _is_list_number(numbers: Sequence[int | None], index: int, language: str) -> bool:
    """Return whether the number that starts a line numbers it; for an ordinal, if a line beside it has the next one."""
    number = numbers[index]
    if number is None:
        return False
    if not language or language[:2].lower() not in _ORDINAL_LANGUAGES.split():
        return True
    around = numbers[max(0, index - 1) : index + 2]
    return number - 1 in around or number + 1 in around


def _content_start(text: str, line: Span, *, is_number: bool) -> int:
    """Return where the text of a line starts after its bullets; a line of nothing but bullets is text."""
    start, end = line
    while True:
        match = _MARKS.match(text, start, end)
        if match is None and is_number:
            match, is_number = _NUMBER.match(text, start, end), False
        if match is None or not _has_word(text, match.end(), end):
            return start
        start = match.end()


def _has_word(text: str, start: int, end: int) -> bool:
    return any(map(str.isalnum, text[start:end]))
