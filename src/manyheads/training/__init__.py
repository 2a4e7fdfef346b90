"""Training: optimizer, schedule, the loop as a generator of events, and checkpoints.

The loop sees a task only as a `TrainingTask`: batches, and the loss of a batch. It does not validate, print or save;
the code that iterates over its events does. This package imports `data`, `model`, `storage`, `settings` and `errors`.
"""

from manyheads.training.checkpoints import Checkpoints
from manyheads.training.loop import Batch, Step, Trainer, TrainingTask
from manyheads.training.process_group import ProcessGroup
from manyheads.training.settings import TrainSettings, learning_rate, peak_learning_rate
from manyheads.training.trainer_state import EMA

__all__ = [
    "EMA",
    "Batch",
    "Checkpoints",
    "ProcessGroup",
    "Step",
    "TrainSettings",
    "Trainer",
    "TrainingTask",
    "learning_rate",
    "peak_learning_rate",
]
