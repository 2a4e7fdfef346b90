"""Checkpoints, from which a run resumes, and snapshots, whose average becomes the final weights.

    checkpoints/step-00000500/   weights, EMA, optimizer state and progress; the two newest are kept
    snapshots/step-00000500/     weights only; as many as the average needs, or all of them for a timeline of heads
    best/                        weights only; those with the best validation score, for early stopping

Each is a folder with a manifest (see `storage`), so that damage is detected and an older checkpoint is used. The newest
one is found by its name alone (docs/decisions/0007).
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.bounded_files import read_json_object
from manyheads.errors import CheckpointError, ManyheadsError
from manyheads.messages import _
from manyheads.model.weights import average, read_tensors, save_tensors
from manyheads.storage import atomic_folder, remove_partial, require_files, verify_manifest
from manyheads.training.loop import Trainer

_WEIGHTS = "weights.safetensors"
_EMA = "ema.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_PROGRESS = "progress.json"
_N_CHECKPOINTS = 2
_NAME = r"step-\d{8,}"


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints and snapshots in a run folder."""

    run: Path
    n_snapshots: int
    identity: str = ""  # identifies tokenizer and seed; a checkpoint with another identity is not used
    keeps_all: bool = False  # keep every snapshot, not only the last `n_snapshots`

    def save(self, trainer: Trainer[Any], *, snapshot: bool) -> None:
        """Save the state of the trainer, then delete old checkpoints and snapshots."""
        name = f"step-{trainer.step:08d}"
        if snapshot:
            with atomic_folder(self.run / "snapshots" / name) as folder:
                save_tensors(trainer.eval_weights(), folder / _WEIGHTS)
        with atomic_folder(self.run / "checkpoints" / name) as folder:
            save_tensors(trainer.weights(), folder / _WEIGHTS)
            if trainer.ema is not None:
                save_tensors(trainer.ema_weights(), folder / _EMA)
            save_tensors(trainer.optimizer_state(), folder / _OPTIMIZER)
            progress = trainer.progress() | {"identity": self.identity}
            (folder / _PROGRESS).write_text(json.dumps(progress), encoding="utf-8")
        if not self.keeps_all:
            self._delete_old("snapshots", self.n_snapshots)
        self._delete_old("checkpoints", _N_CHECKPOINTS)

    def save_best(self, trainer: Trainer[Any]) -> None:
        """Save the weights as the best so far."""
        with atomic_folder(self.run / "best") as folder:
            save_tensors(trainer.eval_weights(), folder / _WEIGHTS)

    def best(self) -> dict[str, Tensor]:
        """The weights with the best validation score."""
        return _read_weights(self.run / "best")

    def restore(self, trainer: Trainer[Any]) -> list[str]:
        """Restore the trainer from the newest valid checkpoint, if any; return why newer ones were not used.

        Unusable checkpoints are renamed to *.unused: they are not deleted and no longer count as checkpoints.
        """
        warnings: list[str] = []
        unused: list[Path] = []
        for folder in reversed(self._folders("checkpoints")):
            try:
                self._restore_from(folder, trainer)
                break
            except ManyheadsError as error:
                warnings.append(str(error))
                unused.append(folder)
        else:
            if warnings:
                raise CheckpointError(
                    _(
                        "No checkpoint can be used ({reasons}) Train into another folder with -o.",
                        reasons=" ".join(warnings),
                    )
                )
        for folder in unused:
            renamed = folder.with_name(f"{folder.name}.unused")
            shutil.rmtree(renamed, ignore_errors=True)  # from earlier damage at the same step
            folder.rename(renamed)
        for folder in self._folders("snapshots"):
            if _step_of(folder) > trainer.step:  # these steps will be trained again
                shutil.rmtree(folder)
        return warnings

    def sweep(self) -> None:
        """Delete partially written folders of a run that was killed."""
        for kind in ("checkpoints", "snapshots"):
            remove_partial(self.run / kind, _NAME)
        remove_partial(self.run, "best")

    def _restore_from(self, folder: Path, trainer: Trainer[Any]) -> None:
        required = [_WEIGHTS, _OPTIMIZER, _PROGRESS, *([_EMA] if trainer.ema is not None else [])]
        require_files(folder, verify_manifest(folder, CheckpointError), required, CheckpointError)
        progress = read_json_object(folder / _PROGRESS, CheckpointError)
        if progress.pop("identity", self.identity) != self.identity:
            raise CheckpointError(_("{folder} belongs to another run: its tokenizer or seed differs.", folder=folder))
        if not _is_progress(progress):
            raise CheckpointError(_("{file} does not have the expected content.", file=folder / _PROGRESS))
        if progress["step"] != _step_of(folder):
            raise CheckpointError(
                _(
                    "{folder} contains step {step}, which contradicts its name.",
                    folder=folder,
                    step=progress["step"],
                )
            )
        ema = read_tensors(folder / _EMA, CheckpointError) if trainer.ema is not None else None
        weights, optimizer = (read_tensors(folder / name, CheckpointError) for name in (_WEIGHTS, _OPTIMIZER))
        trainer.restore(progress, weights, optimizer, ema)

    @property
    def newest(self) -> int | None:
        """The step of the newest checkpoint, valid or not."""
        folders = self._folders("checkpoints")
        return _step_of(folders[-1]) if folders else None

    def has_snapshot(self, step: int) -> bool:
        """Whether there is a snapshot of this step."""
        return any(_step_of(folder) == step for folder in self._folders("snapshots"))

    def snapshot_steps(self) -> list[int]:
        """The steps of all snapshots."""
        return [_step_of(folder) for folder in self._folders("snapshots")]

    def snapshot(self, step: int) -> dict[str, Tensor]:
        """The weights of one snapshot."""
        return _read_weights(self.run / "snapshots" / f"step-{step:08d}")

    def averaged(self) -> dict[str, Tensor]:
        """The mean of the last `n_snapshots` snapshots."""
        snapshots = []
        for folder in self._folders("snapshots")[-self.n_snapshots :]:
            try:
                snapshots.append(_read_weights(folder))
            except CheckpointError as error:
                raise CheckpointError(
                    _("{error} Or delete it: the other snapshots are then averaged.", error=error)
                ) from None
        return average(snapshots)

    def _folders(self, kind: str) -> list[Path]:
        folders = (self.run / kind).glob("step-*")
        return sorted((folder for folder in folders if re.fullmatch(_NAME, folder.name)), key=_step_of)

    def _delete_old(self, kind: str, n_kept: int) -> None:
        for folder in self._folders(kind)[:-n_kept]:
            shutil.rmtree(folder)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    require_files(folder, verify_manifest(folder, CheckpointError), (_WEIGHTS,), CheckpointError)
    return read_tensors(folder / _WEIGHTS, CheckpointError)


def _is_progress(progress: dict[str, Any]) -> bool:
    """Whether these are the values of `Trainer.progress`."""
    counts = [progress.get(name) for name in ("step", "epoch", "position")]
    notes = progress.get("notes", {})
    return (
        all(type(count) is int and count >= 0 for count in counts)
        and isinstance(notes, dict)
        and all(isinstance(value, int | float) for value in notes.values())
    )


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))
