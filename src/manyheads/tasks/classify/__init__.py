"""The classify task: a text in, its label or labels out."""

from manyheads.tasks.classify.classification import Classification
from manyheads.tasks.classify.classify_task import Classify
from manyheads.tasks.classify.classify_training import Classifier, ClassifySettings

__all__ = ["Classification", "Classifier", "Classify", "ClassifySettings"]
