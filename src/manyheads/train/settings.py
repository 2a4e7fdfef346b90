"""`TrainSettings`: how to train. The defaults are those of 2017."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How long, how fast, how often to look and to save."""

    steps: int = 100_000
    batch_tokens: int = 25_000  # padded tokens a batch may hold on either side
    accumulation_steps: int = 1  # batches an update is made of
    schedule: Literal["inverse-sqrt", "cosine"] = "inverse-sqrt"
    learning_rate: float = 0.0  # at its peak; 0: (width · warmup)^-½, which is 2017's
    warmup: int = 4000
    clip_norm: float = 1.0  # largest norm of the gradient; 0: any
    weight_decay: float = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU that has it
    validate_every: int = 1000
    validation_metric: str = ""  # the score of a sample of the valid set, taken while training; "": the task's own
    patience: int = 0  # stop after so many validations without a better score, and go back to the best; 0: never
    save_every: int = 1000
    average_snapshots: int = 5  # how many of the last snapshots the final weights are the mean of; not with patience
    keep_all_snapshots: bool = (
        False  # keep every snapshot, so that `manyheads heads RUN --timeline` can tell what heads did
    )
    ema_decay: float = (
        0.0  # snapshots hold a running mean of the weights that forgets 1 − ema_decay a step; 0: the weights
    )

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "train.") or self._faults())

    def _faults(self) -> list[str]:
        counts = (
            "steps",
            "batch_tokens",
            "accumulation_steps",
            "warmup",
            "validate_every",
            "save_every",
            "average_snapshots",
        )
        faults = [
            f"train.{name} = {getattr(self, name)} must be at least 1." for name in counts if getattr(self, name) < 1
        ]
        faults += [
            f"train.{name} = {getattr(self, name)} must be at least 0 and finite."
            for name in ("learning_rate", "clip_norm", "weight_decay")
            if not 0 <= getattr(self, name) < math.inf
        ]
        if self.patience < 0:
            faults.append(f"train.patience = {self.patience} must be at least 0.")
        if not 0.0 <= self.ema_decay < 1.0:
            faults.append(f"train.ema_decay = {self.ema_decay} must be at least 0 and less than 1, like 0.999.")
        return faults
