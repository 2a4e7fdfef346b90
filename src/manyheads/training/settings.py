"""`TrainSettings`: how to train; the learning rate schedule, and whether to use bfloat16."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from manyheads.settings import Count, Range, raise_faults, type_faults

LONG_WARMUP = 0.5  # of the run; a longer warmup is most likely meant for a longer run


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How long and how fast to train, and how often to validate and save. The defaults are those of 2017."""

    steps: Annotated[int, Range(0, 1_000_000_000)] = 100_000  # number of updates; 0 if task.probe fits all there is
    # The most tokens, padding included, on either side of a batch.
    batch_tokens: Annotated[int, Range(1, 100_000_000)] = 25_000
    accumulation_steps: Count = 1  # batches per update
    # Parts of each batch, computed one after another or by several processes; default: 1, or what the processes of a
    # new run can share.
    micro_batches: Annotated[int, Range(1, 10_000)] | None = None
    shard: bool = False  # with several processes, each keeps only a part of the weights and of the optimizer (FSDP2)
    compile: bool = False  # compile the layers with torch.compile; only on a GPU
    # After the warm-up the learning rate falls with 1 / √step, or along half a cosine to 0.
    schedule: Literal["inverse-sqrt", "cosine"] = "inverse-sqrt"
    # The learning rate at its peak; default: (width · warmup)^-½, as in 2017.
    learning_rate: Annotated[float, Range(greater_than=0)] | None = None
    warmup: Count = 4000  # steps over which the learning rate rises to its peak
    # The learning rate of a layer as a share of that of the next layer; the embeddings count as the layer below the
    # first. Less than 1, such as 0.8, changes the lower layers of a pretrained model less.
    layer_decay: Annotated[float, Range(greater_than=0, at_most=1)] = 1.0
    # The peak for what the task adds to the Transformer, such as its output layer; default: learning_rate.
    head_learning_rate: Annotated[float, Range(greater_than=0)] | None = None
    # The largest gradient norm; inf: no clipping.
    clip_norm: Annotated[float, Range(greater_than=0, is_finite=False, hint="Use inf for no clipping.")] = 1.0
    weight_decay: Annotated[float, Range(0)] = 0.0  # decoupled weight decay of AdamW
    # "auto": bfloat16 on a GPU that supports it. On a CPU that does, it is faster for models of width 512 or more.
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    validate_every: Count = 1000  # steps between validations
    validation_metric: str | None = None  # the metric of the validation sample; default: the first one of the task
    # Stop after this many validations without improvement and restore the best weights; default: never.
    patience: Count | None = None
    save_every: Count = 1000  # steps between checkpoints; each adds a snapshot of the weights
    average_snapshots: Count = 5  # the final weights are the mean of this many snapshots; ignored with patience
    keep_all_snapshots: bool = False  # keep every snapshot, for `manyheads heads timeline RUN`
    # Validate, snapshot and ship the exponential moving average of the weights, such as 0.999; default: the weights.
    ema_decay: Annotated[float, Range(greater_than=0, less_than=1, hint="0.999 is typical.")] | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "train."))


def learning_rate(step: int, settings: TrainSettings, width: int) -> float:
    """The learning rate of a step, counted from 1: linear warmup to the peak, then decay.

    With the default peak, "inverse-sqrt" is the schedule of the paper, W^-½ · min(step^-½, step · warmup^-1.5).
    "cosine" decays to 0 at the last step.
    """
    peak = peak_learning_rate(settings, width)
    if step < settings.warmup:
        return peak * step / settings.warmup
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(settings.warmup / step)
    progress = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


def warmup_share(settings: TrainSettings) -> float:
    """The part of the run that warmup takes; above 1 the peak learning rate is never reached."""
    return settings.warmup / settings.steps if settings.steps else 0.0


def peak_learning_rate(settings: TrainSettings, width: int) -> float:
    """The learning rate at the end of warmup: (width · warmup)^-½ unless the settings give one."""
    return (width * settings.warmup) ** -0.5 if settings.learning_rate is None else settings.learning_rate


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether a model trains in bfloat16 on this device, given the recipe's `train.precision`."""
    if precision != "auto":
        return precision == "bfloat16"
    # A GPU before Ampere only emulates bfloat16, which is slower than float32.
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
