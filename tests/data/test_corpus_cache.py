"""The cache: entries are complete or absent, created once, and safe with concurrent processes."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from manyheads.data.corpus_cache import Cache, content_key
from manyheads.errors import DataError
from manyheads.storage import locked

# Both processes find no entry, build it, and rename it at about the same time.
MAKE = """
import sys, time
from pathlib import Path
from manyheads.data.corpus_cache import Cache
cache, name, me = Cache(Path(sys.argv[1])), "text-1", sys.argv[2]
assert cache.problem(name) == ""
with cache.create(name) as temporary:
    (cache.folder / f"ready-{me}").touch()
    while len(list(cache.folder.glob("ready-*"))) < 2:
        time.sleep(0.001)
    (temporary / "values").write_bytes(bytes(3_000_000) + me.encode())
print(cache.problem(name), (cache.folder / name / "values").read_bytes()[-1:].decode())
"""


def make(cache: Cache, content: str = "good") -> None:
    with cache.create("text-1") as temporary:
        (temporary / "values").write_text(content)


def test_entry_is_absent_then_valid_then_damaged_then_valid(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.problem("text-1") == ""
    make(cache)
    assert cache.problem("text-1") is None
    assert (cache.folder / "text-1").stat().st_mode & 0o777 == 0o755  # other users may share the cache
    values = cache.folder / "text-1" / "values"
    values.write_text("bad")
    assert (cache.problem("text-1") or "").endswith(
        "values is damaged (its SHA-256 is not the one in MANIFEST.sha256)."
    )
    make(cache)
    assert cache.problem("text-1") is None
    assert values.read_text() == "good"


def test_valid_entry_is_not_replaced(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    make(cache, "first")
    make(cache, "second")
    assert (tmp_path / "text-1" / "values").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "text-1"]


def test_an_entry_waits_for_the_lock_of_the_cache(tmp_path: Path) -> None:
    cache, is_held = Cache(tmp_path), threading.Event()

    def hold() -> None:
        with locked(tmp_path):
            is_held.set()
            time.sleep(0.1)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    make(cache)
    holder.join()
    assert cache.problem("text-1") is None


def test_failure_leaves_no_files(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with pytest.raises(DataError, match="no good"), cache.create("text-1") as temporary:
        (temporary / "values").write_text("half")
        raise DataError("no good")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_two_processes_create_the_same_entry_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", MAKE, str(tmp_path), me], stdout=subprocess.PIPE, text=True)
        for me in "AB"
    ]
    outputs = [process.communicate(timeout=120)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]  # both see the same valid entry
    assert outputs[0][0] == "None"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "ready-A", "ready-B", "text-1"]


def test_old_temporary_folders_are_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    make(cache)
    old, new, others = f".ids-{'2' * 64}.abc", f".ids-{'2' * 64}.def", ".ids-mine.abc"
    for name, days in ((old, 8), (new, 1), (others, 8)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - days * 86400,) * 2)
    make(cache)
    assert sorted(path.name for path in tmp_path.iterdir()) == [new, others, "lock", "text-1"]


def test_unwritable_cache_raises_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataError, match=r"the cache cannot be written \(.*\)\. Set the environment variable MANYHEADS_CACHE"
    ):
        make(Cache(tmp_path / "file" / "cache"))


def test_cache_is_beside_the_run_or_at_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Cache.beside(tmp_path / "runs" / "x").folder == Path(os.environ["MANYHEADS_CACHE"])
    monkeypatch.delenv("MANYHEADS_CACHE")
    assert Cache.beside(tmp_path / "runs" / "x").folder == tmp_path / "runs" / ".manyheads-cache"
    monkeypatch.chdir(tmp_path)
    assert Cache.beside(Path("runs/x")).folder == tmp_path / "runs" / ".manyheads-cache"


def test_content_key_depends_on_values() -> None:
    assert content_key({"a": 1, "b": [2]}) == content_key({"b": [2], "a": 1})
    assert content_key([["a", "b"], "c"]) != content_key([["a"], "b", "c"])
