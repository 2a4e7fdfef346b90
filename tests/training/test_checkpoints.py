"""Checkpoints: restoring the newest valid one, reporting damage, deleting old ones, averaging snapshots."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from manyheads.errors import CheckpointError
from manyheads.model.weights import save_tensors
from manyheads.storage import write_manifest
from manyheads.training import Checkpoints, Trainer

from training.doubling import Numbers, make_trainer


def trainer_at(step: int) -> Trainer[Numbers]:
    """A trainer whose first weight equals its step."""
    trainer = make_trainer()
    trainer.step = step
    trainer.model[0].weight.data.fill_(step)  # type: ignore[index,operator,union-attr]
    return trainer


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_checkpoints_and_n_snapshots_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=3)
    for step in range(1, 6):
        checkpoints.save(trainer_at(step), snapshot=True)
    assert names(tmp_path / "checkpoints") == ["step-00000004", "step-00000005"]
    assert names(tmp_path / "snapshots") == ["step-00000003", "step-00000004", "step-00000005"]
    torch.testing.assert_close(checkpoints.averaged()["0.weight"], torch.full((8, 1), 4.0))


def test_a_damaged_checkpoint_is_reported_and_an_older_one_restored(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    for step in (10, 20):
        checkpoints.save(trainer_at(step), snapshot=True)
    weights = tmp_path / "checkpoints" / "step-00000020" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    trainer = trainer_at(0)
    (warning,) = checkpoints.restore(trainer)
    assert "weights.safetensors is damaged" in warning
    assert trainer.step == 10
    assert trainer.weights()["0.weight"][0].item() == 10.0
    assert names(tmp_path / "snapshots") == ["step-00000010"]  # step 20 will be trained again


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.safetensors"])
def test_a_checkpoint_or_snapshot_with_infinite_numbers_is_not_used(tmp_path: Path, file: str, value: float) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    checkpoints.save(trainer_at(10), snapshot=True)
    for folder in (tmp_path / "checkpoints" / "step-00000010", tmp_path / "snapshots" / "step-00000010"):
        path = folder / file
        if path.exists():
            save_tensors(load_file(path) | {"0.weight": torch.full((8, 1), value)}, path)
            write_manifest(folder)
    with pytest.raises(CheckpointError, match="has numbers that are NaN or infinite"):
        checkpoints.restore(trainer_at(0))
    if file == "weights.safetensors":
        with pytest.raises(CheckpointError, match="has numbers that are NaN or infinite"):
            checkpoints.averaged()


def test_without_a_checkpoint_a_run_starts_at_step_0(tmp_path: Path) -> None:
    trainer = trainer_at(0)
    assert Checkpoints(tmp_path, n_snapshots=1).restore(trainer) == []
    assert trainer.step == 0


def test_if_every_checkpoint_is_damaged_nothing_is_deleted(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    checkpoints.save(trainer_at(10), snapshot=True)
    (tmp_path / "checkpoints" / "step-00000010" / "progress.json").unlink()
    with pytest.raises(CheckpointError, match=r"No checkpoint can be used .*progress.json is missing.* with -o"):
        checkpoints.restore(trainer_at(0))
    assert names(tmp_path / "snapshots") == ["step-00000010"]


@pytest.mark.parametrize(
    ("progress", "message"),
    [
        ("{}", "does not have the expected content"),
        ("[" * 100_000, "nested more than 32 levels deep"),
        ('{"step": 10, "epoch": "x", "position": 0}', "does not have the expected content"),
        ('{"step": 10, "epoch": true, "position": 0}', "does not have the expected content"),
        ('{"step": 10, "epoch": 0, "position": -1}', "does not have the expected content"),
        ('{"step": 10, "epoch": 0, "position": 0, "notes": [1]}', "does not have the expected content"),
        ('{"step": 10, "epoch": 0, "position": 0, "notes": {"best": "x"}}', "does not have the expected content"),
        ('{"step": 11, "epoch": 0, "position": 0}', "which contradicts its name"),
    ],
    ids=lambda text: text[:60],
)
def test_hostile_progress_is_refused(tmp_path: Path, progress: str, message: str) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    checkpoints.save(trainer_at(10), snapshot=True)
    folder = tmp_path / "checkpoints" / "step-00000010"
    (folder / "progress.json").write_text(progress)
    write_manifest(folder)
    with pytest.raises(CheckpointError, match=message):
        checkpoints.restore(trainer_at(0))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"exp_avg/9.weight": torch.ones(8, 1)}, "checkpoint does not fit this model: exp_avg/9"),
        ({"exp_avg/0.weight": torch.ones(3, 3)}, "optimizer state of the checkpoint does not fit this model"),
        ({"exp_avg/0.weight": torch.ones(8, 1)}, "optimizer state of the checkpoint is not that of AdamW: 0.weight"),
        (None, "is not a safetensors file"),
    ],
)
def test_hostile_optimizer_state_is_refused_before_anything_changes(
    tmp_path: Path, tensors: dict[str, torch.Tensor] | None, message: str
) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    checkpoints.save(trainer_at(10), snapshot=True)
    path = tmp_path / "checkpoints" / "step-00000010" / "optimizer.safetensors"
    if tensors is None:
        path.write_bytes(b"not tensors")
    else:
        save_tensors(tensors, path)
    write_manifest(path.parent)
    trainer = trainer_at(0)
    with pytest.raises(CheckpointError, match=message):
        checkpoints.restore(trainer)
    assert trainer.step == trainer.weights()["0.weight"][0].item() == 0


def test_the_last_snapshots_are_averaged_if_all_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=2, keeps_all=True)
    for step in range(1, 6):
        checkpoints.save(trainer_at(step), snapshot=True)
    assert checkpoints.snapshot_steps() == [1, 2, 3, 4, 5]
    torch.testing.assert_close(checkpoints.averaged()["0.weight"], torch.full((8, 1), 4.5))


def test_the_best_weights_are_those_to_evaluate(tmp_path: Path) -> None:
    checkpoints, trainer = Checkpoints(tmp_path, n_snapshots=1), make_trainer(ema_decay=0.5, steps=2)
    list(trainer.run())
    checkpoints.save_best(trainer)
    assert checkpoints.best().keys() == trainer.weights().keys()
    for name, value in checkpoints.best().items():
        assert torch.equal(value, trainer.eval_weights()[name])
        assert not torch.equal(value, trainer.weights()[name])


def test_snapshots_are_found_by_their_step(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=3)
    assert (checkpoints.newest, checkpoints.snapshot_steps(), checkpoints.has_snapshot(7)) == (None, [], False)
    for step in (7, 12):
        checkpoints.save(trainer_at(step), snapshot=step == 7)
    assert (checkpoints.newest, checkpoints.snapshot_steps()) == (12, [7])
    assert (checkpoints.has_snapshot(7), checkpoints.has_snapshot(12)) == (True, False)
    assert checkpoints.snapshot(7)["0.weight"][0].item() == 7


def test_a_sweep_removes_partial_folders_only(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    checkpoints.save(trainer_at(3), snapshot=True)
    checkpoints.save_best(trainer_at(3))
    for partial in ("checkpoints/.step-00000004.abcdefgh", "snapshots/.step-00000004.abcdefgh", ".best.abcdefgh"):
        (tmp_path / partial).mkdir()
    checkpoints.sweep()
    assert names(tmp_path) == ["best", "checkpoints", "snapshots"]
    assert names(tmp_path / "checkpoints") == names(tmp_path / "snapshots") == ["step-00000003"]


def test_position_beyond_the_data_is_refused() -> None:
    trainer = trainer_at(10)
    trainer.position = 5
    with pytest.raises(CheckpointError, match="step 10 is at batch 5 of an epoch of 4: it belongs to other data"):
        next(iter(trainer.run()))
