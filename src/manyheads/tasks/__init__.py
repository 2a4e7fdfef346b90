"""What an example means: how a row becomes a batch, a loss, a prediction and a score.

Each task is a package (`seq2seq`, `classify`, `tag`, `language`, `masked`), registered in `registry.TASKS`. A task
gives the training loop a `TrainingTask` and a bundle text in, text out. The model and train packages do not know tasks.
"""

from manyheads.metrics import Card
from manyheads.tasks.classify import Classification, Classify, ClassifySettings
from manyheads.tasks.language import Candidate, Generation, Language, LanguageSettings, LanguageTrainingTask
from manyheads.tasks.masked import Filling, Masked, MaskedSettings, MaskedTrainingTask
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
    CalibratedTask,
    DecodingChoice,
    GenerativeTask,
    HasBaseline,
    HasLossTerms,
    HasReferences,
    ModelInput,
    Prediction,
    Progress,
    ReadsFolders,
    ScopedTask,
    StoresBaseline,
    StreamingTask,
    SupportsEngines,
    Task,
    TaskSettings,
    ThresholdTask,
    TrainingData,
    TunableTask,
    ValidationResult,
    one_line,
)

__all__ = [
    "DEFAULT_KIND",
    "TASKS",
    "CalibratedTask",
    "Candidate",
    "Card",
    "Classification",
    "Classify",
    "ClassifySettings",
    "DecodingChoice",
    "Entity",
    "Filling",
    "Generation",
    "GenerativeTask",
    "HasBaseline",
    "HasLossTerms",
    "HasReferences",
    "Language",
    "LanguageSettings",
    "LanguageTrainingTask",
    "Masked",
    "MaskedSettings",
    "MaskedTrainingTask",
    "ModelInput",
    "Prediction",
    "Progress",
    "ReadsFolders",
    "ScopedTask",
    "Seq2Seq",
    "Seq2SeqSettings",
    "Seq2SeqTrainingTask",
    "StoresBaseline",
    "StreamingTask",
    "SupportsEngines",
    "Tag",
    "TagSettings",
    "Tagging",
    "Task",
    "TaskSettings",
    "TensorBatch",
    "TextOptions",
    "ThresholdTask",
    "TrainingData",
    "Translation",
    "Translations",
    "TunableTask",
    "ValidationResult",
    "one_line",
]
