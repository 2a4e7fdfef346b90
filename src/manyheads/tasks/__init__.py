"""What an example means: how a row becomes a batch, a loss, a prediction and a score.

Each task is a package (`seq2seq`, `classify`, `tag`, `language`, `masked`, `embed`), registered in `registry.TASKS`. A
task gives the training loop a `TrainingTask` and a bundle text in, an answer out. Neither model nor training knows
tasks.
"""

from manyheads.metrics import Card
from manyheads.tasks.classify import Classification, Classify, ClassifySettings
from manyheads.tasks.embed import Embed, EmbedSettings, TextEmbedding
from manyheads.tasks.language import Candidate, Generation, Language, LanguageSettings, LanguageTrainingTask
from manyheads.tasks.masked import Filling, Masked, MaskedSettings, MaskedTrainingTask
from manyheads.tasks.model_inputs import ModelInput
from manyheads.tasks.registry import DEFAULT_KIND, TASKS
from manyheads.tasks.seq2seq import (
    Seq2Seq,
    Seq2SeqSettings,
    Seq2SeqTrainingTask,
    TensorBatch,
    TextOptions,
    Translation,
    Translations,
)
from manyheads.tasks.tag import Entity, Tag, Tagging, TagSettings
from manyheads.tasks.task import (
    AnswerForm,
    DecodingChoice,
    GenerativeTask,
    LabelingTask,
    PairTask,
    Prediction,
    Progress,
    Task,
    TaskSettings,
    TrainingData,
    ValidationResult,
    one_line,
)

__all__ = [
    "DEFAULT_KIND",
    "TASKS",
    "AnswerForm",
    "Candidate",
    "Card",
    "Classification",
    "Classify",
    "ClassifySettings",
    "DecodingChoice",
    "Embed",
    "EmbedSettings",
    "Entity",
    "Filling",
    "Generation",
    "GenerativeTask",
    "LabelingTask",
    "Language",
    "LanguageSettings",
    "LanguageTrainingTask",
    "Masked",
    "MaskedSettings",
    "MaskedTrainingTask",
    "ModelInput",
    "PairTask",
    "Prediction",
    "Progress",
    "Seq2Seq",
    "Seq2SeqSettings",
    "Seq2SeqTrainingTask",
    "Tag",
    "TagSettings",
    "Tagging",
    "Task",
    "TaskSettings",
    "TensorBatch",
    "TextEmbedding",
    "TextOptions",
    "TrainingData",
    "Translation",
    "Translations",
    "ValidationResult",
    "one_line",
]
