"""`answer_fields`: an answer as JSON values. The fields of every task are decided here and nowhere else.

`predict --json` adds the number of the line. Over HTTP, a text that the model cannot read is not an answer with an
error: its request is refused with the same message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from manyheads.answer.answer import Answer
from manyheads.answer.markup_translation import MarkupTranslation
from manyheads.bundle import Bundle
from manyheads.tasks import Generation

BLANK_NOTE = "The text is blank."
_LEAVES = (str, int, float, type(None))


def answer_fields(answer: Answer, bundle: Bundle) -> dict[str, Any]:
    """Return the answer of this bundle as JSON values.

    Besides the text, the answer and the fields of the task's prediction: `note` if the text is blank, `unseen_words`
    if the bundle stores its words, numbers of tokens if it continues the text, and the alignment if it was asked for.
    An answer with an error has empty lists.
    """
    prediction = answer.prediction
    own = prediction.fields() if isinstance(prediction, MarkupTranslation) else _json_value(prediction)
    fields = {"source": answer.text, "answer": _json_value(prediction.answer), **own}
    if answer.error:
        fields = {"source": answer.text, **_without_content(fields), "error": answer.error}
    if answer.is_blank:
        fields["note"] = BLANK_NOTE
    if answer.unseen_words is not None:
        fields["unseen_words"] = list(answer.unseen_words)
    if isinstance(prediction, Generation) and not answer.error:
        fields |= token_counts(bundle, answer.text, [candidate.text for candidate in prediction.candidates])
    if answer.alignment is not None:
        fields |= _json_value(answer.alignment)
    return fields


def token_counts(bundle: Bundle, prompt: str, continuations: Sequence[str]) -> dict[str, int]:
    """Return the number of tokens of a prompt and of its continuations, as clients of language models expect."""
    tokenizer = bundle.task.tokenizer
    return {
        "n_prompt_tokens": len(tokenizer.encode(prompt)),
        "n_new_tokens": sum(len(tokenizer.encode_continuation(text)) for text in continuations if text),
    }


def _without_content(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer and the lists, without what is in them."""
    empty: dict[str, Any] = {name: [] for name, value in fields.items() if isinstance(value, list)}
    return {"answer": "", **empty}


def _json_value(value: Any) -> Any:
    """Return dataclasses as tables. `dataclasses.asdict` copies what is inside, too, and takes longer."""
    if isinstance(value, _LEAVES):
        return value
    if isinstance(value, tuple | list):
        return [_json_value(element) for element in value]
    if is_dataclass(value):
        return {name: _json_value(element) for name, element in vars(value).items()}
    return value
