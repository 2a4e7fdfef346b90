"""The order of a save, and what is swept away after one that died."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from manyheads.storage import atomic_folder, remove_partial
from manyheads.train import Checkpoints

from train.doubling import make_trainer


def record(patch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The calls that matter, each with the last part of the path it was for."""
    seen: list[tuple[str, str]] = []
    paths: dict[int, str] = {}
    opened, synced, renamed, removed = os.open, os.fsync, os.rename, shutil.rmtree

    def note_open(path, flags, *rest, **options):  # type: ignore[no-untyped-def]
        descriptor = opened(path, flags, *rest, **options)
        paths[descriptor] = Path(os.fsdecode(path)).name
        return descriptor

    def note_sync(descriptor: int) -> None:
        seen.append(("sync", paths[descriptor]))
        synced(descriptor)

    def note_rename(source, target, **options):  # type: ignore[no-untyped-def]
        seen.append(("rename to", Path(target).name))
        renamed(source, target, **options)

    def note_remove(path, *rest, **options):  # type: ignore[no-untyped-def]
        if Path(path).exists():
            seen.append(("remove", Path(path).name))
        removed(path, *rest, **options)

    patch.setattr(os, "open", note_open)
    patch.setattr(os, "fsync", note_sync)
    patch.setattr(os, "rename", note_rename)
    patch.setattr(shutil, "rmtree", note_remove)
    return seen


def test_files_then_name_then_folder_and_only_then_the_old_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    trainer = make_trainer(ema_decay=0.9)
    for trainer.step in (1, 2):
        checkpoints.save(trainer, snapshot=True)
    trainer.step = 3
    seen = record(monkeypatch)
    checkpoints.save(trainer, snapshot=True)
    monkeypatch.undo()
    named = seen.index(("rename to", "step-00000003"), seen.index(("rename to", "step-00000003")) + 1)
    files = ["ema.safetensors", "optimizer.safetensors", "progress.json", "weights.safetensors", "MANIFEST.sha256"]
    assert [name for _, name in seen[named - 6 : named - 1]] == files
    assert seen[named - 1][0] == "sync"  # the folder itself, still under its other name
    assert seen[named - 1][1].startswith(".step-00000003.")
    assert seen[named + 1] == ("sync", "checkpoints")
    assert seen[named + 2 :] == [("remove", "step-00000002"), ("remove", "step-00000001")]
    assert "remove" not in {kind for kind, _ in seen[: named + 2]}


def test_a_replaced_folder_goes_after_its_successor_has_its_name_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in ("old", "new"):
        seen = record(monkeypatch)
        with atomic_folder(tmp_path / "bundle") as aside:
            (aside / "a").write_text(content)
        monkeypatch.undo()
    kinds = [kind for kind, _ in seen]
    assert kinds == ["sync", "sync", "sync", "rename to", "rename to", "sync", "remove"]
    assert seen[-2] == ("sync", tmp_path.name)
    assert seen[-1][1].startswith(".bundle.old.")


def leave(parent: Path, prefix: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def test_what_killed_runs_left_is_swept_away_and_nothing_else(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    checkpoints.save(make_trainer(), snapshot=True)
    for kind in ("checkpoints", "snapshots"):
        (leave(tmp_path / kind, ".step-00000007.") / "weights.safetensors").write_text("half")
    mine = [tmp_path / "checkpoints" / name for name in (".step-notes", ".mine.abcdefgh", "step-00000000.unused")]
    for folder in mine:
        folder.mkdir()
    (tmp_path / "checkpoints" / ".step-00000008.abcdefgh").write_text("a file is not one of ours")
    checkpoints.sweep()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == sorted(
        [*(folder.name for folder in mine), "step-00000000", ".step-00000008.abcdefgh"]
    )
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["step-00000000"]


def test_a_folder_that_had_stepped_aside_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames: the old bundle is whole but has lost its place."""
    with atomic_folder(tmp_path / "bundle") as aside:
        (aside / "a").write_text("old")
    (tmp_path / "bundle").rename(leave(tmp_path, ".bundle.old.") / "bundle")
    remove_partial(tmp_path, "bundle")
    assert (tmp_path / "bundle" / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
