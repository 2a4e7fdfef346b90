"""The seq2seq task: one text in, another out (translation, summaries, dialogue)."""

from manyheads.tasks.seq2seq.seq2seq_task import Seq2Seq, Translations
from manyheads.tasks.seq2seq.seq2seq_training import Seq2SeqTrainingTask, TensorBatch
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings, TextOptions
from manyheads.tasks.seq2seq.translation_parts import Translation

__all__ = [
    "Seq2Seq",
    "Seq2SeqSettings",
    "Seq2SeqTrainingTask",
    "TensorBatch",
    "TextOptions",
    "Translation",
    "Translations",
]
