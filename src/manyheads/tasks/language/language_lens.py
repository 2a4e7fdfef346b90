"""Language models in the lens: what the model writes after the text."""

from typing import TYPE_CHECKING, Any

from manyheads.messages import Message
from manyheads.tasks.task import ModelInput
from manyheads.tasks.written_lens import WriterProbe
from manyheads.text.tokens.tokenizer import EOS
from manyheads.text.tokens.words import is_chinese_or_kana, split_text

if TYPE_CHECKING:
    from manyheads.tasks.language.language_task import Language

_OPENING = 5  # words; twice as many characters of Chinese or Japanese text


def opening(task: Any, text: str) -> str:
    """Return the first words of a text, for the model to continue; at most half of them."""
    words = split_text(text, "word")
    if not words:
        return text
    n_words = 2 * _OPENING if is_chinese_or_kana(words[0].text[0]) else _OPENING
    return text[: words[min(n_words, (len(words) + 1) // 2) - 1].end]


def probe_continuation(task: "Language", model_input: ModelInput) -> WriterProbe:
    """Return the probe of the continuation; a note says so if the context was too short for it."""
    first = len(task.model_input(model_input.text).target) - 1
    notes = []
    last, context = model_input.last, task.model.settings.max_length
    if len(model_input.target) >= context and (last is None or last.id != EOS):
        notes.append(
            Message(
                "The answer ends where the context of {context:,} tokens is full; `manyheads predict` can slide it.",
                context=context,
            )
        )
    return WriterProbe("language", task.model, task.tokenizer, model_input, first, tuple(notes))
