"""The tasks of the lab: small ones where theory predicts a difference, and sentences of the built-in corpus.

A task draws batches of ids from a generator, so that every arm sees the same data for the same seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import ClassVar, Literal, Protocol

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from manyheads.corpora import sentences

Shape = Literal["encoder-decoder", "encoder", "decoder"]
Split = Literal["train", "valid", "test"]
PAD, BOS, EOS, MASK = 0, 1, 2, 3
_N_SPECIAL = 4
_N_HELD_OUT = 1000  # sentences for validation, and as many for the test


@dataclass(frozen=True)
class LabBatch:
    """Ids that the model reads, and what it should predict where."""

    source: Int[Tensor, "B S"] | None
    target: Int[Tensor, "B T"] | None
    expected: Int[Tensor, "B T"]
    is_counted: Bool[Tensor, "B T"]  # the positions that are predicted

    @property
    def n_tokens(self) -> int:
        """The number of predictions that the loss is averaged over."""
        return int(self.is_counted.sum())


class LabTask(Protocol):
    """What a model learns in an experiment."""

    @property
    def shape(self) -> Shape:
        """The stacks that a model of this task needs."""

    @property
    def vocab_size(self) -> int:
        """The number of ids."""

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw a batch; a corpus takes the rows of each split from other sentences."""


@dataclass(frozen=True)
class Lookup:
    """Find records by key: the first token asks for one or two keys, each other token is a key with its value.

    The order of the records means nothing. With two lookups, the answer is the pair of both values.
    """

    n_keys: int = 16
    n_values: int = 16
    n_records: tuple[int, int] = (8, 8)  # fewest and most; shorter rows are padded
    n_lookups: Literal[1, 2] = 1
    noise: float = 0.0  # share of training answers that are drawn at random
    shape: ClassVar[Shape] = "encoder"

    @property
    def n_answers(self) -> int:
        """The number of possible answers."""
        return self.n_values**self.n_lookups

    @property
    def vocab_size(self) -> int:
        """PAD, answers, queries, records."""
        return 1 + self.n_answers + self.n_keys**self.n_lookups + self.n_keys * self.n_values

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw records with distinct keys; the keys asked for are among them."""
        fewest, most = self.n_records
        keys = torch.rand(n_rows, self.n_keys, generator=generator).argsort(1)[:, :most]
        values = torch.randint(self.n_values, (n_rows, most), generator=generator)
        lengths = torch.randint(fewest, most + 1, (n_rows, 1), generator=generator)
        asked = torch.rand(n_rows, fewest, generator=generator).argsort(1)[:, : self.n_lookups]
        base = torch.tensor([[self.n_keys], [1]][-self.n_lookups :])
        value_base = torch.tensor([[self.n_values], [1]][-self.n_lookups :])
        query = keys.gather(1, asked) @ base
        answer = values.gather(1, asked) @ value_base
        if self.noise and split == "train":
            wrong = torch.randint(self.n_answers, (n_rows, 1), generator=generator)
            answer = torch.where(torch.rand(n_rows, 1, generator=generator) < self.noise, wrong, answer)
        first_query = 1 + self.n_answers
        first_record = first_query + self.n_keys**self.n_lookups
        records = first_record + keys * self.n_values + values
        records = records.masked_fill(torch.arange(most) >= lengths, PAD)
        source = torch.cat([first_query + query, records], dim=1)
        expected, is_counted = torch.zeros_like(source), torch.zeros_like(source, dtype=torch.bool)
        expected[:, 0], is_counted[:, 0] = 1 + answer[:, 0], True
        return LabBatch(source, None, expected, is_counted)


@dataclass(frozen=True)
class Recall:
    """Remember: a row begins with records, `distance` tokens of noise follow, and the last token asks for a key."""

    distance: int = 16
    n_keys: int = 8
    n_values: int = 8
    n_records: int = 3
    n_noise: int = 8  # number of different noise tokens
    shape: ClassVar[Shape] = "decoder"

    @property
    def vocab_size(self) -> int:
        """PAD, answers, queries, records, noise."""
        return 1 + self.n_values + self.n_keys + self.n_keys * self.n_values + self.n_noise

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw records with distinct keys; only the last position is predicted."""
        keys = torch.rand(n_rows, self.n_keys, generator=generator).argsort(1)[:, : self.n_records]
        values = torch.randint(self.n_values, keys.shape, generator=generator)
        asked = torch.randint(self.n_records, (n_rows, 1), generator=generator)
        noise = torch.randint(self.n_noise, (n_rows, self.distance), generator=generator)
        first_query = 1 + self.n_values
        first_record = first_query + self.n_keys
        first_noise = first_record + self.n_keys * self.n_values
        records = first_record + keys * self.n_values + values
        target = torch.cat([records, first_noise + noise, first_query + keys.gather(1, asked)], dim=1)
        expected, is_counted = torch.zeros_like(target), torch.zeros_like(target, dtype=torch.bool)
        expected[:, -1], is_counted[:, -1] = 1 + values.gather(1, asked)[:, 0], True
        return LabBatch(None, target, expected, is_counted)


@dataclass(frozen=True)
class Facts:
    """Learn a fixed random table by heart: the first token is a subject, the second a relation, the answer an object.

    Nothing in the row tells the answer, so the weights have to hold it. Held-out rows ask for the same facts.
    """

    n_subjects: int = 32
    n_relations: int = 16
    n_objects: int = 32
    shape: ClassVar[Shape] = "encoder"

    @property
    def vocab_size(self) -> int:
        """PAD, objects, subjects, relations."""
        return 1 + self.n_objects + self.n_subjects + self.n_relations

    @property
    def table(self) -> Int[Tensor, "S R"]:
        """The object of every subject and relation; the same in every trial."""
        shape = (self.n_subjects, self.n_relations)
        return torch.randint(self.n_objects, shape, generator=Generator().manual_seed(0))

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw facts at random; the answer is predicted at the subject."""
        subjects = torch.randint(self.n_subjects, (n_rows,), generator=generator)
        relations = torch.randint(self.n_relations, (n_rows,), generator=generator)
        first_subject = 1 + self.n_objects
        source = torch.stack([first_subject + subjects, first_subject + self.n_subjects + relations], dim=1)
        expected, is_counted = torch.zeros_like(source), torch.zeros_like(source, dtype=torch.bool)
        expected[:, 0], is_counted[:, 0] = 1 + self.table[subjects, relations], True
        return LabBatch(source, None, expected, is_counted)


@dataclass(frozen=True)
class Reorder:
    """Write the symbols of a row in another order: reversed, or each one place later. Only positions help."""

    order: Literal["reverse", "previous"] = "reverse"
    n_symbols: int = 16
    lengths: tuple[int, int] = (4, 12)
    shape: Shape = "encoder"

    @property
    def vocab_size(self) -> int:
        """The special tokens and the symbols."""
        return _N_SPECIAL + self.n_symbols

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw random symbols; the first position of "previous" has nothing to repeat and does not count."""
        fewest, most = self.lengths
        symbols = torch.randint(_N_SPECIAL, self.vocab_size, (n_rows, most), generator=generator)
        lengths = torch.randint(fewest, most + 1, (n_rows, 1), generator=generator)
        positions = torch.arange(most).expand(n_rows, -1)
        is_real = positions < lengths
        if self.order == "reverse":
            expected, is_counted = symbols.gather(1, (lengths - 1 - positions).clamp(min=0)), is_real
        else:
            expected, is_counted = symbols.roll(1, dims=1), is_real & (positions > 0)
        symbols = symbols.masked_fill(~is_real, PAD)
        if self.shape == "decoder":
            return LabBatch(None, symbols, expected, is_counted)
        return LabBatch(symbols, None, expected, is_counted)


@dataclass(frozen=True)
class Text:
    """English sentences of the built-in corpus by words: predict the next word, or 15 % masked words."""

    kind: Literal["causal", "masked"] = "causal"
    n_sentences: tuple[int, int] = (1, 1)  # per row, one after the other
    n_train: int = 10_000

    @property
    def shape(self) -> Shape:
        """A decoder predicts the next word, an encoder the masked ones."""
        return "decoder" if self.kind == "causal" else "encoder"

    @property
    def vocab_size(self) -> int:
        """The special tokens and all words."""
        return len(_words("en", self.n_train))

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw sentences at random."""
        known = _sentence_ids("en", self.n_train, split)
        fewest, most = self.n_sentences
        counts = torch.randint(fewest, most + 1, (n_rows,), generator=generator).tolist()
        drawn = iter(torch.randint(len(known), (sum(counts),), generator=generator).tolist())
        rows = [list(chain.from_iterable((*known[next(drawn)], EOS) for _ in range(count))) for count in counts]
        if self.kind == "causal":
            target = _padded([[BOS, *row[:-1]] for row in rows])
            expected = _padded(rows)
            return LabBatch(None, target, expected, expected != PAD)
        expected = _padded(rows)
        is_counted = (torch.rand(expected.shape, generator=generator) < 0.15) & (expected >= _N_SPECIAL)
        is_counted[:, 0] |= ~is_counted.any(1)  # no row without a prediction
        return LabBatch(expected.masked_fill(is_counted, MASK), None, expected, is_counted)


@dataclass(frozen=True)
class Translation:
    """Sentences of the built-in corpus, English words to Chinese characters."""

    n_train: int = 20_000
    noise: float = 0.0  # share of target words in training that are replaced at random, as targets only
    shape: ClassVar[Shape] = "encoder-decoder"

    @property
    def vocab_size(self) -> int:
        """The special tokens, the words and the characters: one vocabulary, so that embeddings can be tied."""
        return len(_words("en", self.n_train)) + len(_words("zh", self.n_train)) - _N_SPECIAL

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw sentence pairs at random."""
        sources, targets = (_sentence_ids(language, self.n_train, split) for language in ("en", "zh"))
        offset = len(_words("en", self.n_train)) - _N_SPECIAL
        drawn = torch.randint(len(sources), (n_rows,), generator=generator).tolist()
        source = _padded([[*sources[row], EOS] for row in drawn])
        rows = [[offset + number for number in targets[row]] for row in drawn]
        written = _padded([[*row, EOS] for row in rows])
        target = _padded([[BOS, *row] for row in rows])
        is_counted = written != PAD
        if self.noise and split == "train":
            wrong = torch.randint(_N_SPECIAL + offset, self.vocab_size, written.shape, generator=generator)
            written = torch.where(torch.rand(written.shape, generator=generator) < self.noise, wrong, written)
        return LabBatch(source, target, written, is_counted)


@dataclass(frozen=True)
class _Wrapper:
    """A task that changes the training data of another."""

    task: LabTask

    @property
    def shape(self) -> Shape:
        """The stacks of the other task."""
        return self.task.shape

    @property
    def vocab_size(self) -> int:
        """The number of ids of the other task."""
        return self.task.vocab_size


@dataclass(frozen=True)
class FewRows(_Wrapper):
    """Another task with little training data: all batches draw from the same rows. Held-out rows stay as they are."""

    n_rows: int

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw from the rows that there are."""
        if split != "train":
            return self.task.batch(n_rows, generator, split=split)
        rows, drawn = _fixed_rows(self), torch.randint(self.n_rows, (n_rows,), generator=generator)
        source, target = (None if ids is None else ids[drawn] for ids in (rows.source, rows.target))
        return LabBatch(source, target, rows.expected[drawn], rows.is_counted[drawn])


@cache
def _fixed_rows(few: FewRows) -> LabBatch:
    return few.task.batch(few.n_rows, Generator().manual_seed(0))


@dataclass(frozen=True)
class Repeated(_Wrapper):
    """Another task with little data: training draws one of `n_batches` batches, which never change, noise included."""

    n_batches: int

    def batch(self, n_rows: int, generator: Generator, *, split: Split = "train") -> LabBatch:
        """Draw a known batch for training, a new one for a test."""
        if split == "train":
            generator = Generator().manual_seed(int(torch.randint(self.n_batches, (), generator=generator)))
        return self.task.batch(n_rows, generator, split=split)


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "B T"]:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


@cache
def _words(language: str, n_train: int) -> dict[str, int]:
    """The id of each word of the training sentences, most frequent first."""
    counts: dict[str, int] = {}
    for sentence in _split(language, "train", n_train):
        for word in sentence:
            counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    special = {name: number for number, name in enumerate(("<pad>", "<bos>", "<eos>", "<mask>"))}
    return special | {word: _N_SPECIAL + number for number, word in enumerate(ordered)}


@cache
def _sentence_ids(language: str, n_train: int, split: Split) -> list[list[int]]:
    """The ids of every sentence; a held-out word that training lacks becomes MASK."""
    words = _words(language, n_train)
    known = _split(language, split, n_train if split == "train" else _N_HELD_OUT)
    return [[words.get(word, MASK) for word in sentence] for sentence in known]


@cache
def _split(language: str, split: str, count: int) -> list[list[str]]:
    """Sentences as words, Chinese as characters."""
    texts = (sentence.text(language) for sentence in sentences(split, count))
    if language == "zh":
        return [list(text) for text in texts]
    return [text.lower().replace(".", " .").replace(",", " ,").replace("?", " ?").split() for text in texts]
