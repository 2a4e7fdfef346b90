"""Checkpoints: everything needed to go on, and snapshots of the weights for the final average.

    checkpoints/step-00000500/   weights, their running mean, optimizer, progress; the newest two are kept
    snapshots/step-00000500/     weights alone; as many as the average wants, or all for a timeline of heads
    best/                        weights alone; of the best validation, where the recipe stops by it

All are sealed folders (see storage): one that was damaged is noticed and passed over. The newest is found by its
name alone (docs/decisions/0007).
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from manyheads.errors import CheckpointError, ManyheadsError
from manyheads.model.weights import average, save_tensors
from manyheads.storage import atomic_folder, remove_partial, require_files, verify_manifest
from manyheads.train.loop import Trainer

_WEIGHTS = "weights.safetensors"
_EMA = "ema.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_PROGRESS = "progress.json"
_KEPT = 2
_NAME = r"step-\d{8,}"


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints and snapshots of one run folder."""

    run: Path
    n_snapshots: int
    identity: str = ""  # of tokenizer and seed; a checkpoint with another's is not used
    keeps_all: bool = False  # snapshots, not only as many as the average wants

    def save(self, trainer: Trainer[Any], *, snapshot: bool) -> None:
        """Store where the trainer stands; only then let go of older ones."""
        name = f"step-{trainer.step:08d}"
        if snapshot:
            with atomic_folder(self.run / "snapshots" / name) as folder:
                save_tensors(trainer.eval_weights(), folder / _WEIGHTS)
        with atomic_folder(self.run / "checkpoints" / name) as folder:
            save_tensors(trainer.weights(), folder / _WEIGHTS)
            if trainer.ema is not None:
                save_tensors(trainer.ema.weights, folder / _EMA)
            save_tensors(trainer.optimizer_state(), folder / _OPTIMIZER)
            progress = trainer.progress() | {"identity": self.identity}
            (folder / _PROGRESS).write_text(json.dumps(progress), encoding="utf-8")
        if not self.keeps_all:
            self._remove_old("snapshots", self.n_snapshots)
        self._remove_old("checkpoints", _KEPT)

    def save_best(self, trainer: Trainer[Any]) -> None:
        """Store the weights as the best so far."""
        with atomic_folder(self.run / "best") as folder:
            save_tensors(trainer.eval_weights(), folder / _WEIGHTS)

    def best(self) -> dict[str, Tensor]:
        """The weights of the best validation."""
        return _read_weights(self.run / "best")

    def restore(self, trainer: Trainer[Any]) -> list[str]:
        """Put the trainer where the newest good checkpoint stands, if there is any; what is wrong with newer ones.

        Newer ones are renamed, so that they neither count as kept nor are lost.
        """
        warnings: list[str] = []
        unused: list[Path] = []
        for folder in reversed(self._found("checkpoints")):
            try:
                self._restore_from(folder, trainer)
                break
            except ManyheadsError as error:
                warnings.append(str(error))
                unused.append(folder)
        else:
            if warnings:
                raise CheckpointError(
                    f"No checkpoint can be used ({' '.join(warnings)}) Train into another folder with -o."
                )
        for folder in unused:
            aside = folder.with_name(f"{folder.name}.unused")
            shutil.rmtree(aside, ignore_errors=True)  # of an earlier accident at the same step
            folder.rename(aside)
        for folder in self._found("snapshots"):
            if _step_of(folder) > trainer.step:  # of a future that will now be trained again
                shutil.rmtree(folder)
        return warnings

    def sweep(self) -> None:
        """Remove what a run that was killed left half-written."""
        for kind in ("checkpoints", "snapshots"):
            remove_partial(self.run / kind, _NAME)
        remove_partial(self.run, "best")

    def _restore_from(self, folder: Path, trainer: Trainer[Any]) -> None:
        required = [_WEIGHTS, _OPTIMIZER, _PROGRESS, *([_EMA] if trainer.ema is not None else [])]
        require_files(folder, verify_manifest(folder, CheckpointError), required, CheckpointError)
        progress = json.loads((folder / _PROGRESS).read_text(encoding="utf-8"))
        if progress.pop("identity", self.identity) != self.identity:
            raise CheckpointError(f"{folder} is of another run: its tokenizer or seed is not this one's.")
        if progress["step"] != _step_of(folder):
            raise CheckpointError(f"{folder} holds step {progress['step']}, which is not what its name says.")
        ema = load_file(folder / _EMA) if trainer.ema is not None else None
        trainer.restore(progress, load_file(folder / _WEIGHTS), load_file(folder / _OPTIMIZER), ema)

    @property
    def newest(self) -> int | None:
        """The step of the newest checkpoint, whole or not."""
        found = self._found("checkpoints")
        return _step_of(found[-1]) if found else None

    def has_snapshot(self, step: int) -> bool:
        """Whether there is one of this step."""
        return any(_step_of(folder) == step for folder in self._found("snapshots"))

    def snapshot_steps(self) -> list[int]:
        """The steps of which there are snapshots."""
        return [_step_of(folder) for folder in self._found("snapshots")]

    def snapshot(self, step: int) -> dict[str, Tensor]:
        """The weights of one of them."""
        return _read_weights(self.run / "snapshots" / f"step-{step:08d}")

    def averaged(self) -> dict[str, Tensor]:
        """The mean of the last snapshots."""
        found = []
        for folder in self._found("snapshots")[-self.n_snapshots :]:
            try:
                found.append(_read_weights(folder))
            except CheckpointError as error:
                raise CheckpointError(f"{error} Or remove it: the average is then of the other snapshots.") from None
        return average(found)

    def _found(self, kind: str) -> list[Path]:
        folders = (self.run / kind).glob("step-*")
        return sorted((folder for folder in folders if re.fullmatch(_NAME, folder.name)), key=_step_of)

    def _remove_old(self, kind: str, kept: int) -> None:
        for folder in self._found(kind)[:-kept]:
            shutil.rmtree(folder)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    require_files(folder, verify_manifest(folder, CheckpointError), (_WEIGHTS,), CheckpointError)
    return load_file(folder / _WEIGHTS)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))
