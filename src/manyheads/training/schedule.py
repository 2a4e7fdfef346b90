"""The learning rate schedule."""

import math

from manyheads.training.settings import TrainSettings

LONG_WARMUP = 0.5  # of the run; a longer warmup is most likely meant for a longer run


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
    return settings.warmup / settings.steps


def peak_learning_rate(settings: TrainSettings, width: int) -> float:
    """The learning rate at the end of warmup: (width · warmup)^-½ unless the settings give one."""
    return (width * settings.warmup) ** -0.5 if settings.learning_rate is None else settings.learning_rate
