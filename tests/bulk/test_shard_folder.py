"""The folder of a bulk job: complete shards or none, and no mixing of jobs."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import pytest

from manyheads.bulk.shard_folder import ShardFolder
from manyheads.errors import JobError
from manyheads.storage import locked

JOB: dict[str, Any] = {
    "format": 1,
    "bundle": "one",
    "input": [{"name": "text.en", "sha256": "aa", "lines": 3}],
    "options": {"as_json": False, "shard": 1},
    "shard_lines": 1000,
}


def write_text(text: str) -> Any:
    def write(stream: TextIO) -> Mapping[str, Any]:
        stream.write(text)
        return {"n": len(text)}

    return write


def test_shards_are_written_once_and_joined_in_order(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "new" / "job", 2)
    with folder.open(JOB):
        folder.write(1, write_text("b\n"))
        assert [folder.is_finished(number) for number in (0, 1)] == [False, True]
        folder.write(0, write_text("中\n"))
    with folder.open(JOB):
        assert [folder.is_finished(number) for number in (0, 1)] == [True, True]
    assert folder.record(0)["remarks"] == {"n": 2}
    assert sorted(path.name for path in folder.path.iterdir() if not path.name.startswith(".")) == [
        "000000.txt",
        "000001.txt",
        "job.json",
        "lock",
        "records",
    ]
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    folder.join(stream)
    assert stream.buffer.getvalue() == "中\nb\n".encode()  # type: ignore[attr-defined]


def test_names_of_a_million_shards_sort_by_their_characters() -> None:
    names = [ShardFolder(Path(), 10_000_001).file(number).name for number in (2, 10, 10_000_000)]
    assert names == sorted(names) == ["00000002.txt", "00000010.txt", "10000000.txt"]


@pytest.mark.parametrize("damage", ["truncate", "flip", "no record", "no shard"])
def test_a_damaged_shard_is_not_finished(tmp_path: Path, damage: str) -> None:
    folder = ShardFolder(tmp_path, 1)
    with folder.open(JOB):
        folder.write(0, write_text("answer\n"))
    if damage == "no record":
        (tmp_path / "records" / "000000.json").unlink()
    elif damage == "no shard":
        folder.file(0).unlink()
    else:
        folder.file(0).write_text("answe\n" if damage == "truncate" else "answep\n")
    assert not folder.is_finished(0)


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path, 1)

    def fail(stream: TextIO) -> Mapping[str, Any]:
        stream.write("half an ans")
        raise RuntimeError

    with folder.open(JOB):
        with pytest.raises(RuntimeError):
            folder.write(0, fail)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "lock", "records"]
        (tmp_path / ".000000.txt.0123abcd.partial").write_text("left by a killed writer")
    with folder.open(JOB):
        assert not list(tmp_path.glob(".*"))


def test_a_partial_file_may_be_gone_before_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / ".000000.txt.0123abcd.partial"  # renamed by its writer, or removed by it
    monkeypatch.setattr(Path, "glob", lambda *_: [gone])
    with ShardFolder(tmp_path, 1).open(JOB):
        pass


def test_the_description_of_a_job_can_be_read(tmp_path: Path) -> None:
    job = JOB | {"input": [{"name": "文本.zh", "sha256": "aa", "lines": 3}]}
    with ShardFolder(tmp_path, 1).open(job):
        pass
    content = (tmp_path / "job.json").read_text(encoding="utf-8")
    assert json.loads(content) == job
    assert "文本.zh" in content
    assert len(content.splitlines()) > len(job)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bundle": "two"}, "has answers of another bundle. Choose a new folder."),
        (
            {"input": [{"name": "text.en", "sha256": "bb", "lines": 3}]},
            "has answers to other text: text.en changed. Choose a new folder.",
        ),
        ({"input": JOB["input"] * 2}, "has answers to other files. Choose a new folder."),
        ({"options": {"as_json": True, "shard": 1}}, "has answers that were made with other options: as-json. Choose"),
        ({"shard_lines": 2000}, "was made with shard-lines 1000, not 2000. Choose a new folder."),
        ({"format": 2}, "was made by another version of manyheads"),
    ],
)
def test_the_folder_of_another_job_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = ShardFolder(tmp_path, 1)
    with folder.open(JOB | change):
        folder.write(0, write_text("answer\n"))
    given = JOB if "format" in change else JOB | change
    known = JOB | change if "format" in change else JOB
    (tmp_path / "job.json").write_text(json.dumps(known))
    with pytest.raises(JobError) as error, folder.open(given):
        pass
    assert message in str(error.value)
    assert folder.file(0).read_text() == "answer\n"


def test_folders_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="is a file, not a folder"), ShardFolder(tmp_path / "file", 1).open(JOB):
        pass
    with (
        pytest.raises(JobError, match="is not empty, and it is not a folder of shards"),
        ShardFolder(tmp_path, 1).open(JOB),
    ):
        pass
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "job.json").write_text("{")
    with pytest.raises(JobError, match="not valid JSON"), ShardFolder(tmp_path / "job", 1).open(JOB):
        pass


def test_two_jobs_cannot_use_one_folder_at_once(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(JobError, match="is in use by another process"),
        ShardFolder(tmp_path, 1).open(JOB),
    ):
        pass


def test_sync_writes_shards_and_records_before_the_folders_that_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ShardFolder(tmp_path / "job", 2)
    with folder.open(JOB):
        for number in range(2):
            folder.write(number, write_text("a\n"))
        synced: list[str] = []
        monkeypatch.setattr("manyheads.bulk.shard_folder.sync", lambda path: synced.append(path.name))
        folder.sync()
    files = [path.name for number in range(2) for path in (folder.file(number), folder._record_file(number))]
    assert synced == [*files, "records", "job"]
