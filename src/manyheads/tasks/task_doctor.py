"""`TaskDoctor`: a task's part of `manyheads doctor`, which checks data, runs and bundles.

Doctor itself checks what any text may suffer from: duplicates, leakage, blank and garbled lines. A task adds what only
it knows: faults of its labels, tags or documents, how long its rows may be, and what a broken model answers. A task
overrides the methods in which it differs. All text is in the language in use.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from manyheads.messages import Message, _
from manyheads.model import ModelSettings
from manyheads.tasks.findings import Finding, Verdict, excerpt, share, verdict_of
from manyheads.text.reading.readers import Row

MAX_ROWS = 2_000_000  # of a set that are examined

Sample = tuple[str, str, str]  # input, prediction, reference
_PAIRS = Message("pairs")


@dataclass(frozen=True)
class AnswerNoun:
    """What a model's answers are called."""

    singular: Message
    plural: Message


ANSWER = AnswerNoun(Message("prediction"), Message("predictions"))
LABEL = AnswerNoun(Message("label"), Message("labels"))
INTENT = AnswerNoun(Message("intent"), Message("intents"))
ENTITY_TYPE = AnswerNoun(Message("type"), Message("types"))


@dataclass(frozen=True)
class Source:
    """A set of rows, which can be read again and again, and the names of its lines."""

    name: str  # "train", "valid", "test"
    read: Callable[[], Iterable[Row]]
    files: tuple[str, ...] = ()  # names shown in examples; empty for the built-in corpus or a mix
    first_line: int = 1  # 2 if there is a header
    has_line_per_row: bool = True  # False for documents and CoNLL columns, whose rows are counted instead
    noun: Message = _PAIRS  # what its rows are called
    n_texts: int = 2  # of a row; its other fields are labels

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are examined."""
        return islice(iter(self.read()), MAX_ROWS)

    def location(self, index: int, side: int = 0) -> str:
        """Return the file and line of a text."""
        file = self.files[min(side, len(self.files) - 1)] if self.files else self.name
        if not self.has_line_per_row:
            return _("{file}, row {index}", file=file, index=index + 1)
        return f"{file}:{index + self.first_line}"


class TaskDoctor:
    """The defaults of a task's part of `doctor`; a row of the task has one text, which is on one line."""

    noun: ClassVar[Message] = Message("texts")  # what rows are called; Chinese with its measure word
    has_long_texts: ClassVar[bool] = False  # whether a text is more than a sentence or two

    def has_line_per_row(self, files: Sequence[str], settings: Any) -> bool:
        """Whether each row of these files is a line."""
        return True

    def are_translations(self, settings: Any) -> bool:
        """Whether a row's two texts say the same, so that their lengths and languages are compared."""
        return False

    def check_rows(self, sets: Sequence[Source], settings: Any) -> Iterator[Finding]:
        """Check the rows of all sets, the training set first."""
        return iter(())

    def check_lengths(
        self, lengths: NDArray[np.integer[Any]], n_too_long: int, model: ModelSettings, settings: Any
    ) -> Iterator[Finding]:
        """Check the numbers of tokens of the training rows; `n_too_long` more are kept out."""
        total = len(lengths) + n_too_long
        verdict = verdict_of(n_too_long, total, warn=0.02, fail=0.5)
        message = _(
            "{counted} {rows} are longer than model.max_length = {max_length} allows; the longest kept has {longest:,} "
            "tokens.",
            counted=share(n_too_long, total),
            rows=self.noun,
            max_length=model.max_length,
            longest=int(lengths.max(initial=0)),
        )
        fix = _("Training keeps them out: raise model.max_length, or split them.")
        yield Finding("length in tokens", verdict, message, (), "" if verdict == "good" else fix)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check the predictions for different inputs as a whole."""
        return check_all_same(check, samples, ANSWER)


def check_all_same(check: str, samples: Sequence[Sample], noun: AnswerNoun) -> Finding:
    """Check that the predictions are not all the same where the references differ."""
    predicted = {prediction for _, prediction, _ in samples}
    expected = {reference for *_, reference in samples}
    if len(predicted) > 1 or len(expected) < 2 or len(samples) < 4:
        message = _(
            "{n_inputs} different inputs got {n_answers} different {answers}.",
            n_inputs=len(samples),
            n_answers=len(predicted),
            answers=noun.plural,
        )
        return Finding(check, "good", message)
    (only,) = predicted
    return Finding(
        check,
        "bad",
        _(
            "all {n_inputs} inputs got the same {answer}, “{only}”, but {n_expected} are expected.",
            n_inputs=len(samples),
            answer=noun.singular,
            only=only,
            n_expected=len(expected),
        ),
        (),
        _("The model ignores its input: train longer, lower train.learning_rate, and run doctor on the recipe."),
    )


_MIN_REPEATS = 4  # in a row


def check_outputs(check: str, sources: Sequence[str], outputs: Sequence[str]) -> Finding:
    """Check the translations of different sentences as a whole."""
    pairs = list(dict(zip(sources, outputs, strict=True)).items())
    total = len(pairs)
    same = Counter(output for _, output in pairs if output.strip()).most_common(1)
    most_common, n_same = same[0] if same else ("", 0)
    empty = [source for source, output in pairs if not output.strip()]
    copied = [source for source, output in pairs if output.strip() and output.split() == source.split()]
    repetitive = [output for _, output in pairs if is_repetitive(output)]
    n_identical = n_same if n_same > 1 else 0
    worst = max(n_identical, len(empty), len(copied), len(repetitive)) / max(total, 1)
    verdict: Verdict = "good" if worst <= 0.15 else "warning" if worst <= 0.4 else "bad"
    message = _(
        "of {total} different sentences, {n_identical} have the same translation, {n_copied} are copied, "
        "{n_repetitive} are repetitive, {n_empty} are empty.",
        total=total,
        n_identical=n_identical,
        n_copied=len(copied),
        n_repetitive=len(repetitive),
        n_empty=len(empty),
    )
    if verdict == "good":
        return Finding(check, verdict, message)
    shown = {
        f"{n_identical} ×: {excerpt(most_common)}": n_identical,
        **{_("repetitive: {text}", text=excerpt(output)): len(repetitive) for output in repetitive[:1]},
        **{_("copied: {text}", text=excerpt(source)): len(copied) for source in copied[:1]},
        **{_("empty: {text}", text=excerpt(source)): len(empty) for source in empty[:1]},
    }
    examples = tuple(text for text, count in shown.items() if count / total > 0.15)
    fix = _(
        "The model ignores its source: train longer, lower train.learning_rate, and run doctor on the recipe "
        "(languages, alignment, overfit one batch)."
    )
    return Finding(check, verdict, message, examples[:3], fix)


def is_repetitive(text: str) -> bool:
    """Return whether a phrase occurs four times in a row: "the cat the cat the cat the cat", "今天今天今天今天"."""
    words = text.split() if len(text.split()) >= _MIN_REPEATS else list(text)
    for length in range(1, len(words) // _MIN_REPEATS + 1):
        run = 0
        for here, ahead in zip(words, words[length:], strict=False):
            run = run + 1 if here == ahead else 0
            if run >= length * (_MIN_REPEATS - 1):
                return True
    return False
