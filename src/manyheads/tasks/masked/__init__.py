"""The masked task: predict the tokens that are masked in a text."""

from manyheads.tasks.masked.masked_task import Filling, Masked
from manyheads.tasks.masked.masked_training import MaskedSettings, MaskedTrainingTask

__all__ = ["Filling", "Masked", "MaskedSettings", "MaskedTrainingTask"]
