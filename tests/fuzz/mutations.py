"""Mutations of bytes: what damaged copies, wrong encodings and hostile authors do to a file."""

from collections.abc import Callable, Sequence
from random import Random

# Bytes that end lines elsewhere, that no UTF-8 text contains, or that formats treat as special.
_SNIPPETS = (
    b"\0",
    b"\0\0\0\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xff",
    b"\x80",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xcc\x81",
    b"\xe2\x80\xae",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\t",
    b"\x0b",
    b"\x0c",
    b"\x1e",
    b" ",
    b'"',
    b'""',
    b"'",
    b"\\",
    b"\\ud800",
    b"\\u0000",
    b",",
    b";",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"#",
    b"=",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1",
    b"0",
    b"-0.0",
    b"9" * 400,
    b"9" * 5000,
    b"1" + b"0" * 18,
    b"../",
    b"/",
)

_LARGEST = 30_000  # bytes: repeated parts may be repeated again


def _flip(rng: Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start : start + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(1, 9))


def _truncate(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _delete(rng: Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randrange(1, 40)]


def _insert(rng: Random, data: bytearray) -> None:
    at = rng.choice((0, len(data), rng.randrange(len(data)), rng.randrange(len(data))))
    data[at:at] = rng.choice(_SNIPPETS)


def _repeat_snippet(rng: Random, data: bytearray) -> None:
    """Insert a snippet many times: deep nesting, many columns, long runs."""
    at = rng.randrange(len(data))
    data[at:at] = rng.choice(_SNIPPETS) * rng.choice((10, 300, 3000))


def _repeat_part(rng: Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.randrange(1, 200)] * rng.randrange(1, 20)


def _swap(rng: Random, data: bytearray) -> None:
    middle = rng.randrange(len(data))
    data[:] = data[middle:] + data[:middle]


def _replace_all(rng: Random, data: bytearray) -> None:
    """Replace every occurrence of a byte: other line ends, other separators."""
    old = bytes([rng.choice(data)])
    data[:] = data.replace(old, rng.choice(_SNIPPETS), 50)


def _reencode(rng: Random, data: bytearray) -> None:
    text = data.decode("utf-8", "replace")
    data[:] = text.encode(rng.choice(("utf-16", "utf-16-le", "latin-1", "gb18030", "utf-32")), "replace")


_MUTATIONS: Sequence[Callable[[Random, bytearray], None]] = (
    _flip,
    _overwrite,
    _truncate,
    _delete,
    _insert,
    _insert,
    _repeat_snippet,
    _repeat_part,
    _swap,
    _replace_all,
    _reencode,
)


def mutated(rng: Random, content: bytes, max_mutations: int = 4) -> bytes:
    """Return the content after some random mutations; often none, so that valid files are tested as well."""
    data = bytearray(content)
    for _ in range(rng.choice((0, rng.randrange(max_mutations + 1)))):
        if data:
            rng.choice(_MUTATIONS)(rng, data)
            del data[_LARGEST:]
    return bytes(data)
