"""One small model of each task, that knows nothing, and a text for it."""

from functools import cache
from typing import Any

from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Seq2Seq,
    Seq2SeqSettings,
    Tag,
    TagSettings,
    Task,
)
from tasks.makers import TOKENIZERS, make_model

from model.makers import shaken

KINDS = ("seq2seq", "classify", "tag", "language", "masked")
TEXTS = {
    "seq2seq": "the cat sat on the mat.",
    "classify": "no dog sat; the red mat",
    "tag": "no dog sat,  the red mat",
    "language": "the dog ran",
    "masked": "the [MASK] sat on the [MASK].",
}
ANSWER = " to the cat"


@cache
def task_of(kind: str, tokenizer: str = "bpe", **changes: Any) -> Task:
    """Shared between tests, so leave its weights alone."""
    pieces = TOKENIZERS[tokenizer]

    def model(shape: str) -> Any:
        return shaken(make_model(pieces, shape, **{"max_length": 48, **changes}))

    match kind:
        case "seq2seq":
            return Seq2Seq(model("encoder-decoder"), pieces, Seq2SeqSettings())
        case "language":
            return Language(model("decoder"), pieces, LanguageSettings())
        case "masked":
            return Masked(model("encoder"), pieces, MaskedSettings())
        case "classify":
            facts: dict[str, Any] = {"labels": ["a", "b"], "counts": [1, 1], "n_rows": 2, "temperature": 1.0}
            task: Task = Classify.restore(model("encoder"), pieces, ClassifySettings(), facts)
        case _:
            facts = {"labels": ["a"], "intents": [], "unit": "word", "temperature": 1.0}
            task = Tag.restore(model("encoder"), pieces, TagSettings(), facts)
    task.module.eval()
    return task
