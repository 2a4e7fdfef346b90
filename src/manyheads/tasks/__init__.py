"""The tasks room: what an example means, how it becomes a batch, a loss, a prediction and a score.

Each task is one file. A task plugs into the training loop as a `TrainingTask` and into a bundle by text in, text out; the
model and train rooms never hear of it. May import data, model, decode, metrics, text, settings, errors.
"""

from manyheads.tasks.classify.classification import Classification, Classify, ClassifySettings
from manyheads.tasks.language.generation import Candidate, Generation
from manyheads.tasks.language.language_model import Language, LanguageSettings, LanguageTrainingTask
from manyheads.tasks.masked.masked_model import Filling, Masked, MaskedSettings, MaskedTrainingTask
from manyheads.tasks.seq2seq.sequence_to_sequence import (
    Seq2Seq,
    Seq2SeqSettings,
    Seq2SeqTrainingTask,
    TensorBatch,
    Translation,
    Translations,
    one_line,
)
from manyheads.tasks.tag.tag_model import TagSettings
from manyheads.tasks.tag.tagging import Entity, Tag, Tagging
from manyheads.tasks.task import (
    Card,
    GenerativeTask,
    ModelInput,
    Prediction,
    Progress,
    SupportsEngines,
    Task,
    TrainingData,
    ValidationResult,
)

TaskSettings = Seq2SeqSettings | ClassifySettings | TagSettings | LanguageSettings | MaskedSettings
TASKS: dict[str, type[Task]] = {  # by the kind that a recipe names
    "seq2seq": Seq2Seq,
    "classify": Classify,
    "tag": Tag,
    "language": Language,
    "masked": Masked,
}

__all__ = [
    "TASKS",
    "Candidate",
    "Card",
    "Classification",
    "Classify",
    "ClassifySettings",
    "Entity",
    "Filling",
    "Generation",
    "GenerativeTask",
    "Language",
    "LanguageSettings",
    "LanguageTrainingTask",
    "Masked",
    "MaskedSettings",
    "MaskedTrainingTask",
    "ModelInput",
    "Prediction",
    "Progress",
    "Seq2Seq",
    "Seq2SeqSettings",
    "Seq2SeqTrainingTask",
    "SupportsEngines",
    "Tag",
    "TagSettings",
    "Tagging",
    "Task",
    "TaskSettings",
    "TensorBatch",
    "TrainingData",
    "Translation",
    "Translations",
    "ValidationResult",
    "one_line",
]
