"""`Split`: rows for training, validation and test, of which no text is in two sets.

The test set is taken as it is, the validation set lacks its texts, and the training set lacks those of both. Texts are
compared without case and white space and whatever their label. Of pairs, neither source nor target may recur.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from manyheads.data.cleaning import DUPLICATE, IN_TEST, LEAKED, Fields, TextSet
from manyheads.text.reading.readers import Row

HELD_OUT = "held out for validation"
NOTHING_TO_VALIDATE_ON = (
    "Each row of the validation set has a text that is in the test set too, so none is left to validate on. Leave out "
    "the test set to score the validation set instead, or give two sets without common texts."
)
_ONE_IN = 20  # characters of documents are held out if there is no validation set

Rows = Iterable[Row]


@dataclass(frozen=True)
class Split:
    """Where the rows come from, and how they are split. Nothing is kept in memory: every call reads the rows again."""

    fields: Fields
    read_train: Callable[[], Iterator[Rows]]  # the rows of each corpus
    read_valid: Callable[[], Rows] | None  # None: a part of the training rows is held out
    read_test: Callable[[], Rows]  # there may be none
    hold_out: Callable[[Rows], Mapping[Row, None]]  # choose the rows to validate on
    valid_fraction: float | None = None  # of the characters of documents

    def valid(self, counts: "Counter[str]") -> Iterator[Row]:
        """Yield the validation rows; count those dropped because the test set has one of their texts."""
        return self._test_texts().drop_from(self._valid_candidates(self.sampled()), IN_TEST, counts)

    def train(self, *, drops_leaked: bool = True) -> Iterator[Row]:
        """Yield the training rows; `drops_leaked = False` keeps those with a text of the other sets."""
        sampled = self.sampled()
        rows = without(chain.from_iterable(self.training_sets()), sampled, Counter())
        if not drops_leaked:
            return rows
        return TextSet(self.held_out(sampled), self.fields).drop_from(rows, LEAKED, Counter())

    def training_sets(self) -> Iterator[Rows]:
        """Yield the rows of each corpus that may be trained on, before sampled and leaked ones are dropped.

        Documents without a validation set lack the end of the text. Read each corpus to its end before the next.
        """
        if not self._divides_documents:
            return self.read_train()
        return (
            ((text[:n_training],) for text, n_training in documents if n_training > 0)
            for documents in self._divided_documents()
        )

    def sampled(self) -> Mapping[Row, None]:
        """Return the training rows that are held out if there is no validation set."""
        if self.read_valid or self._divides_documents:
            return {}
        return self.hold_out(chain.from_iterable(self.read_train()))

    def held_out(self, sampled: Rows) -> Rows:
        """Return the rows whose texts training must not see: for validation, even if the test set has them, and test.

        Of documents without a validation set they are the whole ones: two parts of one document may well be alike.
        """
        return chain(self._valid_candidates(sampled, are_whole=True), self.read_test())

    @property
    def _divides_documents(self) -> bool:
        """Whether a row is a whole document: too few and too long to hold out single rows."""
        return not self.read_valid and self.fields.n_fields == 1

    def _test_texts(self) -> TextSet:
        return TextSet(self.read_test(), self.fields)

    def _valid_candidates(self, sampled: Rows, *, are_whole: bool = False) -> Rows:
        if self.read_valid:
            return self.read_valid()
        return self._valid_documents(are_whole=are_whole) if self._divides_documents else sampled

    def _valid_documents(self, *, are_whole: bool) -> Iterator[Row]:
        """Yield the end of the text."""
        for text, n_training in chain.from_iterable(self._divided_documents()):
            if len(text) > n_training and not (are_whole and n_training > 0):
                yield (text[max(0, n_training) :],)

    def _divided_documents(self) -> Iterator[Iterator[tuple[str, int]]]:
        """Yield the documents of each corpus, each with the number of characters up to the part that is held out.

        One that the test set contains is not divided, so that training drops it as a whole.
        """
        total = sum(len(text) for rows in self.read_train() for (text,) in rows)
        n_left = total - round(total * (self.valid_fraction or 1 / _ONE_IN))

        def divide(rows: Rows) -> Iterator[tuple[str, int]]:
            nonlocal n_left
            for (text,) in rows:
                is_tested = 0 < n_left < len(text) and self._test_texts().has([(text,)]).all()
                yield text, len(text) if is_tested else n_left
                n_left -= len(text)

        return (divide(rows) for rows in self.read_train())


def without(
    rows: Rows, held_out: Mapping[Row, None], counts: "Counter[str]", counted: set[Row] | None = None
) -> Iterator[Row]:
    """Yield the rows that are not held out; count the others as HELD_OUT, their further copies as DUPLICATE.

    `counted` are the held-out rows that other corpora contain too and that are counted already; it is extended.
    """
    counted = set() if counted is None else counted
    for row in rows:
        if row not in held_out:
            yield row
            continue
        counts[DUPLICATE if row in counted else HELD_OUT] += 1
        counted.add(row)
