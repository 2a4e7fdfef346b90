"""Recipes that tasks propose: for a data set (`Survey`, `Proposal`), and for the built-in corpus (`Quickstart`)."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from manyheads.data import CleanSettings
from manyheads.data.cleaning import Fields
from manyheads.messages import Message, _n
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
    n_validations: int = 25  # at least; also of checkpoints
    notes: tuple[Message, ...] = ()  # what the user should know about this proposal

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


FEW_ROWS = 2_000
SOME_ROWS = 20_000
MANY_ROWS = 200_000
N_SPARE_TOKENS = 300  # tokens that are not characters: bytes and special tokens

_BUDGET = 20 * 60.0  # seconds, at most; small sets take a few minutes
_MIN_STEPS = 400
# (below this many characters, vocabulary size, vocabulary size of a script with many characters)
_VOCAB_SIZES = ((150_000, 2000, 4000), (2_000_000, 4000, 8000), (20_000_000, 8000, 8000))


def encoder_proposal(choices: Iterable[Choice], layers: int, n_epochs: float) -> Proposal:
    """The proposal for an encoder with this many layers."""
    return Proposal(tuple(choices), n_epochs, layers_of_width(layers, 128), budget=_BUDGET, min_steps=_MIN_STEPS)


def layers_of_width(n_layers: int, width: int) -> str:
    """The size of a model for the screen, in the language in use."""
    return _n("1 layer of width {width}", "{n} layers of width {width}", n_layers, width=width)


def token_choices(survey: Survey) -> Iterable[Choice]:
    """A unigram tokenizer whose vocabulary grows with the text."""
    characters = "; most are single characters such as 字" if survey.has_many_characters else ""
    reason = f"small enough for every token to occur often: {survey.size}{characters}"
    yield Choice("tokenizer.kind", "unigram", "subword tokens, learned from your text")
    yield Choice("tokenizer.vocab_size", _vocab_size(survey), reason)


def encoder_choices(survey: Survey, layers: int, dropout: float) -> Iterable[Choice]:
    """The size of the encoder."""
    yield Choice("model.width", 128, f"a small encoder is enough for {survey.size}")
    yield Choice("model.n_encoder_layers", layers)
    yield Choice("model.n_heads", 4)
    yield Choice("model.feed_forward_width", 256)
    yield Choice("model.activation", "gelu")
    yield from stable_choices(survey, dropout)


def stable_choices(survey: Survey, dropout: float) -> Iterable[Choice]:
    """Positions, norm placement and dropout."""
    yield Choice("model.positions", "rotary", "relative positions: the distance between words")
    yield Choice("model.norm_placement", "pre", "trains stably at a high learning rate")
    yield Choice("model.dropout", dropout, f"more for less text: {survey.size}")


def training_choices(
    *, batch_tokens: int, learning_rate: float, validation_reason: str, weight_decay: float = 0.01
) -> Iterable[Choice]:
    """Batches and schedule; `init` fills in the numbers of steps."""
    yield Choice("train.steps", 1)
    yield Choice(
        "train.batch_tokens", batch_tokens, "padded tokens of a batch: small batches learn more from each epoch"
    )
    yield from schedule_choices(learning_rate=learning_rate, validation_reason=validation_reason, ema_decay=0.998)
    yield Choice("train.weight_decay", weight_decay, "shrinks weights that do not contribute")


def dropout_for(survey: Survey) -> float:
    """More dropout for fewer rows."""
    return 0.3 if survey.n_rows < SOME_ROWS else 0.2 if survey.n_rows < MANY_ROWS else 0.1


def count_epochs(size: int, n_epochs: float, of: int, power: float) -> float:
    """`n_epochs` for data of size `of`, fewer for more data."""
    return min(60.0, max(3.0, n_epochs * (of / max(1, size)) ** power))


def text_tokens(survey: Survey, share: float) -> int:
    """Estimated tokens of a text that this share of texts does not exceed.

    A token has about three characters; one in a script with many characters.
    """
    return math.ceil(survey.length_quantile(share) / (1 if survey.has_many_characters else 3))


def _vocab_size(survey: Survey) -> int:
    for limit, vocab_size, with_many_characters in _VOCAB_SIZES:
        if survey.n_characters < limit:
            return with_many_characters if survey.has_many_characters else vocab_size
    return 16000


Predict = Callable[[Sequence[str]], Sequence[Any]]  # texts → predictions


@dataclass(frozen=True)
class Demo:
    """Answers of a freshly trained model, to read."""

    title: Message
    lines: Sequence[tuple[str, str]]  # text to emphasize, rest of the line


@dataclass(frozen=True, kw_only=True)
class Quickstart:
    """How to train and try a small model of a task on the built-in corpus in about two minutes on two cores."""

    name: str  # value of --task
    title: Message
    recipe: Mapping[str, Any]  # tables that differ from the common ones
    steps: int
    examples: Mapping[str, Sequence[str]]  # by language: texts within the model's vocabulary; the first is to be tried
    own_data: Message  # arguments of `manyheads init` for the reader's own data
    n_languages: int = 1  # 2: the corpus has a direction, such as en-zh
    takes_prompt: bool = False  # the model continues a prompt instead of reading lines
    demo: Callable[[Predict, str], Demo] | None = None  # by the predictions of the model and its language

    @property
    def default_corpus(self) -> str:
        """The built-in corpus that is used unless another is chosen."""
        return "en" if self.n_languages == 1 else "en-zh"

    def make_recipe(self, corpus: str, steps: int | None = None) -> dict[str, Any]:
        """Return the tables of the recipe for a built-in corpus, such as "zh" or "de-en"."""
        table = deepcopy(dict(self.recipe))
        table["data"] = {"builtin_rows": 30_000, **table.get("data", {}), "builtin": corpus}
        if corpus == "zh":
            # Chinese is written without spaces: BPE tokens would span several words and not recombine.
            table["tokenizer"] = {"kind": "character", "vocab_size": 1000}
        table["train"] |= {
            "steps": self.steps if steps is None else steps,
            "schedule": "cosine",
            "save_every": 50,
            "average_snapshots": 3,
        }
        # No dropout: rows are hardly ever repeated, so there is nothing to overfit.
        table["model"] |= {"preset": "tiny", "norm_placement": "pre", "dropout": 0.0, "max_length": 256}
        return table
