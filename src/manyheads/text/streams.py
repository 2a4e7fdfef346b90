r"""From bytes to lines: what a line is, what a byte order mark is, which bytes are UTF-8, what is compressed.

A line ends at \n or \r\n only. Unicode knows more line ends (U+2028, U+0085, ...), but they occur inside sentences,
and splitting there shifts every later line of a parallel corpus. Everything is read as it is asked for, in constant
memory, from plain files and from .gz and .zst alike.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from manyheads.errors import DataError
from manyheads.text.compression import binary_format, decompressed
from manyheads.text.suggestions import suggest

OnBad = Callable[[DataError], None]

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(source: Path | str | Iterable[bytes], *, on_bad: OnBad | None = None) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or compressed, or of a binary stream (standard input, say), without their ends.

    An empty file is refused; an empty stream has no lines. The first line that is not UTF-8 raises; with `on_bad`
    it is yielded with U+FFFD for what cannot be read, and `on_bad` is given the error, to count or to raise it.
    """
    if not isinstance(source, Path | str):
        return _decoded(source, "standard input", on_bad)
    path = Path(source)
    check_readable(path)
    return file_lines(path, on_bad)


def file_lines(path: Path, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    """The lines of a file that is there; their ends matter to CSV alone, where a field may hold them."""
    try:
        with path.open("rb") as file:
            stream = decompressed(path, file)
            first = stream.readline()
            # Some editors save an empty file as a lone byte order mark.
            if first in (b"", _UTF8_MARK):
                raise empty_file_error(path)
            yield from _decoded(chain([first], stream), str(path), on_bad, with_ends=with_ends)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def check_readable(path: Path) -> None:
    """Say at once, and helpfully, that there is nothing to read."""
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give a file in it.")
    if path.exists():
        return
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    files = [other.name for other in path.parent.iterdir() if other.is_file()]
    raise DataError(f"{path}: there is no such file.{suggest(path.name, files)}")


def empty_file_error(path: Path) -> DataError:
    """The error for a file without a single byte of text."""
    return DataError(f"{path} is empty. Give a file with text.")


def raise_or_report(fault: DataError, on_bad: OnBad | None) -> None:
    """Raise the fault, unless someone wants to be told of it instead."""
    if on_bad is None:
        raise fault from None
    on_bad(fault)


def _decoded(stream: Iterable[bytes], name: str, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    for number, raw in enumerate(_without_mark(stream), start=1):
        line = raw
        if not with_ends:
            line = raw[:-2] if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            text = _repaired(error, f"{name}, line {number}", on_bad)
        yield text


def _without_mark(stream: Iterable[bytes]) -> Iterator[bytes]:
    lines = iter(stream)
    first = next(lines, None)
    return lines if first is None else chain([first.removeprefix(_UTF8_MARK)], lines)


def _repaired(error: UnicodeDecodeError, where: str, on_bad: OnBad | None) -> str:
    """The line with U+FFFD for what cannot be read, if someone wants to be told of that."""
    line = error.object
    byte = f"byte {error.start + 1} of the line (0x{line[error.start]:02X})"
    raise_or_report(DataError(f"{where}: {byte} is not UTF-8. {_remedy(line)}"), on_bad)
    return line.decode(errors="replace")


def _remedy(line: bytes) -> str:
    kind, advice = binary_format(line)
    if kind:
        return f"It may be {kind}. {advice}"
    encoding = _likely_encoding(line)
    return f"It may be {encoding}: convert it with iconv -f {encoding} -t UTF-8 FILE > NEW_FILE."


def _likely_encoding(line: bytes) -> str:
    if line.startswith(_UTF16_MARKS):
        return "UTF-16"
    # In the Chinese encodings high bytes come in pairs; in the western ones accents mostly stand alone.
    if all(len(run) % 2 == 0 for run in re.findall(rb"[\x80-\xff]+", line)):
        try:
            line.decode("gb18030")
            return "GB18030"
        except UnicodeDecodeError:
            pass
    return "LATIN1"
