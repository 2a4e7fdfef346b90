"""What is remarkable about answers: unseen words, another language, suspect outputs, texts that cannot be read.

`Remarks` collects what concerns many answers and takes little memory however many there are; how that reads in a
terminal is decided in the cli package. `text_remarks` returns the remarks on one text as sentences, for all that look
closely at one text: the lens page, its saved form, and the walk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from manyheads.answer.answer import Answer, is_foreign
from manyheads.answer.markup_translation import MarkupTranslation
from manyheads.bundle import Bundle
from manyheads.messages import Message
from manyheads.tasks import Classification, Prediction, Translations
from manyheads.text.language_codes import base_of
from manyheads.text.tokens.seen_words import words_of

N_LINES = 3  # named for each word or warning
MAX_UNSEEN = 100_000  # words that are counted
_LINE_KINDS = ("blank_lines", "foreign", "out_of_scope", "low_confidence", "abstained")
_COUNTS = ("n_rated", "n_cut_off", "n_errors")
_N_NAMED = 8  # unseen words in a sentence
_MANY_UNSEEN = 0.5  # share of words that suggests another language
_LANGUAGES = {"en": Message("English"), "zh": Message("Chinese"), "de": Message("German")}
_WARNINGS = {
    "repetition": Message("The output repeats itself. Check it for repetitions."),
    "length": Message("The output is more than twice as long as in training. Check its end."),
    "short": Message("The output is shorter than in training. Something may have been left out."),
    "missing": Message("Code, markup or addresses of the source were lost."),
}
_LOW_CONFIDENCE = Message(
    "Low confidence: nearly all translations of the validation set were more probable. Check this one."
)


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
        self.foreign = LineNumbers()  # lines that are not in the language that the model reads
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
        if answer.is_foreign:
            self.foreign.append(number)
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


def text_remarks(bundle: Bundle, text: str, prediction: Prediction | None = None) -> tuple[Message, ...]:
    """Return the remarks on one text, and on its prediction if it is given, as sentences.

    A model that knows neither a text's words nor its language answers with the same assurance as ever, and its heads
    attend to something.
    """
    remarks = [*_language_remarks(bundle, text), *_unseen_remarks(bundle, text)]
    remarks += [_WARNINGS[name] for name in getattr(prediction, "warnings", ()) if name in _WARNINGS]
    if isinstance(prediction, Translations) and prediction.is_low_confidence:
        remarks.append(_LOW_CONFIDENCE)
    if isinstance(prediction, Classification) and prediction.is_out_of_scope:
        remarks.append(
            Message(
                "Out of scope: the text is unlike all training texts (score {score}), so probably no label fits.",
                score=f"{prediction.out_of_scope:.2f}",
            )
        )
    return tuple(remarks)


def _language_remarks(bundle: Bundle, text: str) -> list[Message]:
    """Return whether a text seems to be in another language than the model reads."""
    languages = bundle.task.languages(bundle.task.settings)
    code = base_of(languages[0]) if languages else ""
    name = _LANGUAGES.get(code) or Message("{name}", name=code)
    if is_foreign(bundle, text):
        return [Message("The text is not in {language}, the language that this model reads.", language=name)]
    words = {word.casefold() for word in words_of(text)}
    if len(words) < 2 or len(bundle.unseen_words(text)) <= _MANY_UNSEEN * len(words):
        return []
    if not code:
        return [Message("Most words of the text did not occur in training.")]
    return [Message("Most words of the text did not occur in training: is it {language}?", language=name)]


def _unseen_remarks(bundle: Bundle, text: str) -> list[Message]:
    words = bundle.unseen_words(text)
    named = ", ".join(words[:_N_NAMED]) + (" …" if len(words) > _N_NAMED else "")
    return [Message("Not seen in training: {list}.", list=named)] if words else []
