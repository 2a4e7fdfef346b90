r"""Text files as lines: decompression, UTF-8 decoding, byte order marks, line ends.

A line ends at \n or \r\n only. Unicode defines more line separators (U+2028, U+0085, ...), but they occur inside
sentences, and splitting there would misalign every later line of a parallel corpus. Files are read lazily in constant
memory, whether plain or compressed as .gz or .zst.
"""

import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from manyheads.errors import DataError
from manyheads.text.suggestions import suggest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OnBad = Callable[[DataError], None]

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_UNPACK = "Decompress it, or compress it as .gz or .zst."
# Magic bytes of binary formats: the format's name, and what to do with such a file.
_MAGIC_BYTES = {
    b"\x1f\x8b": ("gzip", "Rename it to end in .gz."),
    b"\x28\xb5\x2f\xfd": ("zstd", "Rename it to end in .zst."),
    b"PAR1": ("Parquet", "Rename it to end in .parquet."),
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ\0": ("xz", _UNPACK),
    b"PK\x03\x04": ("zip", _UNPACK),
}
# Bytes 2 to 4 of a skippable zstd frame, with which a file may begin (magic numbers 0x184D2A50 to 0x184D2A5F).
_SKIPPABLE_FRAME = b"\x2a\x4d\x18"
_BUFFER_BYTES = 1 << 16


def read_lines(source: Path | str | Iterable[bytes], *, on_bad: OnBad | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or compressed, or of a binary stream such as standard input.

    Line ends are removed. An empty file raises; an empty stream has no lines. The first line that is not UTF-8
    raises. With `on_bad`, the error is passed to `on_bad` instead, and the line is yielded with U+FFFD in place of
    the invalid bytes.
    """
    if not isinstance(source, Path | str):
        return _decode_lines(source, "standard input", on_bad)
    path = Path(source)
    check_readable(path)
    return file_lines(path, on_bad)


def file_lines(path: Path, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    """Yield the lines of an existing file; `with_ends` keeps the line ends, which a CSV field may contain."""
    try:
        with path.open("rb") as file:
            stream = _decompressed(path, file)
            first = stream.readline()
            # Some editors save an empty file as a lone byte order mark.
            if first in (b"", _UTF8_BOM):
                raise empty_file_error(path)
            yield from _decode_lines(chain([first], stream), str(path), on_bad, with_ends=with_ends)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def check_readable(path: Path) -> None:
    """Raise unless `path` is a file; the error suggests a file with a similar name."""
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give a file in it.")
    if path.exists():
        return
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    files = [other.name for other in path.parent.iterdir() if other.is_file()]
    raise DataError(f"{path}: there is no such file.{suggest(path.name, files)}")


def empty_file_error(path: Path) -> DataError:
    """Return the error for a file without text."""
    return DataError(f"{path} is empty. Give a file with text.")


def raise_or_report(fault: DataError, on_bad: OnBad | None) -> None:
    """Raise `fault`, or pass it to `on_bad` if that is given."""
    if on_bad is None:
        raise fault from None
    on_bad(fault)


def is_compressed(path: Path) -> bool:
    """Return whether the file name ends in .gz or .zst."""
    return path.suffix.lower() in _COMPRESSIONS


def format_suffix(path: Path) -> str:
    """Return the suffix that names the format, in lower case: .tsv for pairs.tsv and for pairs.TSV.gz."""
    return Path(path.stem if is_compressed(path) else path).suffix.lower()


def _decode_lines(
    stream: Iterable[bytes], name: str, on_bad: OnBad | None, *, with_ends: bool = False
) -> Iterator[str]:
    for number, raw in enumerate(_without_bom(stream), start=1):
        line = raw
        if not with_ends:
            line = raw[:-2] if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise_or_report(_encoding_error(error, f"{name}, line {number}"), on_bad)
            text = line.decode(errors="replace")
        yield text


def _without_bom(stream: Iterable[bytes]) -> Iterator[bytes]:
    lines = iter(stream)
    first = next(lines, None)
    return lines if first is None else chain([first.removeprefix(_UTF8_BOM)], lines)


def _encoding_error(error: UnicodeDecodeError, where: str) -> DataError:
    line = error.object
    fault = f"{where}: byte {error.start + 1} of the line (0x{line[error.start]:02X}) is not UTF-8."
    kind, advice = _binary_format(line)
    if kind:
        return DataError(f"{fault} It may be {kind}. {advice}")
    encoding = _likely_encoding(line)
    return DataError(f"{fault} It may be {encoding}: convert it with iconv -f {encoding} -t UTF-8 FILE > NEW_FILE.")


def _likely_encoding(line: bytes) -> str:
    if line.startswith(_UTF16_BOMS):
        return "UTF-16"
    # In Chinese encodings high bytes come in pairs; in Western ones most accented letters are single bytes.
    if all(len(run) % 2 == 0 for run in re.findall(rb"[\x80-\xff]+", line)):
        try:
            line.decode("gb18030")
            return "GB18030"
        except UnicodeDecodeError:
            pass
    return "LATIN1"


def _binary_format(data: bytes) -> tuple[str, str]:
    """Return the binary format that starts like `data` and what to do with it; both empty if there is none."""
    return next((kind for magic, kind in _MAGIC_BYTES.items() if data.startswith(magic)), ("", ""))


def _decompressed(path: Path, file: io.BufferedReader) -> io.BufferedReader:
    """Return the stream of an open file's text, decompressed if its suffix is .gz or .zst."""
    start = file.peek(8)[:8]
    if not is_compressed(path) or not start:
        return file
    _check_compression(path, start)
    opened = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else zstd.ZstdFile(file)
    return io.BufferedReader(_DecompressedStream(path, cast("io.BufferedIOBase", opened)), _BUFFER_BYTES)


def _check_compression(path: Path, start: bytes) -> None:
    expected = _COMPRESSIONS[path.suffix.lower()]
    kind, advice = _binary_format(start)
    if kind == expected or (expected == "zstd" and start[1:4] == _SKIPPABLE_FRAME):
        return
    remedy = f"It looks like {kind}. {advice}" if kind else f"If it is plain text, remove {path.suffix} from its name."
    raise DataError(f"{path} is not {expected}, although its name ends in {path.suffix}. {remedy}")


class _DecompressedStream(io.RawIOBase):
    """A decompressing stream that raises DataError for truncated or corrupt data, with the path of the file.

    An early end without an error would silently lose text.
    """

    def __init__(self, path: Path, stream: io.BufferedIOBase) -> None:
        self._path = path
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        try:
            return self._stream.readinto(buffer)
        except EOFError:
            fault = "is truncated: its compressed data ends too early"
        except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
            fault = f"is corrupt ({error})"
        raise DataError(f"{self._path} {fault}. Copy or download it again.") from None
