"""Damage to the files of a checkpoint, a snapshot and a bundle is always detected: 300 random cases."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.bundle import load
from manyheads.errors import BundleError, CheckpointError
from manyheads.storage import MANIFEST, atomic_folder, verify_manifest, write_manifest
from manyheads.training import Checkpoints, Trainer

from training.doubling import Numbers, make_trainer

SEED = 9


def flip(good: bytes, rng: random.Random) -> bytes:
    position = rng.randrange(len(good))
    return good[:position] + bytes([good[position] ^ (1 << rng.randrange(8))]) + good[position + 1 :]


def cut(good: bytes, rng: random.Random) -> bytes:
    return good[: rng.choice([rng.randrange(len(good)), len(good) - 1])]


def lengthen(good: bytes, rng: random.Random) -> bytes:
    return good + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))


def empty(good: bytes, rng: random.Random) -> bytes:
    return b""


def scramble(good: bytes, rng: random.Random) -> bytes:
    """Another file of the same size."""
    return good[len(good) // 2 :] + good[: len(good) // 2] + (b"" if len(good) > 1 else b"?")


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, flip, flip, cut, cut, lengthen, empty, scramble)


def damage(folder: Path, rng: random.Random) -> tuple[Path, bytes]:
    """Damage one file of the folder; return it and its original content."""
    file = rng.choice(sorted(folder.iterdir()))
    good = file.read_bytes()
    bad = good
    while bad == good:
        bad = rng.choice(DAMAGES)(good, rng)
    file.write_bytes(bad)
    return file, good


def trainer_at(step: int) -> Trainer[Numbers]:
    trainer = make_trainer(ema_decay=0.9, steps=step)
    for _event in trainer.run():
        pass
    return trainer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    for step in (1, 2):
        Checkpoints(run, 2, "ours").save(trainer_at(step), snapshot=True)
    return run


def test_damaged_checkpoint_is_reported_and_the_previous_one_is_used(saved: Path, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for trial in range(140):
        run = tmp_path / str(trial)
        shutil.copytree(saved, run)
        file, _ = damage(run / "checkpoints" / "step-00000002", rng)
        trainer = make_trainer(ema_decay=0.9)
        (warning,) = Checkpoints(run, 2, "ours").restore(trainer)
        assert trainer.step == 1
        assert file.name in warning
        assert "\n" not in warning
        shutil.rmtree(run)


def test_damaged_snapshot_is_not_averaged(saved: Path, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    shutil.copytree(saved, tmp_path / "run")
    checkpoints = Checkpoints(tmp_path / "run", 2)
    for _trial in range(80):
        file, good = damage(tmp_path / "run" / "snapshots" / "step-00000002", rng)
        with pytest.raises(CheckpointError, match=rf"{file.name}.*Or delete it: the other snapshots are then averaged"):
            checkpoints.averaged()
        file.write_bytes(good)
    assert checkpoints.averaged()


def test_damaged_bundle_does_not_load(bundle_folder: Path) -> None:
    rng = random.Random(SEED)
    for _trial in range(80):
        file, good = damage(bundle_folder, rng)
        with pytest.raises(BundleError, match=file.name) as caught:
            load(bundle_folder)
        assert "\n" not in str(caught.value)
        file.write_bytes(good)
    load(bundle_folder)


def sealed(folder: Path) -> Path:
    with atomic_folder(folder) as temporary:
        (temporary / "a").write_bytes(b"first")
        (temporary / "b").write_bytes(b"second")
    return folder


def test_every_changed_bit_of_a_manifest_is_detected(tmp_path: Path) -> None:
    manifest = sealed(tmp_path / "thing") / MANIFEST
    good = manifest.read_bytes()
    for position in range(len(good)):
        for bit in range(8):
            manifest.write_bytes(good[:position] + bytes([good[position] ^ (1 << bit)]) + good[position + 1 :])
            with pytest.raises(CheckpointError):
                verify_manifest(tmp_path / "thing", CheckpointError)
        manifest.write_bytes(good[:position])
        with pytest.raises(CheckpointError, match=r"MANIFEST\.sha256 is damaged"):
            verify_manifest(tmp_path / "thing", CheckpointError)


def test_missing_line_of_a_manifest_is_detected(tmp_path: Path) -> None:
    """Without its first line, the digest of the others, a manifest is still valid, and the files are checked."""
    manifest = sealed(tmp_path / "thing") / MANIFEST
    first, *lines = manifest.read_text().splitlines(keepends=True)
    for missing in range(2):
        manifest.write_text(first + "".join(line for number, line in enumerate(lines) if number != missing))
        with pytest.raises(CheckpointError, match=r"MANIFEST\.sha256 is damaged"):
            verify_manifest(tmp_path / "thing", CheckpointError)
    manifest.write_text("".join(lines))
    assert verify_manifest(tmp_path / "thing", CheckpointError) == {"a", "b"}
    (tmp_path / "thing" / "b").write_bytes(b"Second")
    with pytest.raises(CheckpointError, match="b is damaged"):
        verify_manifest(tmp_path / "thing", CheckpointError)


def test_files_that_the_manifest_does_not_list_are_ignored(tmp_path: Path) -> None:
    (sealed(tmp_path / "thing") / ".DS_Store").write_bytes(b"x")
    assert verify_manifest(tmp_path / "thing", CheckpointError) == {"a", "b"}


def test_checkpoint_of_another_run_or_step_is_not_used(saved: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(saved, run)
    for step in (8, 9):  # later steps, so that they are tried first
        Checkpoints(tmp_path / "other", 2, "theirs").save(trainer_at(step), snapshot=False)
        name = f"step-{step:08d}"
        shutil.copytree(tmp_path / "other" / "checkpoints" / name, run / "checkpoints" / name)
    shutil.copytree(run / "checkpoints" / "step-00000001", run / "checkpoints" / "step-00000007")
    trainer = make_trainer(ema_decay=0.9)
    warnings = Checkpoints(run, 2, "ours").restore(trainer)
    assert trainer.step == 2
    assert [warning.split(" ", 1)[1].split(":")[0] for warning in warnings] == [
        "belongs to another run",
        "belongs to another run",
        "contains step 1, which contradicts its name.",
    ]
    # They are kept but do not count: the next save must not delete this run's checkpoints instead of them.
    trainer.step = 3
    Checkpoints(run, 2, "ours").save(trainer, snapshot=False)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [
        "step-00000002",
        "step-00000003",
        "step-00000007.unused",
        "step-00000008.unused",
        "step-00000009.unused",
    ]


def test_folder_with_another_name_is_not_a_checkpoint(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / "step-backup").mkdir()
    trainer = make_trainer(ema_decay=0.9)
    assert Checkpoints(tmp_path / "run", 2, "ours").restore(trainer) == []
    assert trainer.step == 2


def test_checkpoint_of_another_model_is_skipped(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "run")
    newest = tmp_path / "run" / "checkpoints" / "step-00000002"
    shutil.copy(newest / "optimizer.safetensors", newest / "weights.safetensors")
    write_manifest(newest)
    trainer = make_trainer(ema_decay=0.9)
    (warning,) = Checkpoints(tmp_path / "run", 2, "ours").restore(trainer)
    assert "does not fit this model" in warning
    assert trainer.step == 1
