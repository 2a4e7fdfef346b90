"""The readers of text: lines, tables, tagged text, documents, gold alignments, plain and compressed, mutated."""

import gzip
import io
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

from manyheads.corpora.conllu import read_trees
from manyheads.errors import DataError
from manyheads.text.reading.documents import read_documents
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.gold_alignments import read_alignments
from manyheads.text.reading.readers import columns_of, read_lines, read_pairs, read_rows
from manyheads.text.reading.row_spec import label_text, labels_converter, turns_converter
from manyheads.text.reading.tagged_readers import read_tagged

from fuzz.mutations import mutated

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_WORDS = (
    "a",
    "Two",
    "cats",
    "sleep",
    "né",
    "床前",
    "明月光",
    "👍🏽",
    "שלום",
    "x-1",
    "B-PER",
    "O",
    "3",
    "",
    "\u2028",
    "#",
)
_TAGS = ("O", "O", "B-PER", "I-PER", "E-PER", "S-LOC", "I-LOC", "B-", "O-PER")


def _text(rng: Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randrange(8)))


def _write(rng: Random, name: str, content: bytes) -> Path:
    """Write mutated content, sometimes compressed; compressed files are mutated before or after compression."""
    suffix = rng.choice(("", "", "", ".gz", ".zst"))
    if suffix:
        content = mutated(rng, content)
        content = gzip.compress(content, 1) if suffix == ".gz" else zstd.compress(content, 1)
    path = Path(name + suffix)
    path.write_bytes(mutated(rng, content) if not suffix or rng.random() < 0.3 else content)
    return path


def _on_bad(rng: Random) -> OnBad | None:
    return rng.choice((None, lambda error: None))


def _consume(rows: Iterable[object], *paths: Path) -> None:
    """Read everything; the files are deleted so that no later input can see them."""
    try:
        for row in rows:
            for text in row if isinstance(row, tuple) else (row,):
                assert isinstance(text, str)
                text.encode()
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _lines(rng: Random) -> bytes:
    return "".join(_text(rng) + rng.choice(("\n", "\n", "\r\n")) for _ in range(rng.randrange(6))).encode()


def lines(rng: Random) -> None:
    path = _write(rng, "lines.txt", _lines(rng))
    _consume(read_lines(path, on_bad=_on_bad(rng)), path)


def stream(rng: Random) -> None:
    _consume(read_lines(io.BytesIO(mutated(rng, _lines(rng))), on_bad=_on_bad(rng)))


def _columns(rng: Random) -> dict[str, str]:
    """The values of a row by column name."""
    return {"text": _text(rng), "label": rng.choice(("good", "bad", "1", "")), "id": str(rng.randrange(100))}


def _delimited(rng: Random, delimiter: str) -> bytes:
    rows = [_columns(rng) for _ in range(rng.randrange(5))]
    lines = [list(row.values()) for row in rows]
    if rng.random() < 0.8:
        lines.insert(0, ["text", "label", "id"])
    if delimiter != "\t":
        lines = [[f'"{cell}"' if rng.random() < 0.3 else cell for cell in line] for line in lines]
    return "".join(delimiter.join(line) + "\n" for line in lines).encode()


def _read_table(rng: Random, path: Path) -> None:
    chosen = rng.choice(((), ("text", "label"), ("1", "2"), ("id", "label"), ("3", "1"), ("0", "9"), ("Text", "")))
    convert = {"label": rng.choice((label_text, labels_converter("|"))), "text": turns_converter(" ")}
    with suppress(DataError):
        columns_of(path)
    _consume(read_rows([path], ("text", "label"), chosen, converters=convert, on_bad=_on_bad(rng)), path)


def tsv(rng: Random) -> None:
    _read_table(rng, _write(rng, "table.tsv", _delimited(rng, "\t")))


def csv(rng: Random) -> None:
    _read_table(rng, _write(rng, "table.csv", _delimited(rng, rng.choice((",", ",", ";")))))


def _value(rng: Random, depth: int = 0) -> object:
    plain = (_text(rng), 1, -1, 1.5, True, None, 10**30, float("inf"), float("nan"), "\ud800", "\0")
    if depth > 3 or rng.random() < 0.6:
        return rng.choice(plain)
    items = [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return items if rng.random() < 0.5 else {str(index): item for index, item in enumerate(items)}


def jsonl(rng: Random) -> None:
    rows = [{key: value if rng.random() < 0.95 else _value(rng) for key, value in _columns(rng).items()} for _ in "ab"]
    content = "".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n" for row in rows)
    _read_table(rng, _write(rng, "table.jsonl", content.encode("utf-8", "surrogatepass")))


def pairs(rng: Random) -> None:
    n_lines = rng.randrange(6)
    contents = ["".join(f"{_text(rng)}\n" for _ in range(n_lines)).encode() for _ in "st"]
    paths = [_write(rng, f"side.{number}", content) for number, content in enumerate(contents)]
    _consume(read_pairs(paths, on_bad=_on_bad(rng)), *paths)


def tagged(rng: Random) -> None:
    separator = rng.choice(("\t", " "))
    known = rng.choice((_TAGS, ("O", "B-PER")))
    sentences = [
        "".join(
            f"{rng.choice(_WORDS)}{separator}{'X' + separator if rng.random() < 0.1 else ''}{rng.choice(known)}\n"
            for _ in range(rng.randrange(5))
        )
        for _ in range(rng.randrange(4))
    ]
    suffix = rng.choice((".conll", ".tsv", ".txt", ".conllu"))
    path = _write(rng, f"tagged{suffix}", "\n".join(sentences).encode())
    column = rng.choice((None, None, None, None, "1", "2", "3", "FORM"))
    scheme = rng.choice((None, None, None, None, "IOB1", "IOB2", "BIOES", "BMES"))
    _consume(read_tagged(path, tag_column=column, scheme=scheme, on_bad=_on_bad(rng)), path)


def tagged_lines(rng: Random) -> None:
    rows = [(rng.choices(_WORDS, k=n), rng.choices(_TAGS, k=n)) for n in (rng.randrange(5) for _ in range(3))]
    if rng.random() < 0.5:
        contents = ["".join(" ".join(row[side]) + "\n" for row in rows).encode() for side in (0, 1)]
        paths = [_write(rng, name, content) for name, content in zip(("in", "out"), contents, strict=True)]
    else:
        content = "".join(json.dumps({"text": words, "tags": tags}) + "\n" for words, tags in rows)
        paths = [_write(rng, "rows.jsonl", content.encode())]
    _consume(read_tagged(paths, on_bad=_on_bad(rng)), *paths)


def documents(rng: Random) -> None:
    paths = [_write(rng, f"{number}.txt", _lines(rng)) for number in range(rng.randrange(1, 3))]
    kind = rng.choice(("file", "paragraph", "line"))
    given = [Path()] if rng.random() < 0.3 else paths
    column = rng.choice((None, None, None, "text"))
    try:
        _consume(read_documents(given, kind, column, on_bad=_on_bad(rng)))
    finally:
        for path in paths:
            path.unlink()


def alignments(rng: Random) -> None:
    n_pairs = rng.randrange(1, 4)
    sides = [[rng.choices("abc", k=rng.randrange(1, 5)) for _ in range(n_pairs)] for _ in "st"]
    paths = [
        _write(rng, f"words.{number}", "".join(" ".join(words) + "\n" for words in side).encode())
        for number, side in enumerate(sides)
    ]
    if rng.random() < 0.5:
        links = [f"{rng.randrange(4)}{rng.choice('-p?')}{rng.randrange(4)} " * rng.randrange(3) for _ in range(n_pairs)]
    else:
        links = [f"{rng.randrange(1, 4)} {rng.randrange(5)} {rng.randrange(5)} {rng.choice('SP')}" for _ in range(4)]
    paths.append(_write(rng, "links", "".join(link + "\n" for link in links).encode()))
    try:
        read_alignments(paths[:2], paths[2])
    finally:
        for path in paths:
            path.unlink()


@cache
def _parquet_files() -> list[bytes]:
    """Small files with strings, lists, nested and numeric columns, in several encodings and compressions."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(
        {
            "text": ["a", "né", "床前", ""],
            "label": ["good", "bad", None, "good"],
            "id": [1, 2, 3, 4],
            "turns": [["a", "b"], [], ["c"], ["d"]],
            "pair": [{"en": "a", "de": "b"}] * 4,
        }
    )
    contents = []
    for compression in ("none", "snappy", "zstd"):
        for use_dictionary in (False, True):
            stream = io.BytesIO()
            parquet.write_table(table, stream, compression=compression, use_dictionary=use_dictionary)
            contents.append(stream.getvalue())
    return contents


def parquet(rng: Random) -> None:
    path = Path("table.parquet")
    path.write_bytes(mutated(rng, rng.choice(_parquet_files()), 2))
    columns = rng.choice((("text", "label"), ("text", "id"), ("pair.en", "pair.de"), ("turns", "text"), ("pair", "x")))
    convert = {"label": label_text, "text": turns_converter(" ")}
    with suppress(DataError):
        columns_of(path)
    _consume(read_rows([path], ("text", "label"), columns, converters=convert, on_bad=_on_bad(rng)), path)


def conllu(rng: Random) -> None:
    sentences = []
    for _ in range(rng.randrange(3)):
        words = rng.choices(("du", "de", "le", "chat", "don't", "."), k=rng.randrange(1, 5))
        rows = [f"{n}\t{word}\t_\tX\t_\t_\t{rng.randrange(5)}\tnsubj:x\t_\t_" for n, word in enumerate(words, 1)]
        if rng.random() < 0.3:
            rows.insert(rng.randrange(len(rows)), f"{rng.randrange(3)}-{rng.randrange(5)}\tdu\t" + "_\t" * 7 + "_")
        if rng.random() < 0.3:
            rows.insert(0, f"# text = {' '.join(words)}")
        sentences.append("\n".join(rows) + "\n")
    path = _write(rng, "trees.conllu", "\n".join(sentences).encode())
    try:
        for _ in read_trees(path):
            pass
    finally:
        path.unlink()


def bombs(rng: Random) -> None:
    """Small compressed files that hold millions of lines, or lines of tens of megabytes."""
    unit = rng.choice((b"a", b"\n", b"a\n", b",", b"\t", b"[", b'"', b'{"text": "a"}\n', b"9", b"\xff", "床".encode()))
    content = unit * (1 << rng.choice((16, 18) if b"\n" in unit else (16, 20, 22)))
    name = rng.choice(("a.txt", "a.csv", "a.tsv", "a.jsonl", "a.conll")) + rng.choice((".gz", ".zst"))
    path = Path(name)
    pack = gzip.compress if name.endswith(".gz") else zstd.compress
    path.write_bytes(pack(content[: 1 << 24], 1) * rng.choice((1, 6)))
    read: Callable[[], Iterable[object]] = rng.choice(
        (
            lambda: read_lines(path),
            lambda: read_documents([path], rng.choice(("file", "paragraph", "line"))),
            lambda: read_tagged(path),
            lambda: read_rows([path], ("text",)),
            lambda: ((name,) for name in columns_of(path)),
        )
    )
    try:
        for _ in islice(read(), 100_000):
            pass
    finally:
        path.unlink()


def paths(rng: Random) -> None:
    """Paths that are not files, and names that no file can have."""
    Path("folder").mkdir(exist_ok=True)
    if not Path("loop").is_symlink():
        Path("loop").symlink_to("loop")
        Path("dangling").symlink_to("nowhere")
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind("socket")
    characters = "ab/.\0\n \u2028床\udcff~*"
    Path("file").write_text("a\n")
    special = (
        "file",
        "./file",
        "folder",
        "loop",
        "dangling",
        "socket",
        "folder/",
        "/dev/zero",
        "/dev/null",
        "/dev/full",
        "",
        ".",
        "/dev",
    )
    name = rng.choice((*special, "x" * 300, "x/" * 3000, "".join(rng.choices(characters, k=rng.randrange(20)))))
    name += rng.choice(("", "", "", ".gz", ".csv", ".jsonl.zst", ".parquet"))
    read: Callable[[Path], Iterable[object]] = rng.choice(
        (
            read_lines,
            read_tagged,
            columns_of,
            lambda path: read_rows([path], ("text", "label")),
            lambda path: read_pairs([path, rng.choice(("pipe", path))]),
            lambda path: read_documents([path]),
            lambda path: read_alignments([path, path], path),
            read_trees,
        )
    )
    for _ in read(Path(name)):
        pass


TARGETS: dict[str, Callable[[Random], None]] = {
    "lines": lines,
    "stream": stream,
    "tsv": tsv,
    "csv": csv,
    "jsonl": jsonl,
    "pairs": pairs,
    "tagged": tagged,
    "tagged-lines": tagged_lines,
    "documents": documents,
    "alignments": alignments,
    "conllu": conllu,
    "parquet": parquet,
    "paths": paths,
    "bombs": bombs,
}
