"""Tagged text: CoNLL columns, one word a line with blank lines between, or parallel files and tables of whole lines.

Whatever the scheme of the tags, a row holds the words joined by one space and as many tags in IOB2. The scheme is that
of the whole file, so every file is read twice. White space inside a word or a tag (a non-breaking space in a number)
becomes "_", for a space is what separates them; so does a word that is nothing but a space.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from manyheads.errors import DataError
from manyheads.text.files import OnBad, check_readable, file_lines, format_suffix
from manyheads.text.readers import is_table, numbered_rows
from manyheads.text.row_spec import Row
from manyheads.text.suggestions import missing_name, shortened
from manyheads.text.tag_schemes import Scheme, detect_scheme, is_tag, spans_to_tags, tags_to_spans

FIELDS = ("text", "tags", "label")
TAGGED_FILES = ("seq.in", "seq.out", "label")

_DOCUMENT = "-DOCSTART-"
_NAMES = "# global.columns ="  # of CoNLL-U Plus
_BLANK = " \t\r"
_SPACES = re.compile(r"[ \t]+")
_WHITE = re.compile(r"\s")
_LOOK_AT = 5000  # lines that tell the columns
_SETTINGS = "text_column and tags_column"


class _Sentence(NamedTuple):
    """Words and tags as they were read, the label, if there is one, and where they stand in the file."""

    words: list[str]
    tags: list[str]
    label: tuple[str, ...]
    where: str


def read_tagged(
    paths: Path | str | Sequence[Path | str],
    *,
    word_column: str | None = None,
    tag_column: str | None = None,
    label_column: str | None = None,
    joint: bool = False,
    scheme: Scheme | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Row]:
    """The (words, tags) of every sentence or, where the tags are `joint` with a label, (words, tags, label).

    One file of CoNLL columns: columns by number, counted from 1, or by name where the file is CoNLL-U Plus; by default
    the last that holds tags and the first of the others. Or parallel files of words, tags and labels, or a folder
    with seq.in, seq.out and label. Or one .csv, .jsonl, .parquet or .tsv as in `read_rows`, with columns "text", "tags"
    and "label"; in JSONL and Parquet words and tags may be lists. Tags that are not valid raise, unless
    `on_bad` is given: then it is told of them, and they are read as the CoNLL evaluation reads them.
    """
    files = _files([paths] if isinstance(paths, Path | str) else paths, joint)
    for path in files:
        check_readable(path)
    return _rows(files, (word_column, tag_column, label_column)[: 3 if joint else 2], scheme, on_bad)


def _rows(
    files: Sequence[Path], columns: Sequence[str | None], scheme: Scheme | None, on_bad: OnBad | None
) -> Iterator[Row]:
    read = _reader(files, columns)
    used = scheme or detect_scheme(sentence.tags for sentence in read(_pass_over))
    found = False
    for sentence in read(on_bad):
        found = True
        spans = tags_to_spans(sentence.tags, used, where=sentence.where, on_bad=on_bad)
        tags = spans_to_tags(spans, len(sentence.tags), "IOB2")
        yield " ".join(sentence.words), " ".join(tags), *sentence.label
    if not found:
        raise DataError(f"{files[0]} has no sentence. Give a file with tagged text.")


def _reader(files: Sequence[Path], columns: Sequence[str | None]) -> Callable[[OnBad | None], Iterator[_Sentence]]:
    """What reads the sentences, as often as it is called."""
    if len(files) > 1 or _holds_whole_lines(files[0]):
        return partial(_whole_lines, files, columns)
    if len(columns) > 2:
        raise DataError(f"{files[0]}: columns of words have no labels. Give three parallel files, or a table.")
    return partial(_column_sentences, files[0], _Layout.found(files[0], *columns))


def _files(paths: Sequence[Path | str], joint: bool) -> list[Path]:
    """The files that are meant; a folder of parallel files stands for them."""
    files = [Path(path) for path in paths]
    wanted = TAGGED_FILES[: 3 if joint else 2]
    if len(files) == 1 and all((files[0] / name).is_file() for name in wanted):
        return [files[0] / name for name in wanted]
    if len(files) not in (1, len(wanted)):
        named = ", ".join(map(str, files)) or "no file"
        parallel = "three parallel ones (words, tags, labels)" if joint else "two parallel ones (words, tags)"
        raise DataError(f"{named}: tagged text comes from one file or from {parallel}.")
    return files


def _pass_over(_: DataError) -> None:
    """What is not UTF-8 is told of in the second reading."""


# Whole lines: parallel files and tables.


def _holds_whole_lines(path: Path) -> bool:
    """A .tsv may be either: where sentences are whole lines, tags stand beside one another."""
    if format_suffix(path) != ".tsv":
        return is_table(path)
    cells = (cell.split() for line in _first_lines(path) for cell in line.split("\t"))
    return any(len(cell) > 1 and all(map(is_tag, cell)) for cell in cells)


def _first_lines(path: Path) -> list[str]:
    return [line for line in islice(file_lines(path, _pass_over), _LOOK_AT) if line.strip(_BLANK)]


def _whole_lines(files: Sequence[Path], columns: Sequence[str | None], on_bad: OnBad | None) -> Iterator[_Sentence]:
    converters = dict.fromkeys(FIELDS[:2], _joined)
    rows = numbered_rows(files, FIELDS[: len(columns)], columns, converters=converters, on_bad=on_bad)
    word = "row" if format_suffix(files[0]) == ".parquet" else "line"
    for number, (text, tag_text, *label) in rows:
        where = f"{files[0]}, {word} {number}"
        tags = _split(tag_text)
        words = _split(text)
        if len(words) != len(tags) and len(text.split()) == len(tags):
            words = text.split()  # some write other white space between words as well
        if len(words) != len(tags):
            raise DataError(
                f"{where}: the number of words is {len(words)}, but of tags {len(tags)}. Give every word its tag, with "
                "one space between."
            )
        yield _Sentence([*map(_word, words)], [*map(_without_space, tags)], tuple(label), where)


def _joined(value: object) -> str | None:
    """Words or tags that JSON or Parquet holds as a list; each of them must be a text."""
    if not isinstance(value, list):
        return None
    texts = [_word(item) for item in value if isinstance(item, str)]
    return " ".join(texts) if len(texts) == len(value) else None


def _split(text: str) -> list[str]:
    return [cell for cell in _SPACES.split(text) if cell]


def _without_space(text: str) -> str:
    return _WHITE.sub("_", text)


def _word(text: str) -> str:
    return _without_space(text) or "_"


# Columns: one word a line.


@dataclass(frozen=True)
class _Layout:
    """How the lines of a file of columns come apart, and which of the cells matter."""

    separator: str
    width: int
    word: int
    tag: int
    number: int | None = None  # the column of CoNLL-U's ID, where there is one

    @classmethod
    def found(cls, path: Path, word_column: str | None, tag_column: str | None) -> "_Layout":
        """The layout that the first lines tell."""
        lines = _first_lines(path)
        names = next((line.removeprefix(_NAMES).split() for line in lines if line.startswith(_NAMES)), [])
        words = [line for line in lines if not line.startswith(("#", _DOCUMENT))] or lines
        if not words:
            raise DataError(f"{path} has only blank lines. Give a file with text.")
        separator = "\t" if "\t" in words[0].strip(_BLANK) else " "
        width = len(_cells(words[0], separator))
        if width < 2:
            raise DataError(
                f'{path}: "{shortened(words[0].strip())}" has one column. Write one word and its tag a line, a tab or '
                "a space between them and a blank line between sentences."
            )
        named = names if len(names) == width else []
        rows = [cells for cells in (_cells(line, separator) for line in words) if len(cells) == width]
        tag = _column_index(path, tag_column, width, named, _tag_column_index(rows))
        form = named.index("FORM") if "FORM" in named else int(tag == 0)
        word = _column_index(path, word_column, width, named, form)
        return cls(separator, width, word, tag, named.index("ID") if "ID" in named else None)


def _tag_column_index(rows: Sequence[Sequence[str]]) -> int:
    """The last column, unless mostly something else stands there and tags stand in another."""
    shares = [sum(map(is_tag, column)) / len(rows) for column in zip(*rows, strict=True)]
    if shares[-1] >= 0.5 or max(shares) < 0.5:
        return len(shares) - 1
    return shares.index(max(shares))


def _column_index(path: Path, column: str | None, width: int, names: Sequence[str], otherwise: int) -> int:
    if column is None:
        return otherwise
    numbers = [str(number) for number in range(1, width + 1)]
    known = numbers if column.isdecimal() or not names else list(names)
    if column not in known:
        raise DataError(missing_name(str(path), "column", column, known, _SETTINGS))
    return known.index(column)


def _column_sentences(path: Path, layout: _Layout, on_bad: OnBad | None) -> Iterator[_Sentence]:
    words: list[str] = []
    tags: list[str] = []
    first = last = 0
    lines = chain(file_lines(path, on_bad), [""])
    for number, line in enumerate(lines, start=1):
        if not line.strip(_BLANK) or line.startswith(_DOCUMENT):
            if words:
                yield _Sentence(words, tags, (), f"{path}, lines {first} to {last}")
            words, tags = [], []
            continue
        cells = _cells(line, layout.separator)
        if not words and _is_comment(line, cells, layout):
            continue
        if len(cells) != layout.width:
            raise DataError(
                f"{path}, line {number}: the number of columns is {len(cells)}, but should be {layout.width}. Look for "
                "a missing or a stray separator."
            )
        # Words that are two in one, and those that are only understood, are numbered 1-2 and 1.1.
        if layout.number is not None and not cells[layout.number].isdecimal():
            continue
        first, last = first if words else number, number
        words.append(_word(cells[layout.word]))
        tags.append(_without_space(cells[layout.tag]))


def _cells(line: str, separator: str) -> list[str]:
    if separator == "\t":
        return line.rstrip("\r").split("\t")
    cells = _split(line.rstrip(_BLANK))
    # A line that begins with the separator tags a space.
    return ["", *cells] if line.startswith(" ") and len(cells) == 1 else cells


def _is_comment(line: str, cells: Sequence[str], layout: _Layout) -> bool:
    """A "#" may also be a word: then it has as many columns as the others, and a tag."""
    return line.startswith("#") and (len(cells) != layout.width or not is_tag(cells[layout.tag]))
