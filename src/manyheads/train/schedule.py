"""The learning rate at every step."""

import math

from manyheads.train.settings import TrainSettings


def learning_rate(step: int, settings: TrainSettings, width: int) -> float:
    """The rate for step 1, 2, 3 …: it climbs for `warmup` steps to its peak and falls from there.

    With the default peak, "inverse-sqrt" is the paper's W^-½ · min(step^-½, step · warmup^-1.5).
    "cosine" comes down to 0 at the last step.
    """
    peak = settings.learning_rate or (width * settings.warmup) ** -0.5
    if step < settings.warmup:
        return peak * step / settings.warmup
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(settings.warmup / step)
    done = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
