"""The order of operations in a save, and the removal of partial folders after a crash."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from manyheads.storage import atomic_folder, atomic_write, remove_partial
from manyheads.training import Checkpoints

from training.doubling import make_trainer


def record(patch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record syncs, renames and removals, each with the last part of its path."""
    calls: list[tuple[str, str]] = []
    paths: dict[int, str] = {}
    opened, synced, renamed, removed = os.open, os.fsync, os.rename, shutil.rmtree

    def record_open(path, flags, *rest, **options):  # type: ignore[no-untyped-def]
        descriptor = opened(path, flags, *rest, **options)
        paths[descriptor] = Path(os.fsdecode(path)).name
        return descriptor

    def record_sync(descriptor: int) -> None:
        calls.append(("sync", paths[descriptor]))
        synced(descriptor)

    def record_rename(source, target, **options):  # type: ignore[no-untyped-def]
        calls.append(("rename to", Path(target).name))
        renamed(source, target, **options)

    def record_remove(path, *rest, **options):  # type: ignore[no-untyped-def]
        if Path(path).exists():
            calls.append(("remove", Path(path).name))
        removed(path, *rest, **options)

    patch.setattr(os, "open", record_open)
    patch.setattr(os, "fsync", record_sync)
    patch.setattr(os, "rename", record_rename)
    patch.setattr(os, "replace", record_rename)
    patch.setattr(shutil, "rmtree", record_remove)
    return calls


def test_old_checkpoint_is_removed_after_the_new_one_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    trainer = make_trainer(ema_decay=0.9)
    for trainer.step in (1, 2):
        checkpoints.save(trainer, snapshot=True)
    trainer.step = 3
    calls = record(monkeypatch)
    checkpoints.save(trainer, snapshot=True)
    monkeypatch.undo()
    renamed_at = calls.index(("rename to", "step-00000003"), calls.index(("rename to", "step-00000003")) + 1)
    files = ["ema.safetensors", "optimizer.safetensors", "progress.json", "weights.safetensors", "MANIFEST.sha256"]
    assert [name for _, name in calls[renamed_at - 6 : renamed_at - 1]] == files
    assert calls[renamed_at - 1][0] == "sync"  # the folder itself, under its temporary name
    assert calls[renamed_at - 1][1].startswith(".step-00000003.")
    assert calls[renamed_at + 1] == ("sync", "checkpoints")
    assert calls[renamed_at + 2 :] == [("remove", "step-00000002"), ("remove", "step-00000001")]
    assert "remove" not in {kind for kind, _ in calls[: renamed_at + 2]}


def test_replaced_folder_is_removed_after_the_rename_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in ("old", "new"):
        calls = record(monkeypatch)
        with atomic_folder(tmp_path / "bundle") as temporary:
            (temporary / "a").write_text(content)
        monkeypatch.undo()
    kinds = [kind for kind, _ in calls]
    assert kinds == ["sync", "sync", "sync", "rename to", "rename to", "sync", "remove"]
    assert calls[-2] == ("sync", tmp_path.name)
    assert calls[-1][1].startswith(".bundle.old.")


def make_partial(parent: Path, prefix: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def test_only_partial_folders_are_removed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    checkpoints.save(make_trainer(), snapshot=True)
    for kind in ("checkpoints", "snapshots"):
        (make_partial(tmp_path / kind, ".step-00000007.") / "weights.safetensors").write_text("half")
    others = [tmp_path / "checkpoints" / name for name in (".step-notes", ".mine.abcdefgh", "step-00000000.unused")]
    for folder in others:
        folder.mkdir()
    (tmp_path / "checkpoints" / ".step-00000008.abcdefgh").write_text("a file is kept")
    checkpoints.sweep()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == sorted(
        [*(folder.name for folder in others), "step-00000000", ".step-00000008.abcdefgh"]
    )
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["step-00000000"]


def test_replaced_folder_is_restored_if_the_new_one_is_missing(tmp_path: Path) -> None:
    """The process was killed between the two renames."""
    with atomic_folder(tmp_path / "bundle") as temporary:
        (temporary / "a").write_text("old")
    (tmp_path / "bundle").rename(make_partial(tmp_path, ".bundle.old.") / "bundle")
    remove_partial(tmp_path, "bundle")
    assert (tmp_path / "bundle" / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_atomic_write_syncs_the_content_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = record(monkeypatch)
    atomic_write(tmp_path / "log", b"content")
    monkeypatch.undo()
    assert calls == [("sync", ".log.partial"), ("rename to", "log"), ("sync", tmp_path.name)]
