"""The language task: a text in, its continuation out."""

from manyheads.tasks.language.generation import Candidate, Generation
from manyheads.tasks.language.language_task import Language
from manyheads.tasks.language.language_training import LanguageTrainingTask
from manyheads.tasks.language.settings import LanguageSettings

__all__ = ["Candidate", "Generation", "Language", "LanguageSettings", "LanguageTrainingTask"]
