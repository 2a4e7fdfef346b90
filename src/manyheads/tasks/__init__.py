"""The tasks room: what an example means, how it becomes a batch, a loss, a prediction and a score.

Each task is one file. A task plugs into the training loop as a `Lesson` and into a bundle by text in, text out; the
model and train rooms never hear of it. May import data, model, decode, metrics, text, settings, errors.
"""

from manyheads.tasks.classify import Classification, Classify, ClassifySettings
from manyheads.tasks.continuing import Candidate, Continued
from manyheads.tasks.language import Language, LanguageLesson, LanguageSettings
from manyheads.tasks.masked import Filling, Masked, MaskedLesson, MaskedSettings
from manyheads.tasks.seq2seq import (
    Seq2Seq,
    Seq2SeqLesson,
    Seq2SeqSettings,
    TensorBatch,
    Translation,
    Translations,
    one_line,
)
from manyheads.tasks.tag import Entity, Tag, Tagging
from manyheads.tasks.tagger import TagSettings
from manyheads.tasks.task import Answering, Card, Look, Material, Prediction, Progress, Reading, Task, Writer

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
    "Answering",
    "Candidate",
    "Card",
    "Classification",
    "Classify",
    "ClassifySettings",
    "Continued",
    "Entity",
    "Filling",
    "Language",
    "LanguageLesson",
    "LanguageSettings",
    "Look",
    "Masked",
    "MaskedLesson",
    "MaskedSettings",
    "Material",
    "Prediction",
    "Progress",
    "Reading",
    "Seq2Seq",
    "Seq2SeqLesson",
    "Seq2SeqSettings",
    "Tag",
    "TagSettings",
    "Tagging",
    "Task",
    "TaskSettings",
    "TensorBatch",
    "Translation",
    "Translations",
    "Writer",
    "one_line",
]
