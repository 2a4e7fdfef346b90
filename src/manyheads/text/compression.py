"""Compressed files as streams of bytes: gzip (.gz) and zstd (.zst), with all their members and frames.

What is cut short or damaged is a DataError where the reading stands, never an early end: a silent end would be a
silent loss of text.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import zstandard

from manyheads.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_KINDS = {".gz": "gzip", ".zst": "zstd"}
_UNPACK = "Unpack it, or pack it as .gz or .zst."
_SPECIAL_TOKENS = {
    b"\x1f\x8b": ("gzip", "End its name in .gz."),
    b"\x28\xb5\x2f\xfd": ("zstd", "End its name in .zst."),
    b"PAR1": ("Parquet", "End its name in .parquet."),
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ\0": ("xz", _UNPACK),
    b"PK\x03\x04": ("zip", _UNPACK),
}
# After the first byte; a zstd file may begin with frames to skip, marked 0x184D2A50 to 0x184D2A5F.
_SKIPPED_FRAME = b"\x2a\x4d\x18"
_CHUNK_BYTES = 1 << 16
# What a chunk of zstd unpacks to is limited by its length alone: repetitive text shrinks a thousandfold.
_ZSTD_CHUNK_BYTES = 1 << 8


def is_compressed(path: Path) -> bool:
    """Whether the name says so."""
    return path.suffix.lower() in _KINDS


def format_suffix(path: Path) -> str:
    """The ending that says the format: .tsv of pairs.tsv and of pairs.TSV.gz."""
    return Path(path.stem if is_compressed(path) else path).suffix.lower()


def binary_format(beginning: bytes) -> tuple[str, str]:
    """Which binary format begins like this, and what to do with it; both empty when none does."""
    return next((kind for mark, kind in _SPECIAL_TOKENS.items() if beginning.startswith(mark)), ("", ""))


def decompressed(path: Path, file: io.BufferedReader) -> io.BufferedReader:
    """The bytes of an open file: as they are or, where its name says that they are compressed, unpacked."""
    if not is_compressed(path):
        return file
    _refuse_other_kinds(path, file.peek(8)[:8])
    chunks = _gzip_chunks(file) if path.suffix.lower() == ".gz" else _zstd_chunks(file)
    return io.BufferedReader(_ChunkStream(path, chunks), _CHUNK_BYTES)


def _refuse_other_kinds(path: Path, beginning: bytes) -> None:
    expected = _KINDS[path.suffix.lower()]
    kind, advice = binary_format(beginning)
    if not beginning or kind == expected or (expected == "zstd" and beginning[1:4] == _SKIPPED_FRAME):
        return
    remedy = f"It looks like {kind}. {advice}" if kind else f"If it is plain text, take {path.suffix} off its name."
    raise DataError(f"{path} is not {expected}, though its name ends in {path.suffix}. {remedy}")


def _gzip_chunks(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as text:
        while chunk := text.read(_CHUNK_BYTES):
            yield chunk


def _zstd_chunks(file: BinaryIO) -> Iterator[bytes]:
    # The package's own reader takes a frame that is cut short for the end of the file.
    decompressor = zstandard.ZstdDecompressor()
    frame = None
    rest = b""
    while packed := rest or file.read(_ZSTD_CHUNK_BYTES):
        frame = frame or decompressor.decompressobj()
        yield frame.decompress(packed)
        rest = frame.unused_data if frame.eof else b""
        frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError


class _ChunkStream(io.RawIOBase):
    """An iterator of bytes as a raw stream, so that the standard library cuts it into lines."""

    def __init__(self, path: Path, chunks: Iterator[bytes]) -> None:
        self._path = path
        self._chunks = chunks
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """As every raw stream that is read must say."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill the buffer as far as the next chunk goes; 0 at the end."""
        while not self._ready:
            chunk = self._next_chunk()
            if chunk is None:
                return 0
            self._ready = memoryview(chunk)
        space = memoryview(buffer).cast("B")
        count = min(len(space), len(self._ready))
        space[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next_chunk(self) -> bytes | None:
        again = "Copy or download it anew."
        try:
            return next(self._chunks, None)
        except EOFError:
            raise DataError(f"{self._path} is cut short: its compressed text does not end. {again}") from None
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise DataError(f"{self._path} is damaged ({error}). {again}") from None
