"""The language task: a text in, its continuation out."""

from manyheads.tasks.language.generation import Candidate, Generation
from manyheads.tasks.language.language_task import Language, LanguageSettings
from manyheads.tasks.language.language_training import LanguageTrainingTask

__all__ = ["Candidate", "Generation", "Language", "LanguageSettings", "LanguageTrainingTask"]
