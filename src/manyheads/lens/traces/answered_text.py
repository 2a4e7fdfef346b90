"""`answer_text`: a text with the answer that `predict` gives, as one model input that can be traced."""

from dataclasses import dataclass

from manyheads.decode import DecodeSettings, is_looping
from manyheads.errors import DataError
from manyheads.messages import Message
from manyheads.tasks import GenerativeTask, ModelInput, Task
from manyheads.text.markup.copyable_spans import copyable_spans


@dataclass(frozen=True)
class AnsweredInput:
    """What a model reads and writes for one text, and notes about how this differs from the text as it was given."""

    model_input: ModelInput
    notes: tuple[Message, ...] = ()


def answer_text(task: Task, text: str, decode: DecodeSettings, answer: str | None = None) -> AnsweredInput:
    """Return the input of a text with this answer, or with the answer of `predict`.

    The text is normalized as `predict` does it. A text that `predict` would divide is one input. A model without a
    decoder takes no answer. Raises `DataError` for a text that is empty or too long.
    """
    text, notes = task.text_to_read(text)
    if answer is not None or not isinstance(task, GenerativeTask):
        return AnsweredInput(task.model_input(text, answer), notes)
    return AnsweredInput(write_answer(task, text, decode), notes)


def write_answer(task: Task, text: str, decode: DecodeSettings) -> ModelInput:
    """Return the input of a text with the model's own answer, under the gates of the moment."""
    model_input = task.model_input(text)
    if not isinstance(task, GenerativeTask):
        return model_input
    best, written = task.generate_one(model_input, decode)
    source = [token.id for token in model_input.source]
    if not source or not (is_looping(best.ids, source) or copyable_spans(text)):
        return written
    # `predict` searches again after a loop, and for spans that are to be copied.
    (expected,) = task.predict([text], decode)
    if expected.answer == written.answer or getattr(expected, "parts", ()):
        return written
    try:
        return task.model_input(text, expected.answer)
    except DataError:  # its tokens may be others, and more, than those that were written
        return written
