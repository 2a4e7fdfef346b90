"""What `manyheads init` learns about a data set (`Survey`) and the recipe a task proposes for it (`Proposal`)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from manyheads.data import CleanSettings
from manyheads.data.cleaning import Fields
from manyheads.text.reading.readers import Row

HOUR = 3600.0

_MANY_CHARACTERS = 300
_RARE = 5  # a label with fewer rows is hardly learned


@dataclass(frozen=True)
class LabelCounts:
    """How often each label occurs, and each intent; the most frequent first."""

    labels: Mapping[str, int] = field(default_factory=dict)
    intents: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """All labels and intents."""
        return {*self.labels, *self.intents}


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The statistics of a data set from which a proposal is made."""

    settings: Any  # the task's settings
    fields: Fields
    noun: str  # what one row is called: "pair", "sentence", "document", "row"
    n_rows: int  # clean rows to train on
    n_read: int
    n_examined: int  # if fewer than were read, the other numbers are extrapolated
    sample: tuple[Row, ...]  # clean rows
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows examined but not used, by reason
    n_held_out: int = 0  # rows kept out of training to validate on; characters, if rows are documents
    n_scored: int = 0  # rows scored at the end
    clean: CleanSettings = field(default_factory=CleanSettings)
    n_characters: int = 0  # of the texts to train on
    n_scored_characters: int = 0
    valid_sample: tuple[Row, ...] = ()  # rows used for validation during training; the first ones, if they are long
    n_validated: int = 0  # how many rows are used for it
    languages: tuple[str, str] | None = None  # of pairs: source and target, "" if not known; None for other tasks
    counts: LabelCounts = field(default_factory=LabelCounts)
    unseen_labels: tuple[str, ...] = ()  # labels of the valid or test set that the training set lacks
    row_label: str = ""  # "label" or "intent", if each row has exactly one

    @property
    def is_exact(self) -> bool:
        """Whether every row was examined."""
        return self.n_read == self.n_examined

    @property
    def are_documents(self) -> bool:
        """Whether rows are whole documents, counted in characters."""
        return self.fields.n_fields == 1

    @property
    def texts(self) -> Iterator[str]:
        """The texts of the sample: both sides of pairs, never labels."""
        return (text for row in self.sample for text in row[: self.fields.n_texts])

    @property
    def has_many_characters(self) -> bool:
        """Whether the script has thousands of characters, as Chinese does; each needs a token of its own."""
        characters = {character for text in self.texts for character in text if "\u3040" <= character <= "\ud7a3"}
        return len(characters) > _MANY_CHARACTERS

    def length_quantile(self, share: float) -> int:
        """The length in characters that this share of the texts does not exceed."""
        lengths = sorted(map(len, self.texts))
        return lengths[int(share * (len(lengths) - 1))]

    @property
    def rare_labels(self) -> list[str]:
        """Labels with too few rows to be learned."""
        counts = (*self.counts.labels.items(), *self.counts.intents.items())
        return [label for label, count in counts if count < _RARE]

    @property
    def size(self) -> str:
        """The number of training rows, or of characters if rows are documents: "about 29,000 pairs"."""
        count = (self.n_characters, "character") if self.are_documents else (self.n_rows, self.noun)
        return f"{'' if self.is_exact else 'about '}{pluralized(*count)}"


@dataclass(frozen=True)
class Choice:
    """One setting of a recipe and the reason for its value."""

    name: str  # section.key
    value: object
    reason: str = ""


@dataclass(frozen=True)
class Proposal:
    """The settings of a recipe in the order they are written, and how long to train."""

    choices: tuple[Choice, ...]
    n_epochs: float
    size: str  # of the model, for display
    preset: str = ""  # "" if the sizes of the model are set one by one
    smaller_preset: str = ""  # to propose if this one is too slow; "" if there is none
    budget: float = HOUR  # default training time in seconds
    min_steps: int = 600  # the number of steps does not fall below this on small data
    max_warmup: int = 600

    def get(self, name: str, default: Any) -> Any:
        """The value of a setting, or `default` if the proposal does not set it."""
        return next((choice.value for choice in self.choices if choice.name == name), default)

    def table(self) -> dict[str, Any]:
        """The proposal as nested TOML tables."""
        table: dict[str, Any] = {}
        for choice in self.choices:
            section, _, key = choice.name.rpartition(".")
            (table.setdefault(section, {}) if section else table)[key] = choice.value
        return table


def schedule_choices(*, learning_rate: float, validation_reason: str, ema_decay: float = 0.999) -> Iterable[Choice]:
    """The learning-rate schedule, validation and averaging; `init` fills in the numbers of steps."""
    yield Choice("train.schedule", "cosine", "the learning rate rises, then falls to 0 at the last step")
    yield Choice("train.learning_rate", learning_rate, "peak value; narrow models tolerate higher ones")
    yield Choice("train.warmup", 1, "steps over which the learning rate rises")
    yield Choice("train.validate_every", 1, validation_reason)
    yield Choice("train.save_every", 1, "steps between checkpoints: at most this many are lost if the run is killed")
    yield Choice("train.ema_decay", ema_decay, "average the weights over training (EMA): less noise")
    yield Choice("train.average_snapshots", 1, "the EMA makes averaging snapshots unnecessary")


def pluralized(count: int, noun: str) -> str:
    """A count and its noun: "1 pair", "2,000 pairs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def count_labels(labels: Iterable[Sequence[str]], intents: Iterable[Sequence[str]] = ()) -> LabelCounts:
    """Count the labels of all rows, and the intents."""
    counts = (Counter(name for names in rows for name in names) for rows in (labels, intents))
    return LabelCounts(*(dict(count.most_common()) for count in counts))
