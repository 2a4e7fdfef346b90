import io
import sys
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.reading.readers import columns_of, read_pairs

from text.makers import Write, refuses

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def packed(columns: dict[str, object], row_group: int = 1000) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream, row_group_size=row_group)
    return stream.getvalue()


class TestPairs:
    def test_every_row_in_order(self, write: Write) -> None:
        sources = [f"line {number}\n👩\u200d👧\0" for number in range(2500)]
        targets = ["", *sources[:-1]]
        path = write("a.parquet", packed({"id": list(range(2500)), "target": targets, "source": sources}))
        assert list(read_pairs([path])) == list(zip(sources, targets, strict=True))

    def test_chosen_columns(self, write: Write) -> None:
        path = write("a.PARQUET", packed({"en": ["a"], "de": ["b"]}))
        assert list(read_pairs([path], source_column="de", target_column="en")) == [("b", "a")]
        assert list(read_pairs([path], source_column="en", target_column="en")) == [("a", "a")]

    def test_nested_columns(self, write: Write) -> None:
        path = write("a.parquet", packed({"id": [1], "translation": [{"en": "a", "de": "b"}], "x.y": ["c"]}))
        assert columns_of(path) == ["id", "translation.en", "translation.de", "x.y"]
        chosen = read_pairs([path], source_column="translation.de", target_column="translation.en")
        assert list(chosen) == [("b", "a")]
        assert list(read_pairs([path], source_column="x.y", target_column="translation.en")) == [("c", "a")]

    @pytest.mark.parametrize("kind", ["string", "large_string", "binary", "large_binary", "dictionary"])
    def test_every_string_type(self, write: Write, kind: str) -> None:
        values = pyarrow.array(["é", "é"])
        values = values.dictionary_encode() if kind == "dictionary" else values.cast(kind)
        assert list(read_pairs([write("a.parquet", packed({"source": values, "target": values}))])) == [("é", "é")] * 2

    def test_rows_are_read_in_constant_memory(self, write: Write) -> None:
        text = "a longer text, said over and over " * 30
        path = write(
            "a.parquet", packed({"source": [f"{n} {text}" for n in range(40_000)], "target": ["b"] * 40_000}, 40_000)
        )
        pool = pyarrow.default_memory_pool()
        before = pool.bytes_allocated()
        most = 0
        for number, _ in enumerate(read_pairs([path])):
            if number % 500 == 0:
                most = max(most, pool.bytes_allocated() - before)
        assert number == 39_999
        assert most < 12_000_000  # of 40 MB of text


class TestFaults:
    def test_invalid_columns(self, write: Write) -> None:
        path = write("a.parquet", packed({"sorce": ["a"], "target": ["b"], "id": [1]}))
        with refuses('*/a.parquet: there is no column "source". Available: sorce, target, id. Did you mean sorce?'):
            list(read_pairs([path]))
        with refuses('*/a.parquet: column "id" has type int64. Choose a column of strings.'):
            list(read_pairs([path], source_column="sorce", target_column="id"))
        twice = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 3, names=["source", "source", "target"])
        stream = io.BytesIO()
        parquet.write_table(twice, stream)
        with refuses('*/b.parquet: there are several columns "source". Rename all but one.'):
            list(read_pairs([write("b.parquet", stream.getvalue())]))

    def test_null_error_has_row(self, write: Write) -> None:
        texts: list[str | None] = ["a"] * 700
        texts[600] = None
        path = write("a.parquet", packed({"source": texts, "target": ["b"] * 700}))
        with refuses('*/a.parquet, row 601, column "source" is null, not a string. Remove or fill such rows.'):
            list(read_pairs([path]))

    def test_bad_utf8(self, write: Write) -> None:
        texts = pyarrow.array([b"a", b"sch\xf6n", b"c"]).view(pyarrow.string())
        path = write("a.parquet", packed({"source": texts, "target": ["x", "y", "z"]}))
        with refuses(
            '*/a.parquet, row 2, column "source": byte 4 (0xF6) is not UTF-8. Write the column again as UTF-8.'
        ):
            list(read_pairs([path]))
        errors: list[DataError] = []
        pairs = [(pair, len(errors)) for pair in read_pairs([path], on_bad=errors.append)]
        assert pairs == [(("a", "x"), 0), (("sch\ufffdn", "y"), 1), (("c", "z"), 1)]

    def test_file_without_rows(self, write: Write) -> None:
        none = pyarrow.array([], pyarrow.string())
        with refuses("*/a.parquet has columns, but no rows. Give a file with rows."):
            list(read_pairs([write("a.parquet", packed({"source": none, "target": none}))]))
        for read in (lambda path: list(read_pairs([path])), columns_of):
            with refuses("*/b.parquet is empty. Give a file with text."):
                read(write("b.parquet", b""))

    def test_corrupt_file_raises(self, write: Write) -> None:
        whole = packed({"source": [f"text {number * 7919}" for number in range(500)], "target": ["b"] * 500})
        for content in (b"source,target\na,b\n" * 9, whole[:-20], whole[: len(whole) // 2], b"PAR1"):
            for read in (lambda path: list(read_pairs([path])), columns_of):
                with refuses("*/a.parquet cannot be read as Parquet: *."):
                    read(write("a.parquet", content))
        damaged = whole[:40] + bytes(byte ^ 0xFF for byte in whole[40:400]) + whole[400:]
        with pytest.raises(DataError, match=r"a\.parquet"):
            list(read_pairs([write("a.parquet", damaged)]))

    def test_compressed_parquet_raises(self, write: Write) -> None:
        path = write("a.parquet.gz", b"")
        for read in (lambda path: read_pairs([path]), columns_of):
            with refuses("*/a.parquet.gz: .parquet files are compressed internally. Decompress it to a.parquet."):
                read(path)

    def test_without_pyarrow(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        path: Path = write("a.parquet", packed({"source": ["a"], "target": ["b"]}))
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        for read in (lambda path: read_pairs([path]), columns_of):
            with refuses('*/a.parquet: Parquet requires pyarrow. Install it: pip install "manyheads[parquet]".'):
                read(path)
