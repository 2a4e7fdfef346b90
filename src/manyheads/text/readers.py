"""Readers of text files: line by line, or pair by pair, in constant memory and without silent loss.

Every format is a generator over `read_lines`, which alone knows what a line is, what a byte order mark is and
which bytes are UTF-8; a new format is one more such generator in `_PAIR_READERS`. What cannot be read is a
DataError with the file and the line; what is merely odd (a blank side, stray spaces) is passed on as it stands.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from manyheads.errors import DataError

Pair = tuple[str, str]

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(source: Path | str | Iterable[bytes]) -> Iterator[str]:
    r"""The lines of a UTF-8 file or of a binary stream (standard input, say), without their ends.

    A line ends at \n or \r\n only. Unicode knows more line ends (U+2028, U+0085, ...), but they occur inside
    sentences, and splitting there shifts every later line of a parallel corpus. An empty file is refused; an
    empty stream has no lines.
    """
    if not isinstance(source, Path | str):
        return _decoded(source, "standard input")
    path = Path(source)
    _refuse_unreadable(path)
    return _file_lines(path)


def read_pairs(
    paths: Sequence[Path | str], *, source_column: str | None = None, target_column: str | None = None
) -> Iterator[Pair]:
    """The (source, target) pairs of one .tsv or .jsonl file, or of two parallel files, line by line.

    TSV: two columns and no header; or columns by number, counted from 1; or by name, and then the first line is
    a header. Quotes are text like any other. JSONL: one object per line, by default with the keys "source" and
    "target". Whether the files are there is checked at once, what is in them as it is read.
    """
    files = [Path(path) for path in paths]
    named = ", ".join(map(str, files)) or "no file"
    if len(files) not in (1, 2):
        raise DataError(f"{named}: pairs come from one file ({_known_endings()}) or from two parallel ones.")
    for path in files:
        _refuse_unreadable(path)
    if (source_column is None) != (target_column is None):
        raise DataError(f"{named}: only one column is given. Give both source_column and target_column, or none.")
    if len(files) == 1:
        reader = _PAIR_READERS.get(files[0].suffix.lower())
        if reader is None:
            raise DataError(f"{named}: one file of pairs must end in {_known_endings()}. Rename it, or give two files.")
        return reader(files[0], source_column, target_column)
    if source_column is not None:
        raise DataError(f"{named}: two parallel files have no columns. Leave out source_column and target_column.")
    for path in files:
        if path.suffix.lower() in _PAIR_READERS:
            raise DataError(f"{path} holds pairs by itself. Give it alone, or give two files of plain lines.")
    return _read_parallel(files[0], files[1])


def _refuse_unreadable(path: Path) -> None:
    """Say at once, and helpfully, that there is nothing to read."""
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give a file in it.")
    if path.exists():
        return
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    files = [other.name for other in path.parent.iterdir() if other.is_file()]
    raise DataError(f"{path}: there is no such file.{_suggest(path.name, files)}")


def _file_lines(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as stream:
            lines = _decoded(stream, str(path))
            first = next(lines, None)
            # A lone byte order mark, as some editors save an empty file, is one line without an end.
            if first is None or (first == "" and stream.tell() == len(_UTF8_MARK)):
                raise DataError(f"{path} is empty. Give a file with text.")
            yield first
            yield from lines
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def _decoded(stream: Iterable[bytes], name: str) -> Iterator[str]:
    for number, raw in enumerate(stream, start=1):
        line = raw.removesuffix(b"\r\n") if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")
        if number == 1:
            line = line.removeprefix(_UTF8_MARK)
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            encoding = _likely_encoding(line, is_first=number == 1)
            raise DataError(
                f"{name}, line {number}: byte {error.start + 1} of the line (0x{line[error.start]:02X}) is not UTF-8. "
                f"It may be {encoding}: convert it with iconv -f {encoding} -t UTF-8 FILE > NEW_FILE."
            ) from None


def _likely_encoding(line: bytes, *, is_first: bool) -> str:
    if is_first and line.startswith(_UTF16_MARKS):
        return "UTF-16"
    # In the Chinese encodings high bytes come in pairs; in the western ones accents mostly stand alone.
    if all(len(run) % 2 == 0 for run in re.findall(rb"[\x80-\xff]+", line)):
        try:
            line.decode("gb18030")
            return "GB18030"
        except UnicodeDecodeError:
            pass
    return "LATIN1"


def _read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    sources, targets = _file_lines(source), _file_lines(target)
    pairs = 0
    for line in sources:
        partner = next(targets, None)
        if partner is None:
            raise _unequal(source, pairs + 1 + _count(sources), target, pairs)
        yield line, partner
        pairs += 1
    surplus = _count(targets)
    if surplus:
        raise _unequal(source, pairs, target, pairs + surplus)


def _count(lines: Iterator[str]) -> int:
    return sum(1 for _ in lines)


def _unequal(source: Path, source_lines: int, target: Path, target_lines: int) -> DataError:
    return DataError(
        f"{source} has {source_lines} lines, but {target} has {target_lines}. "
        "Line n of one must translate line n of the other: align them anew."
    )


def _read_tsv(path: Path, source_column: str | None, target_column: str | None) -> Iterator[Pair]:
    lines = _file_lines(path)
    first = next(lines).split("\t")
    width, source, target = 2, 0, 1
    has_header = False
    if source_column is not None and target_column is not None:
        width = len(first)
        source, target = (_place(column, first, f"{path}, line 1") for column in (source_column, target_column))
        has_header = not (source_column.isdecimal() and target_column.isdecimal())

    rows = chain([] if has_header else [first], (line.split("\t") for line in lines))
    number = 0
    for number, row in enumerate(rows, start=2 if has_header else 1):
        if len(row) != width:
            raise DataError(
                f"{path}, line {number}: the number of columns is {len(row)}, but should be {width}. Look for a "
                "missing or a stray tab; of more than two columns, say which with source_column and target_column."
            )
        yield row[source], row[target]
    if number == 0:
        raise DataError(f"{path} has a header, but no rows. Give a file with pairs.")


def _place(column: str, first: list[str], where: str) -> int:
    """Where a column stands: by number, or by its name in the header."""
    if not column.isdecimal():
        if first.count(column) > 1:
            raise DataError(f'{where}: there is more than one column "{column}". Give the columns by number, from 1.')
        known = first
    else:
        known = [str(number) for number in range(1, len(first) + 1)]
    if column not in known:
        raise DataError(_missing(where, "column", column, known))
    return known.index(column)


def _read_jsonl(path: Path, source_key: str | None, target_key: str | None) -> Iterator[Pair]:
    for number, line in enumerate(_file_lines(path), start=1):
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} is not JSON ({error}). Write one object per line.") from None
        if not isinstance(record, dict):
            raise DataError(f"{where} is not a JSON object. Write one object per line, in {{ }}.")
        yield _text(record, source_key or "source", where), _text(record, target_key or "target", where)


def _text(record: dict[str, object], key: str, where: str) -> str:
    if key not in record:
        raise DataError(_missing(where, "key", key, list(record)))
    value = record[key]
    if not isinstance(value, str):
        raise DataError(f'{where}: "{key}" is {_shortened(json.dumps(value))}, not a text. Write it in quotes.')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        surrogate = f"\\u{ord(value[error.start]):04x}"
        raise DataError(f'{where}: "{key}" holds half a character ({surrogate} without its other half).') from None
    return value


def _missing(where: str, word: str, name: str, known: list[str]) -> str:
    there = _shortened(", ".join(known)) if known else "none"
    return f'{where}: there is no {word} "{name}". There is: {there}.{_suggest(name, known)}'


def _suggest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _known_endings() -> str:
    return " or ".join(_PAIR_READERS)


_PAIR_READERS: dict[str, Callable[[Path, str | None, str | None], Iterator[Pair]]] = {
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
}
