"""Shards of lines: the same lines that `read_lines` reads, whatever the files and their line ends are."""

import os
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.bulk import line_shards
from manyheads.bulk.line_shards import InputFile, LineSource, plan_shards
from manyheads.errors import DataError
from manyheads.text.reading.files import read_lines

LINE = st.sampled_from(["", "a", "中文", "x" * 30, "\ufeffmark", "u\u2028v", "\r"])
END = st.sampled_from(["\n", "\r\n"])
FILE = st.tuples(st.booleans(), st.lists(st.tuples(LINE, END), min_size=1, max_size=9), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(FILE, min_size=1, max_size=4), st.integers(1, 7), st.integers(1, 40))
def test_shards_have_the_lines_of_the_files_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[bool, list[tuple[str, str]], bool]],
    shard_lines: int,
    block: int,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for number, (has_bom, lines, ends) in enumerate(files):
        text = "".join(line + end for line, end in lines)
        text = text if ends else text.removesuffix("\n") + "end"
        paths.append(folder / str(number))
        paths[-1].write_bytes(text.encode("utf-8-sig" if has_bom else "utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_shards, "_BLOCK_BYTES", block)
        plan = plan_shards(paths, shard_lines)
    expected = list(chain.from_iterable(map(read_lines, paths)))
    source = LineSource(plan.files)
    parts = [list(source.lines(shard)) for shard in plan.shards]
    assert list(chain.from_iterable(parts)) == expected
    assert plan.n_lines == len(expected)
    assert [len(part) for part in parts[:-1]] == [shard_lines] * (len(parts) - 1)
    assert [(shard.first, shard.n_lines) for shard in plan.shards] == [
        (number * shard_lines, len(part)) for number, part in enumerate(parts)
    ]


def test_a_line_is_named_with_its_file_if_there_are_several(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("1\n2\n3\n")
    one, two = (plan_shards([tmp_path / name for name in names], 2) for names in ("a", "ab"))
    assert LineSource(one.files).name_line(3) == "Line 3"
    assert [LineSource(two.files).name_line(number) for number in (1, 3, 4)] == [
        f"{tmp_path / 'a'}, line 1",
        f"{tmp_path / 'a'}, line 3",
        f"{tmp_path / 'b'}, line 1",
    ]


@pytest.mark.parametrize("content", [b"good\n\xff\xfe\n", b"good\ncut off \xe4\xb8", b"", b"\xef\xbb\xbf"])
def test_what_read_lines_refuses_is_refused_with_the_same_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(DataError) as expected:
        list(read_lines(path))
    with pytest.raises(DataError) as error:
        plan_shards([path], 10)
    assert str(error.value) == str(expected.value)


def test_a_line_longer_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("manyheads.text.reading.files", "manyheads.bulk.line_shards"):
        monkeypatch.setattr(f"{module}.MAX_LINE_BYTES", 100)
    monkeypatch.setattr(line_shards, "_BLOCK_BYTES", 60)
    (tmp_path / "fits").write_text("x" * 99 + "\n" + "y" * 99 + "\n")
    assert plan_shards([tmp_path / "fits"], 10).n_lines == 2
    (tmp_path / "last").write_text("short\n" + "x" * 101)  # the last line, without a line end
    with pytest.raises(DataError, match="last, line 2 is longer than"):
        plan_shards([tmp_path / "last"], 10)
    (tmp_path / "long").write_text("short\n" + "x" * 100 + "\nshort\n")
    with pytest.raises(DataError, match="long, line 2 is longer than"):
        plan_shards([tmp_path / "long"], 10)


def test_a_disk_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_text("a\n")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(line_shards._Cutter, "add", fail)
    with pytest.raises(DataError, match=r"text cannot be read: Input/output error\.$"):
        plan_shards([path], 10)


def test_a_file_that_changes_during_the_job_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\nb\n")
    plan = plan_shards([path], 1)
    source = LineSource.from_table([vars(file) for file in plan.files])
    assert list(source.lines(plan.shards[1])) == ["b"]
    path.write_text("c\nd\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"text changed during the job\. Restore it"):
        list(source.lines(plan.shards[1]))


def test_the_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    from manyheads.storage import sha256_of

    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa\r\nb")
    (file,) = plan_shards([tmp_path / "text"], 5).files
    assert file == InputFile(
        str(tmp_path / "text"), sha256_of(tmp_path / "text"), 7, 2, (tmp_path / "text").stat().st_mtime_ns
    )
