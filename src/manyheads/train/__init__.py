"""The training room: optimizer and schedule, the loop as a generator of events, checkpoints.

The loop knows a task only as a `TrainingTask`: batches, and the loss of one. It draws nothing, evaluates nothing and
saves nothing by itself; whoever iterates it does. May import data, model, storage, settings, errors.
"""

from manyheads.train.checkpoints import Checkpoints
from manyheads.train.loop import Batch, Step, Trainer, TrainingTask
from manyheads.train.schedule import learning_rate
from manyheads.train.settings import TrainSettings

__all__ = ["Batch", "Checkpoints", "Step", "TrainSettings", "Trainer", "TrainingTask", "learning_rate"]
