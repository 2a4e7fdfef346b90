"""Checkpoints: everything needed to go on, and snapshots of the weights for the final average.

    checkpoints/step-00000500/   weights, optimiser, progress; the newest two are kept
    snapshots/step-00000500/     weights alone; as many as the average wants
    best/                        weights alone; of the best validation, where the recipe stops by it

All are sealed folders (see storage): one that was damaged is noticed and passed over.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from manyheads.errors import CheckpointError
from manyheads.model.weights import average, save_tensors
from manyheads.storage import check_files, check_seal, sealed_folder
from manyheads.train.loop import Trainer

_WEIGHTS = "weights.safetensors"
_MEAN = "mean.safetensors"
_OPTIMISER = "optimiser.safetensors"
_PROGRESS = "progress.json"
_KEPT = 2


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints and snapshots of one run folder."""

    run: Path
    n_snapshots: int

    def save(self, trainer: Trainer[Any], *, snapshot: bool) -> None:
        """Store where the trainer stands; only then let go of older ones."""
        name = f"step-{trainer.step:08d}"
        if snapshot:
            with sealed_folder(self.run / "snapshots" / name) as folder:
                save_tensors(trainer.best_weights(), folder / _WEIGHTS)
            self._let_go("snapshots", self.n_snapshots)
        with sealed_folder(self.run / "checkpoints" / name) as folder:
            save_tensors(trainer.weights(), folder / _WEIGHTS)
            if trainer.mean is not None:
                save_tensors(trainer.mean.weights, folder / _MEAN)
            save_tensors(trainer.optimiser_state(), folder / _OPTIMISER)
            (folder / _PROGRESS).write_text(json.dumps(trainer.progress()), encoding="utf-8")
        self._let_go("checkpoints", _KEPT)

    def save_best(self, trainer: Trainer[Any]) -> None:
        """Store the weights as the best so far."""
        with sealed_folder(self.run / "best") as folder:
            save_tensors(trainer.best_weights(), folder / _WEIGHTS)

    def best(self) -> dict[str, Tensor]:
        """The weights of the best validation."""
        return _read_weights(self.run / "best")

    def restore(self, trainer: Trainer[Any]) -> list[str]:
        """Put the trainer where the newest good checkpoint stands, if there is any; what is wrong with newer ones."""
        complaints: list[str] = []
        required = [_WEIGHTS, _OPTIMISER, _PROGRESS, *([_MEAN] if trainer.mean is not None else [])]
        for folder in reversed(self._found("checkpoints")):
            try:
                check_files(folder, check_seal(folder, CheckpointError), required, CheckpointError)
            except CheckpointError as error:
                complaints.append(str(error))
                continue
            progress = json.loads((folder / _PROGRESS).read_text(encoding="utf-8"))
            mean = load_file(folder / _MEAN) if trainer.mean is not None else None
            trainer.restore(progress, load_file(folder / _WEIGHTS), load_file(folder / _OPTIMISER), mean)
            break
        else:
            if complaints:
                raise CheckpointError(
                    f"No checkpoint is whole ({' '.join(complaints)}) Train into another folder with -o."
                )
        for folder in self._found("snapshots"):
            if _step_of(folder) > trainer.step:  # of a future that will now be trained again
                shutil.rmtree(folder)
        return complaints

    @property
    def has_snapshot(self) -> bool:
        """Whether there is anything to average."""
        return bool(self._found("snapshots"))

    def averaged(self) -> dict[str, Tensor]:
        """The mean of the last snapshots."""
        return average([_read_weights(folder) for folder in self._found("snapshots")[-self.n_snapshots :]])

    def _found(self, kind: str) -> list[Path]:
        return sorted((self.run / kind).glob("step-*"), key=_step_of)

    def _let_go(self, kind: str, kept: int) -> None:
        for folder in self._found(kind)[:-kept]:
            shutil.rmtree(folder)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    check_files(folder, check_seal(folder, CheckpointError), (_WEIGHTS,), CheckpointError)
    return load_file(folder / _WEIGHTS)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))
