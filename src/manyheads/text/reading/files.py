r"""Text files as lines: decompression, UTF-8 and UTF-16 decoding, byte order marks, line ends.

A line ends at \n or \r\n only. Unicode defines more line separators (U+2028, U+0085, ...), but they occur inside
sentences, and splitting there would misalign every later line of a parallel corpus. Files are read lazily in constant
memory, whether plain or compressed as .gz or .zst: a line of more than `MAX_LINE_BYTES` raises before it is read whole,
and so does a compressed file that expands as no text does.
"""

import codecs
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.text.suggestions import shortened, suggest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OnBad = Callable[[DataError], None]

UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_UNPACK = Message("Decompress it, or compress it as .gz or .zst.")
# Magic bytes of binary formats: the format's name, and what to do with such a file.
_MAGIC_BYTES = {
    b"\x1f\x8b": ("gzip", Message("Rename it to end in {suffix}.", suffix=".gz")),
    b"\x28\xb5\x2f\xfd": ("zstd", Message("Rename it to end in {suffix}.", suffix=".zst")),
    b"PAR1": ("Parquet", Message("Rename it to end in {suffix}.", suffix=".parquet")),
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ\0": ("xz", _UNPACK),
    b"PK\x03\x04": ("zip", _UNPACK),
}
# Bytes 2 to 4 of a skippable zstd frame, with which a file may begin (magic numbers 0x184D2A50 to 0x184D2A5F).
_SKIPPABLE_FRAME = b"\x2a\x4d\x18"
_BUFFER_BYTES = 1 << 16

# Longer than any book; without a limit, a small compressed file or /dev/zero could fill the memory with one line.
MAX_LINE_BYTES = 1 << 24
_MAX_FIRST_CHARACTERS = 1 << 26
# Text shrinks to a fifth or a tenth, repetitive logs to a hundredth.
MAX_EXPANSION = 200
_EXPANSION_CHECKED_FROM = 1 << 28  # bytes: smaller texts are harmless
_SPECIAL_FILES = {
    stat.S_IFIFO: Message("a pipe"),
    stat.S_IFSOCK: Message("a socket"),
    stat.S_IFCHR: Message("a device"),
    stat.S_IFBLK: Message("a device"),
}
_CONTINUING = [b"\n", *(bytes([byte]) for byte in range(0x80, 0xC0))]  # no part of a line starts with these
_MAX_SUGGESTED_FROM = 1000  # files of the folder


def read_lines(source: Path | str | BinaryIO, *, on_bad: OnBad | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or compressed, or of a binary stream such as standard input.

    Line ends are removed. An empty file raises; an empty stream has no lines. The first line that is not UTF-8
    raises. With `on_bad`, the error is passed to `on_bad` instead, and the line is yielded with U+FFFD in place of
    the invalid bytes. A path may be a pipe, since the lines are read once.
    """
    if not isinstance(source, Path | str):
        return _decode_lines(_raw_lines(source), _("standard input"), on_bad)
    path = Path(source)
    check_readable(path, may_be_pipe=True)
    return file_lines(path, on_bad)


def first_lines(path: Path, n_lines: int) -> list[str]:
    """Return the first lines of a file, at most `n_lines`, and fewer if they are very long.

    Bytes that are not UTF-8 are replaced, and too long lines are split: both are reported when the file is read.
    """
    lines = []
    n_characters = 0
    for line in islice(file_lines(path, lambda error: None, split_long=True), n_lines):
        lines.append(line)
        n_characters += len(line)
        if n_characters > _MAX_FIRST_CHARACTERS:
            break
    return lines


def file_lines(path: Path, on_bad: OnBad | None, *, with_ends: bool = False, split_long: bool = False) -> Iterator[str]:
    """Yield the lines of an existing file.

    `with_ends` keeps the line ends, which a CSV field may contain. A line of more than `MAX_LINE_BYTES` raises;
    `split_long` yields it in several parts instead.
    """
    try:
        with path.open("rb") as file:
            stream = _as_utf8(path, _decompressed(path, file))
            lines = _line_parts(stream) if split_long else _raw_lines(stream)
            first = next(lines, b"")
            # Some editors save an empty file as a lone byte order mark.
            if first in (b"", UTF8_BOM):
                raise empty_file_error(path)
            yield from _decode_lines(chain([first], lines), str(path), on_bad, with_ends=with_ends)
    except OSError as error:
        raise _unreadable(path, error) from None


def read_text(path: Path, most: int, on_bad: OnBad | None = None) -> str:
    """Return a whole file of at most `most` bytes as text, whatever the length of its lines."""
    try:
        with path.open("rb") as file:
            data = _as_utf8(path, _decompressed(path, file)).read(most + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if not data.removeprefix(UTF8_BOM):
        raise empty_file_error(path)
    if len(data) > most:
        raise DataError(
            _("{path} is larger than {limit} MiB, the limit of its format. Split it.", path=path, limit=most >> 20)
        )
    try:
        return data.removeprefix(UTF8_BOM).decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise_or_report(_encoding_error(error, line_name(path, number)), on_bad)
        return data.decode(errors="replace")


def byte_order_mark(path: Path) -> tuple[bytes, str]:
    """Return the byte order mark that a file starts with, b"" if it has none, and the encoding of the text after it."""
    try:
        with path.open("rb") as file:
            start = _decompressed(path, file).peek(4)[:4]
    except OSError as error:
        raise _unreadable(path, error) from None
    if start.startswith(UTF8_BOM):
        return UTF8_BOM, "utf-8"
    return _utf16_mark(start) or (b"", "utf-8")


def _utf16_mark(start: bytes) -> tuple[bytes, str] | None:
    """Return the byte order mark of UTF-16 text, and its encoding; None if the text begins otherwise."""
    if start.startswith(codecs.BOM_UTF32_LE):  # which begins as that of UTF-16 does
        return None
    return next(((mark, name) for mark, name in _UTF16_BOMS.items() if start.startswith(mark)), None)


def lines_at(path: Path, start: int, n_lines: int) -> Iterator[str]:
    """Yield `n_lines` lines of a plain UTF-8 file from the byte offset `start` on, as `read_lines` reads them."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            lines = islice(_raw_lines(file), n_lines)
            for line in lines if start else _without_bom(lines):
                yield _without_end(line).decode(errors="replace")
    except OSError as error:
        raise _unreadable(path, error) from None


def check_readable(path: Path, *, may_be_pipe: bool = False) -> None:
    """Raise unless `path` is a file; the error suggests a file with a similar name.

    A pipe or a device is refused unless `may_be_pipe`: most data is read more than once.
    """
    if "\0" in str(path):
        raise DataError(_("{path!r} is not the name of a file: it contains a NUL character.", path=str(path)))
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing_file_error(path) from None
    except OSError as error:
        raise _unreadable(shortened(str(path)), error) from None
    if kind == stat.S_IFDIR:
        raise DataError(_("{path} is a folder. Give a file in it.", path=path))
    if kind != stat.S_IFREG and (not may_be_pipe or is_compressed(path)):
        name = _SPECIAL_FILES.get(kind, _("a special file"))
        raise DataError(
            _("{path} is {kind}. Data is read more than once: write it to a file first.", path=path, kind=name)
        )


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder; False if the system refuses the path, as it does a very long one."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _missing_file_error(path: Path) -> DataError:
    if not is_folder(path.parent):
        return DataError(_("{path}: there is no folder {parent}.", path=path, parent=path.parent))
    try:
        files = [other.name for other in islice(path.parent.iterdir(), _MAX_SUGGESTED_FROM) if other.is_file()]
    except OSError:  # a folder whose files may be read but not listed
        files = []
    return DataError(_("{path}: there is no such file.{hint}", path=path, hint=suggest(path.name, files)))


def _unreadable(name: object, error: OSError) -> DataError:
    return DataError(_("{path} cannot be read: {reason}.", path=name, reason=error.strerror))


def line_name(path: object, number: int) -> str:
    """Return how errors name a line of a file: "data.tsv, line 3"."""
    return _("{path}, line {number}", path=path, number=number)


def empty_file_error(path: Path) -> DataError:
    """Return the error for a file without text."""
    return DataError(_("{path} is empty. Give a file with text.", path=path))


def expansion_error(path: Path) -> DataError:
    """Return the error for a compressed file that is no text."""
    return DataError(
        _(
            "{path} expands to more than {most} times its size, as no text does. Check what it contains.",
            path=path,
            most=MAX_EXPANSION,
        )
    )


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


def _raw_lines(stream: BinaryIO | io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines, each cut off after one byte more than a line may have."""
    return iter(partial(stream.readline, MAX_LINE_BYTES + 1), b"")


def _line_parts(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines; of a long line, parts that end between two characters."""
    while part := stream.readline(MAX_LINE_BYTES - 4):
        while not part.endswith(b"\n") and len(part) < MAX_LINE_BYTES and stream.peek(1)[:1] in _CONTINUING:
            part += stream.read(1)
        yield part


def _decode_lines(lines: Iterator[bytes], name: str, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    for number, raw in enumerate(_without_bom(lines), start=1):
        if len(raw) > MAX_LINE_BYTES:
            raise DataError(
                _(
                    "{where} is longer than {limit} MiB, the limit of a line. Check that it is text, and split it "
                    "into shorter lines.",
                    where=line_name(name, number),
                    limit=MAX_LINE_BYTES >> 20,
                )
            )
        line = raw if with_ends else _without_end(raw)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise_or_report(_encoding_error(error, line_name(name, number)), on_bad)
            text = line.decode(errors="replace")
        yield text


def _without_end(raw: bytes) -> bytes:
    return raw[:-2] if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")


def _without_bom(lines: Iterator[bytes]) -> Iterator[bytes]:
    first = next(lines, None)
    return lines if first is None else chain([first.removeprefix(UTF8_BOM)], lines)


def _encoding_error(error: UnicodeDecodeError, where: str) -> DataError:
    line = error.object
    fault = _(
        "{where}: byte {number} of the line (0x{byte:02X}) is not UTF-8.",
        where=where,
        number=error.start + 1,
        byte=line[error.start],
    )
    kind, advice = _binary_format(line)
    if kind:
        return DataError(_("{fault} It may be {kind}. {advice}", fault=fault, kind=kind, advice=advice))
    encoding = _likely_encoding(line)
    return DataError(
        _(
            "{fault} It may be {encoding}: convert it with iconv -f {encoding} -t UTF-8 FILE > NEW_FILE.",
            fault=fault,
            encoding=encoding,
        )
    )


def _likely_encoding(line: bytes) -> str:
    if line.startswith(codecs.BOM_UTF32_LE):
        return "UTF-32"
    # In Chinese encodings high bytes come in pairs; in Western ones most accented letters are single bytes.
    if all(len(run) % 2 == 0 for run in re.findall(rb"[\x80-\xff]+", line)):
        try:
            line.decode("gb18030")
            return "GB18030"
        except UnicodeDecodeError:
            pass
    return "LATIN1"


def _binary_format(data: bytes) -> tuple[str, Message | str]:
    """Return the binary format that starts like `data` and what to do with it; both empty if there is none."""
    return next((kind for magic, kind in _MAGIC_BYTES.items() if data.startswith(magic)), ("", ""))


def _decompressed(path: Path, file: io.BufferedReader) -> io.BufferedReader:
    """Return the stream of an open file's text, decompressed if its suffix is .gz or .zst."""
    start = file.peek(8)[:8]
    if not is_compressed(path) or not start:
        return file
    _check_compression(path, start)
    opened = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else zstd.ZstdFile(file)
    size = os.fstat(file.fileno()).st_size
    return io.BufferedReader(_DecompressedStream(path, cast("io.BufferedIOBase", opened), size), _BUFFER_BYTES)


def _as_utf8(path: Path, stream: io.BufferedReader) -> io.BufferedReader:
    """Return a stream as UTF-8; only one that begins with the byte order mark of UTF-16 has to be converted."""
    found = _utf16_mark(stream.peek(4)[:4])
    if found is None:
        return stream
    mark, encoding = found
    stream.read(len(mark))
    return io.BufferedReader(_Utf8Stream(path, stream, encoding), _BUFFER_BYTES)


def _check_compression(path: Path, start: bytes) -> None:
    expected = _COMPRESSIONS[path.suffix.lower()]
    kind, advice = _binary_format(start)
    if kind == expected or (expected == "zstd" and start[1:4] == _SKIPPABLE_FRAME):
        return
    remedy = (
        _("It looks like {kind}. {advice}", kind=kind, advice=advice)
        if kind
        else _("If it is plain text, remove {suffix} from its name.", suffix=path.suffix)
    )
    raise DataError(
        _(
            "{path} is not {expected}, although its name ends in {suffix}. {remedy}",
            path=path,
            expected=expected,
            suffix=path.suffix,
            remedy=remedy,
        )
    )


class _Utf8Stream(io.RawIOBase):
    """A stream of UTF-16 text as UTF-8. Invalid text raises DataError with the path of the file."""

    def __init__(self, path: Path, stream: io.BufferedReader, encoding: str) -> None:
        self._path = path
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        while not self._waiting:
            data = self._stream.read(_BUFFER_BYTES)
            try:
                self._waiting = self._decoder.decode(data, final=not data).encode()
            except UnicodeDecodeError:
                raise DataError(
                    _(
                        "{path} starts with the byte order mark of UTF-16, but is not valid UTF-16. Save it again as "
                        "UTF-8.",
                        path=self._path,
                    )
                ) from None
            if not data:
                break
        n_bytes = min(len(view), len(self._waiting))
        view[:n_bytes], self._waiting = self._waiting[:n_bytes], self._waiting[n_bytes:]
        return n_bytes


class _DecompressedStream(io.RawIOBase):
    """A decompressing stream that raises DataError for truncated or corrupt data, with the path of the file.

    An early end without an error would silently lose text. A file that expands as no text does raises as well.
    """

    def __init__(self, path: Path, stream: io.BufferedIOBase, compressed_size: int) -> None:
        self._path = path
        self._stream = stream
        self._n_left = max(_EXPANSION_CHECKED_FROM, MAX_EXPANSION * compressed_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        try:
            n_read = self._stream.readinto(buffer)
            self._n_left -= n_read
            if self._n_left >= 0:
                return n_read
            raise expansion_error(self._path)
        except EOFError:
            message = _(
                "{path} is truncated: its compressed data ends too early. Copy or download it again.", path=self._path
            )
        except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
            message = _("{path} is corrupt ({reason}). Copy or download it again.", path=self._path, reason=error)
        raise DataError(message) from None
