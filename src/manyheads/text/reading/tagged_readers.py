"""Readers of tagged text: CoNLL columns (one word per line), parallel files and tables (one sentence per line).

A row holds the words, joined by single spaces, and as many IOB2 tags, whatever the tagging scheme of the file. The
scheme is detected over the whole file, so every file is read twice. White space inside a word or a tag (such as a
non-breaking space in a number) becomes "_", because spaces separate words; so does a word that is only a space.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from manyheads.errors import DataError
from manyheads.messages import Message, _, join_and
from manyheads.text.reading.files import (
    OnBad,
    check_readable,
    file_lines,
    first_lines,
    is_folder,
    line_name,
    raise_or_report,
)
from manyheads.text.reading.formats import format_of
from manyheads.text.reading.offset_spans import decode_spans, encode_spans, split_by_of, words_and_tags
from manyheads.text.reading.readers import numbered_rows
from manyheads.text.reading.row_spec import Row
from manyheads.text.reading.tag_schemes import (
    AnyScheme,
    detect_scheme,
    find_wrong_tag,
    is_tag,
    spans_to_tags,
    tags_to_spans,
)
from manyheads.text.suggestions import missing_name, shortened
from manyheads.text.tokens.words import SplitBy

FIELDS = ("text", "tags", "label")
TAGGED_FILES = ("seq.in", "seq.out", "label")

_DOCUMENT_START = "-DOCSTART-"
_COLUMN_NAMES = "# global.columns ="  # in CoNLL-U Plus
_BLANK = " \t\r"
_SPACES = re.compile(r"[ \t]+")
_WHITE_SPACE = re.compile(r"\s")
_N_LINES_FOR_LAYOUT = 5000
_LONGEST_SENTENCE = 100_000  # words: more than in any document; without blank lines, a whole file would be one sentence
_MAX_LISTED = 5  # errors in one message
_SETTINGS = ("text_column", "tags_column")


class _Sentence(NamedTuple):
    """Words and tags as they are in the file, the label if there is one, and the location for error messages."""

    words: list[str]
    tags: list[str]
    label: tuple[str, ...]
    where: Message
    faults: Sequence[DataError] = ()  # of spans that are left out


def read_tagged(
    paths: Path | str | Sequence[Path | str],
    *,
    word_column: str | None = None,
    tag_column: str | None = None,
    label_column: str | None = None,
    joint: bool = False,
    scheme: AnyScheme | None = None,
    on_bad: OnBad | None = None,
    on_fault: OnBad | None = None,
) -> Iterator[Row]:
    """Yield (words, tags) for every sentence, or (words, tags, label) if `joint`.

    `paths` is one of:

    - one file of CoNLL columns. Choose columns by number, from 1, or by name in CoNLL-U Plus. By default the tags are
      the last column that holds tags, and the words are the first of the others.
    - parallel files of words, tags and labels, or a folder with seq.in, seq.out and label.
    - one table as in `read_rows`, with columns "text", "tags" and "label". In JSON and Parquet the words and tags may
      be lists, or the tags spans of a raw text by character offsets.

    Invalid sequences of tags raise. With `on_fault`, or else `on_bad`, the errors are passed to it, and the tags are
    read leniently, as the CoNLL evaluation script reads them.
    """
    files = _files([paths] if isinstance(paths, Path | str) else paths, joint)
    for path in files:
        check_readable(path)
    columns = (word_column, tag_column, label_column)[: 3 if joint else 2]
    return _rows(files, columns, scheme, on_bad, on_fault or on_bad)


def _rows(
    files: Sequence[Path],
    columns: Sequence[str | None],
    scheme: AnyScheme | None,
    on_bad: OnBad | None,
    on_fault: OnBad | None,
) -> Iterator[Row]:
    read = _reader(files, columns)
    scheme = scheme or detect_scheme(sentence.tags for sentence in read(_ignore))
    is_empty = True
    wrong: list[DataError] = []
    for sentence in read(on_bad):
        is_empty = False
        error = find_wrong_tag(sentence.tags, scheme, sentence.where)
        if error is not None:
            wrong.append(error)
        if wrong:
            if len(wrong) == _MAX_LISTED:
                break
            continue
        for fault in sentence.faults:
            raise_or_report(fault, on_fault)
        spans = tags_to_spans(sentence.tags, scheme, where=sentence.where, on_bad=on_fault)
        tags = spans_to_tags(spans, len(sentence.tags), "IOB2")
        yield " ".join(sentence.words), " ".join(tags), *sentence.label
    if wrong:
        raise DataError(" ".join(map(str, wrong)))
    if is_empty:
        raise DataError(_("{path} has no sentence. Give a file with tagged text.", path=files[0]))


def _reader(files: Sequence[Path], columns: Sequence[str | None]) -> Callable[[OnBad | None], Iterator[_Sentence]]:
    """Return a function that reads all sentences each time it is called."""
    if len(files) > 1 or _has_sentence_per_line(files[0]):
        return partial(_line_sentences, files, columns)
    if len(columns) > 2:
        raise DataError(
            _("{path}: CoNLL columns have no sentence labels. Give three parallel files, or a table.", path=files[0])
        )
    return partial(_column_sentences, files[0], _Layout.detect(files[0], *columns))


def _files(paths: Sequence[Path | str], joint: bool) -> list[Path]:
    """Return the files to read; a folder is replaced by the parallel files in it."""
    files = [Path(path) for path in paths]
    names = TAGGED_FILES[: 3 if joint else 2]
    if len(files) == 1 and is_folder(files[0]) and all((files[0] / name).is_file() for name in names):
        return [files[0] / name for name in names]
    if len(files) not in (1, len(names)):
        given = ", ".join(map(str, files)) or _("no file given")
        raise DataError(
            _(
                "{files}: tagged text is read from one file or from three parallel files (words, tags, labels).",
                files=given,
            )
            if joint
            else _("{files}: tagged text is read from one file or from two parallel files (words, tags).", files=given)
        )
    return files


def _ignore(error: DataError) -> None:
    """Ignore lines that are not UTF-8; they are reported when the file is read the second time."""


# One sentence per line: parallel files and tables.


def _has_sentence_per_line(path: Path) -> bool:
    """Return whether each line is a sentence; a .tsv file with several tags in one cell is."""
    table = format_of(path)
    if table is None or not table.is_tab_separated:
        return table is not None
    cells = (cell.split() for line in _first_lines(path) for cell in line.split("\t"))
    return any(len(cell) > 1 and all(map(is_tag, cell)) for cell in cells)


def _first_lines(path: Path) -> list[str]:
    return [line for line in first_lines(path, _N_LINES_FOR_LAYOUT) if line.strip(_BLANK)]


def _line_sentences(files: Sequence[Path], columns: Sequence[str | None], on_bad: OnBad | None) -> Iterator[_Sentence]:
    converters = dict.fromkeys(FIELDS[:2], _joined)
    rows = numbered_rows(files, FIELDS[: len(columns)], columns, converters=converters, on_bad=on_bad)
    table = format_of(files[0])
    has_lines = table is None or table.has_lines
    split_by: SplitBy | None = None
    for number, (text, tag_text, *label) in rows:
        where = (
            Message("{path}, line {number}", path=files[0], number=number)
            if has_lines
            else Message("{path}, row {number}", path=files[0], number=number)
        )
        if (spans := decode_spans(tag_text)) is not None:
            split_by = split_by or split_by_of(_first_texts(files, columns))
            words, tags, faults = words_and_tags(text, spans, split_by, where)
            if words:
                yield _Sentence([*map(_word, words)], tags, tuple(label), where, faults)
            continue
        tags = _split(tag_text)
        words = _split(text)
        if len(words) != len(tags) and len(text.split()) == len(tags):
            words = text.split()  # some files separate words with other white space too
        if len(words) != len(tags):
            raise DataError(
                _(
                    "{where}: there are {n_words} words, but {n_tags} tags. Write one tag per word, separated by "
                    "single spaces.",
                    where=where,
                    n_words=len(words),
                    n_tags=len(tags),
                )
            )
        yield _Sentence([*map(_word, words)], [*map(_replace_spaces, tags)], tuple(label), where)


def _first_texts(files: Sequence[Path], columns: Sequence[str | None]) -> list[str]:
    rows = numbered_rows(files, FIELDS[:1], columns[:1], converters={"text": _joined}, on_bad=_ignore)
    return [row[0] for _number, row in islice(rows, _N_LINES_FOR_LAYOUT)]


def _joined(value: object) -> str | None:
    """Join a list of words or tags from JSON or Parquet, or encode a list of spans; return None for anything else."""
    if not isinstance(value, list):
        return None
    texts = [_word(item) for item in value if isinstance(item, str)]
    return " ".join(texts) if texts and len(texts) == len(value) else encode_spans(value)


def _split(text: str) -> list[str]:
    return [cell for cell in _SPACES.split(text) if cell]


def _replace_spaces(text: str) -> str:
    return _WHITE_SPACE.sub("_", text)


def _word(text: str) -> str:
    return _replace_spaces(text) or "_"


# CoNLL columns: one word per line.


@dataclass(frozen=True)
class _Layout:
    """The separator and number of columns of a CoNLL file, and the indices of the columns to read."""

    separator: str
    width: int
    word: int
    tag: int
    id: int | None = None  # the ID column of CoNLL-U, if there is one

    @classmethod
    def detect(cls, path: Path, word_column: str | None, tag_column: str | None) -> "_Layout":
        """Detect the layout from the first lines of the file."""
        lines = _first_lines(path)
        names = next((line.removeprefix(_COLUMN_NAMES).split() for line in lines if line.startswith(_COLUMN_NAMES)), [])
        word_lines = [line for line in lines if not line.startswith(("#", _DOCUMENT_START))] or lines
        if not word_lines:
            raise DataError(_("{path} has only blank lines. Give a file with text.", path=path))
        first = word_lines[0]
        separator = "\t" if "\t" in first.strip(_BLANK) else " "
        width = len(_cells(first, separator))
        if width < 2:
            raise DataError(
                _(
                    '{path}: "{line}" has one column. Write one word and its tag per line, separated by a tab '
                    "or a space, and a blank line between sentences.",
                    path=path,
                    line=shortened(first.strip()),
                )
            )
        names = names if len(names) == width else []
        rows = [cells for cells in (_cells(line, separator) for line in word_lines) if len(cells) == width]
        tag = _column_index(path, tag_column, width, names, _tag_column_index(rows))
        form = names.index("FORM") if "FORM" in names else int(tag == 0)
        word = _column_index(path, word_column, width, names, form)
        return cls(separator, width, word, tag, names.index("ID") if "ID" in names else None)


def _tag_column_index(rows: Sequence[Sequence[str]]) -> int:
    """Return the last column, unless fewer than half of its cells are tags and another column has more."""
    shares = [sum(map(is_tag, column)) / len(rows) for column in zip(*rows, strict=True)]
    if shares[-1] >= 0.5 or max(shares) < 0.5:
        return len(shares) - 1
    return shares.index(max(shares))


def _column_index(path: Path, column: str | None, width: int, names: Sequence[str], default: int) -> int:
    if column is None:
        return default
    numbers = [str(number) for number in range(1, width + 1)]
    known = numbers if column.isdecimal() or not names else list(names)
    if column not in known:
        raise DataError(missing_name(str(path), "column", column, known, join_and(_SETTINGS)))
    return known.index(column)


def _column_sentences(path: Path, layout: _Layout, on_bad: OnBad | None) -> Iterator[_Sentence]:
    words: list[str] = []
    tags: list[str] = []
    first = last = 0
    lines = chain(file_lines(path, on_bad), [""])
    for number, line in enumerate(lines, start=1):
        if not line.strip(_BLANK) or line.startswith(_DOCUMENT_START):
            if words:
                where = Message("{path}, lines {first} to {last}", path=path, first=first, last=last)
                yield _Sentence(words, tags, (), where)
            words, tags = [], []
            continue
        cells = _cells(line, layout.separator)
        if not words and _is_comment(line, cells, layout):
            continue
        if len(cells) != layout.width:
            raise DataError(
                _(
                    "{where}: the number of columns is {n_columns}, but should be {width}. {advice}",
                    where=line_name(path, number),
                    n_columns=len(cells),
                    width=layout.width,
                    advice=_("Check for a missing or an extra separator."),
                )
            )
        # CoNLL-U numbers multiword tokens 1-2 and empty nodes 1.1.
        if layout.id is not None and not cells[layout.id].isdecimal():
            continue
        if len(words) == _LONGEST_SENTENCE:
            raise DataError(
                _(
                    "{path}, lines {first} to {last}: the sentence has more than {most:,} words. Put a "
                    "blank line between sentences.",
                    path=path,
                    first=first,
                    last=last,
                    most=_LONGEST_SENTENCE,
                )
            )
        first, last = first if words else number, number
        words.append(_word(cells[layout.word]))
        tags.append(_replace_spaces(cells[layout.tag]))


def _cells(line: str, separator: str) -> list[str]:
    if separator == "\t":
        return line.rstrip("\r").split("\t")
    cells = _split(line.rstrip(_BLANK))
    # A line that starts with the separator tags the word " ".
    return ["", *cells] if line.startswith(" ") and len(cells) == 1 else cells


def _is_comment(line: str, cells: Sequence[str], layout: _Layout) -> bool:
    """Return whether a line is a comment; "#" with the expected number of columns and a tag is a word."""
    return line.startswith("#") and (len(cells) != layout.width or not is_tag(cells[layout.tag]))
