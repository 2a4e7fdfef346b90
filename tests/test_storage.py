"""Atomic folders, manifests, locks, and the cache folder."""

import os
import pwd
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from manyheads.errors import BundleError, TrainingError
from manyheads.storage import (
    LOCK,
    MANIFEST,
    atomic_folder,
    atomic_write,
    is_locked,
    locked,
    require_files,
    user_cache_folder,
    verify_manifest,
)


def write(path: Path, **files: bytes) -> Path:
    with atomic_folder(path) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
    return path


def check(folder: Path) -> None:
    require_files(folder, verify_manifest(folder, BundleError), ("a", "b"), BundleError)


def test_atomic_folder_is_valid_and_leaves_no_temporary_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"first", b=b"second")
    check(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_failed_write_leaves_the_old_folder_unchanged(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"old")
    with pytest.raises(RuntimeError), atomic_folder(folder) as temporary:
        (temporary / "a").write_bytes(b"new")
        raise RuntimeError("power cut")
    verify_manifest(folder, BundleError)
    assert (folder / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_all_users_may_read_and_only_the_owner_may_write(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"first", b=b"second")
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o644] * 3


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    def n_open() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = n_open()
    verify_manifest(write(tmp_path / "thing", a=b"first"), BundleError)
    atomic_write(tmp_path / "file", b"content")
    assert n_open() == before


def test_second_write_replaces_the_first(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"old", gone=b"x")
    write(folder, a=b"new")
    verify_manifest(folder, BundleError)
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "a"]


def test_old_folder_is_restored_if_the_last_rename_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "thing", a=b"old")
    rename = Path.rename

    def fail_once_filled(self: Path, target: Path) -> Path:
        if (self / MANIFEST).exists() and target == folder and (self / "a").read_bytes() == b"new":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once_filled)
    with pytest.raises(OSError, match="no"):
        write(folder, a=b"new")
    verify_manifest(folder, BundleError)
    assert (folder / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_every_flipped_bit_and_every_truncation_is_detected(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=bytes(range(200)), b=b"text")
    rng = random.Random(7)
    for trial in range(200):
        file = folder / rng.choice(["a", "b", MANIFEST])
        good = file.read_bytes()
        position = rng.randrange(len(good))
        flipped = bytes([good[position] ^ (1 << rng.randrange(8))])
        file.write_bytes(good[:position] if trial % 4 == 0 else good[:position] + flipped + good[position + 1 :])
        with pytest.raises(BundleError):
            check(folder)
        file.write_bytes(good)
    check(folder)


def test_all_faults_are_reported_together(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"1", b=b"2")
    (folder / "a").unlink()
    (folder / "b").write_bytes(b"3")
    with pytest.raises(BundleError, match=r"a is missing; b is damaged .* Copy the folder again"):
        check(folder)


def test_manifest_cannot_list_files_in_other_folders(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", a=b"1")
    with (folder / MANIFEST).open("a") as stream:
        stream.write("0" * 64 + "  ../../etc/passwd\n")
    with pytest.raises(BundleError, match=r"MANIFEST\.sha256 is damaged"):
        verify_manifest(folder, BundleError)


@pytest.mark.parametrize(
    ("make", "message"), [(False, "there is no such folder"), (True, "MANIFEST.sha256 is missing")]
)
def test_folder_without_a_manifest(tmp_path: Path, make: bool, message: str) -> None:
    folder = tmp_path / "other"
    if make:
        folder.mkdir()
    with pytest.raises(BundleError, match=message):
        verify_manifest(folder, BundleError)


def test_lock_is_refused_with_the_process_that_holds_it(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        assert is_locked(tmp_path)
        message = rf"in use by another run \(process {os.getpid()}\)\. Wait for it, or choose another folder with -o\."
        with pytest.raises(TrainingError, match=message), locked(tmp_path):
            pass
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def test_lock_without_a_recorded_holder_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / LOCK).write_text("")
        with pytest.raises(TrainingError, match=r"in use by another run\. Wait"), locked(tmp_path):
            pass


def test_waiting_for_a_lock(tmp_path: Path) -> None:
    order: list[str] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        with locked(tmp_path, wait=True):
            order.append("second")

    thread = threading.Thread(target=wait)
    with locked(tmp_path):
        thread.start()
        started.wait()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from manyheads.storage import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert is_locked(tmp_path)
        with pytest.raises(TrainingError, match=rf"\(process {process.pid}\)"), locked(tmp_path):
            pass
        process.kill()
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def test_cache_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = user_cache_folder("native")
    assert folder.parts[-2:] == ("manyheads", "native")
    if sys.platform == "linux":
        assert folder == tmp_path / "manyheads" / "native"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not ask for HOME")
def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs with a number as its user."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    assert user_cache_folder("native") == Path(tempfile.gettempdir()) / f"manyheads-{os.getuid()}" / "native"


def test_an_error_names_the_file_and_not_its_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(tmp_path / "none" / "file", b"content")
    assert caught.value.filename == str(tmp_path / "none" / "file")
