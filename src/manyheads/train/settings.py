"""`TrainSettings`: how to train."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How long and how fast to train, and how often to validate and save. The defaults are those of 2017."""

    steps: int = 100_000  # number of updates
    batch_tokens: int = 25_000  # the most tokens, padding included, on either side of a batch
    accumulation_steps: int = 1  # batches per update
    # After the warm-up the learning rate falls with 1 / √step, or along half a cosine to 0.
    schedule: Literal["inverse-sqrt", "cosine"] = "inverse-sqrt"
    learning_rate: float | None = None  # at the peak; default: (width · warmup)^-½, as in 2017
    warmup: int = 4000  # steps over which the learning rate rises to its peak
    clip_norm: float = 1.0  # the largest gradient norm; inf: no clipping
    weight_decay: float = 0.0  # decoupled weight decay of AdamW
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # "auto": bfloat16 on a GPU that supports it
    validate_every: int = 1000  # steps between validations
    validation_metric: str | None = None  # the metric of the validation sample; default: the first one of the task
    # Stop after this many validations without improvement and restore the best weights; default: never.
    patience: int | None = None
    save_every: int = 1000  # steps between checkpoints; each adds a snapshot of the weights
    average_snapshots: int = 5  # the final weights are the mean of this many snapshots; ignored with patience
    keep_all_snapshots: bool = False  # keep every snapshot, for `manyheads heads timeline RUN`
    # Validate, snapshot and ship the exponential moving average of the weights, such as 0.999; default: the weights.
    ema_decay: float | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "train.") or self._faults())

    def _faults(self) -> list[str]:
        counts = ["steps", "batch_tokens", "accumulation_steps", "warmup", "validate_every", "save_every"]
        counts += ["average_snapshots", *(["patience"] if self.patience is not None else [])]
        faults = [
            f"train.{name} = {getattr(self, name)} must be at least 1." for name in counts if getattr(self, name) < 1
        ]
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            faults.append(f"train.learning_rate = {self.learning_rate} must be greater than 0 and finite.")
        if not self.clip_norm > 0:
            faults.append(f"train.clip_norm = {self.clip_norm} must be greater than 0. Use inf for no clipping.")
        if not 0 <= self.weight_decay < math.inf:
            faults.append(f"train.weight_decay = {self.weight_decay} must be at least 0 and finite.")
        if self.ema_decay is not None and not 0.0 < self.ema_decay < 1.0:
            faults.append(f"train.ema_decay = {self.ema_decay} must be between 0 and 1, for example 0.999.")
        return faults
