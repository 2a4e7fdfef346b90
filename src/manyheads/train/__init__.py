"""The training room: optimiser and schedule, the loop as a generator of events, checkpoints.

The loop knows a task only as a `Lesson`: batches, and the loss of one. It draws nothing, evaluates nothing and
saves nothing by itself; whoever iterates it does. May import data, model, storage, settings, errors.
"""

from manyheads.train.checkpoints import Checkpoints
from manyheads.train.loop import Batch, Lesson, Step, Trainer
from manyheads.train.schedule import learning_rate
from manyheads.train.settings import TrainSettings

__all__ = ["Batch", "Checkpoints", "Lesson", "Step", "TrainSettings", "Trainer", "learning_rate"]
