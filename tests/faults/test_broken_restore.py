"""The negative controls of `make kills` break the restore, and nothing but the part they name."""

from pathlib import Path

import pytest
import torch

from manyheads.training import Checkpoints, Trainer

from faults.broken_restore import PARTS, forget
from training.doubling import Numbers, make_trainer


def state_of(trainer: Trainer[Numbers]) -> dict[str, object]:
    assert trainer.ema is not None
    moments = trainer.optimizer_state()
    return {
        "weights": {name: value.tolist() for name, value in trainer.weights().items()},
        "moments": {name: value.tolist() for name, value in moments.items()},
        "ema": {name: value.tolist() for name, value in trainer.ema.weights.items()},
        "position": trainer.position,
        "epoch": trainer.epoch,
        "step": trainer.step,
    }


@pytest.mark.parametrize("part", PARTS)
def test_only_the_named_part_is_lost(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = make_trainer(ema_decay=0.9, steps=6)
    for _event in trained.run():
        pass
    Checkpoints(tmp_path, 1).save(trained, snapshot=False)
    monkeypatch.setattr(Trainer, "restore", Trainer.restore)  # undone at the end of the test
    forget(part)
    torch.manual_seed(0)
    resumed = make_trainer(ema_decay=0.9, steps=6)
    assert Checkpoints(tmp_path, 1).restore(resumed) == []
    before, after = state_of(trained), state_of(resumed)
    assert [name for name in before if before[name] != after[name]] == [part]
