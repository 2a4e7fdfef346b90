"""`Answer`: a text and all that is known about its prediction."""

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.answer.markup_translation import MarkupTranslation
from manyheads.tasks import Prediction
from manyheads.text.reading.gold_alignments import Link


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
    is_blank: bool = False  # the text has nothing to answer; a language model starts a new text there
    error: str = ""  # why the model cannot read the text
    alignment: WordAlignment | None = None

    def line(self) -> str:
        """Return the answer as one line; empty if there is nothing to answer."""
        return "" if self.error or self.is_blank else self.prediction.line()
