"""`Answer`: a text and all that is known about its prediction, and the JSON fields of every task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from manyheads.answer.markup_translation import MarkupTranslation
from manyheads.bundle import Bundle
from manyheads.tasks import Generation, Prediction
from manyheads.text.language_codes import base_of, is_in_script_of
from manyheads.text.reading.gold_alignments import Link

BLANK_NOTE = "The text is blank."
_LEAVES = (str, int, float, type(None))


@dataclass(frozen=True)
class WordAlignment:
    """Which words of a text and of its answer are aligned."""

    source_words: Sequence[str]
    target_words: Sequence[str]
    alignment: Sequence[Link]  # (index of the source word, index of the target word)
    heads: Sequence[str]  # whose attention it is; none if every text is aligned by occlusion

    def pharaoh(self) -> str:
        """Return the pairs in Pharaoh format: 0-0 1-2."""
        return " ".join(f"{source}-{target}" for source, target in self.alignment)


@dataclass(frozen=True)
class Answer:
    """The answer to one text."""

    text: str
    prediction: Prediction | MarkupTranslation  # that of an empty text if there is an error
    unseen_words: Sequence[str] | None = None  # that did not occur in training; None if the bundle stores no words
    is_foreign: bool = False  # by its script, the text is not in the language that the model reads
    is_blank: bool = False  # the text has nothing to answer; a language model starts a new text there
    error: str = ""  # why the model cannot read the text
    alignment: WordAlignment | None = None

    def line(self) -> str:
        """Return the answer as one line; empty if there is nothing to answer."""
        return "" if self.error or self.is_blank else self.prediction.line()

    @property
    def flags(self) -> list[str]:
        """What is remarkable about the answer, as words to filter a table by."""
        if self.error or self.is_blank:
            return ["error" if self.error else "blank"]
        found = self.prediction
        is_flagged = {
            "out_of_scope": getattr(found, "is_out_of_scope", False),
            "unsure": getattr(found, "is_unsure", False),
            "low_confidence": getattr(found, "is_low_confidence", False),
            "abstained": getattr(found, "abstained", False),
        }
        return [name for name, is_set in is_flagged.items() if is_set] + list(getattr(found, "warnings", ()))


def is_foreign(bundle: Bundle, text: str) -> bool:
    """Whether a text cannot be in the language that a bundle reads, by its script; a text without letters can."""
    languages = bundle.task.languages(bundle.task.settings)
    return bool(languages) and bool(languages[0]) and not is_in_script_of(text, base_of(languages[0]))


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
