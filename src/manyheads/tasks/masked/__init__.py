"""The masked task: predict the tokens that are masked in a text."""

from manyheads.tasks.masked.masked_task import Filling, Masked
from manyheads.tasks.masked.masked_training import MaskedTrainingTask
from manyheads.tasks.masked.settings import MaskedSettings

__all__ = ["Filling", "Masked", "MaskedSettings", "MaskedTrainingTask"]
