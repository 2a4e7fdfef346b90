"""`Remarks`: what is remarkable about many answers: unseen words, suspect outputs, texts that cannot be read.

It takes little memory however many answers there are. How remarks read in a terminal is decided in the cli package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from manyheads.answer.answer import Answer
from manyheads.answer.markup_translation import MarkupTranslation
from manyheads.tasks import Classification, Translations

N_LINES = 3  # named for each word or warning
MAX_UNSEEN = 100_000  # words that are counted
_LINE_KINDS = ("blank_lines", "out_of_scope", "low_confidence", "abstained")
_COUNTS = ("n_rated", "n_cut_off", "n_errors")


@dataclass
class LineNumbers:
    """The number of some lines, and the first of them: as much as a remark names."""

    n_lines: int = 0
    first: list[int] = field(default_factory=list)

    def append(self, number: int) -> None:
        """Add a line."""
        self.n_lines += 1
        if len(self.first) <= N_LINES:
            self.first.append(number)

    def extend(self, later: "LineNumbers") -> None:
        """Add lines that follow these."""
        self.n_lines += later.n_lines
        self.first = (self.first + later.first)[: N_LINES + 1]


class Remarks:
    """Collects what is remarkable about lines and their answers."""

    def __init__(self) -> None:
        self.n_cut_off = 0  # translations that reached the maximum length
        self.n_errors = 0  # lines that the model cannot read
        self.errors: list[str] = []  # that are not shown yet
        self.clear()

    def clear(self) -> None:
        """Forget the remarks, except for errors and translations that were cut off."""
        self.unseen: dict[str, tuple[str, list[int]]] = {}  # by the word in lower case: the word and its first lines
        self.suspect: dict[str, LineNumbers] = {}  # by the warning of a prediction: its lines
        self.blank_lines = LineNumbers()
        self.out_of_scope = LineNumbers()  # lines that are unlike the training texts of a classifier
        self.low_confidence = LineNumbers()  # lines whose translation is less probable than those of validation
        self.abstained = LineNumbers()  # lines without an answer, since their confidence is lower than asked for
        self.n_rated = 0  # translations with a confidence

    def add(self, number: int, answer: Answer) -> None:
        """Add what is remarkable about the line of this number."""
        if answer.error:
            self.n_errors += 1
            self.errors.append(answer.error)
            return
        if answer.is_blank:
            self.blank_lines.append(number)
        if answer.unseen_words:
            self.add_unseen(number, answer.unseen_words)
        prediction = answer.prediction
        for warning in getattr(prediction, "warnings", ()):
            self.suspect.setdefault(warning, LineNumbers()).append(number)
        if isinstance(prediction, Translations | MarkupTranslation):
            self.rate(number, prediction)
        elif isinstance(prediction, Classification) and prediction.is_out_of_scope:
            self.out_of_scope.append(number)

    def add_unseen(self, number: int, words: Sequence[str]) -> None:
        """Add words of a line that did not occur in training."""
        for word in words:
            self._add_unseen(word, [number])

    def rate(self, number: int, translation: Translations | MarkupTranslation) -> None:
        """Add the confidence of the translation of a line, if it is known, and whether it was cut off."""
        if isinstance(translation, MarkupTranslation):
            self.n_cut_off += translation.n_cut_off
        else:
            self.n_cut_off += not translation.candidates[0].finished
        if translation.confidence is None:
            return
        self.n_rated += 1
        if translation.abstained:
            self.abstained.append(number)
        elif translation.is_low_confidence:
            self.low_confidence.append(number)

    def _add_unseen(self, word: str, numbers: list[int]) -> None:
        key = word.casefold()
        if key in self.unseen:
            lines = self.unseen[key][1]
            lines += numbers[: N_LINES + 1 - len(lines)]
        elif len(self.unseen) < MAX_UNSEEN:
            self.unseen[key] = (word, numbers)

    def table(self) -> dict[str, Any]:
        """Return all remarks as JSON values."""
        return {
            "unseen": list(self.unseen.values()),
            "suspect": {name: asdict(lines) for name, lines in self.suspect.items()},
            **{name: asdict(getattr(self, name)) for name in _LINE_KINDS},
            **{name: getattr(self, name) for name in _COUNTS},
            "errors": self.errors,
        }

    def extend(self, table: Mapping[str, Any]) -> None:
        """Add the remarks on later lines, which `table` returned."""
        for word, lines in table["unseen"]:
            self._add_unseen(word, list(lines))
        for name, lines in table["suspect"].items():
            self.suspect.setdefault(name, LineNumbers()).extend(LineNumbers(**lines))
        for name in _LINE_KINDS:
            getattr(self, name).extend(LineNumbers(**table[name]))
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + table[name])
        self.errors += table["errors"]
