"""The tasks room: what an example means, how it becomes a batch, a loss, a prediction and a score.

Each task is one file. A task plugs into the training loop as a `Lesson` and into a bundle by text in, text out; the
model and train rooms never hear of it. May import data, model, decode, metrics, text, settings, errors.
"""

from manyheads.tasks.seq2seq import Seq2Seq, Seq2SeqLesson, Seq2SeqSettings, TensorBatch, Translation

__all__ = ["Seq2Seq", "Seq2SeqLesson", "Seq2SeqSettings", "TensorBatch", "Translation"]
