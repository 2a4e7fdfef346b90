"""`Sample`: rows of a bundle's own data, and the task's loss and score on them with some heads gated."""

import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError
from manyheads.messages import _
from manyheads.metrics import Tally
from manyheads.model import evaluating, gated
from manyheads.run import Corpus, Recipe
from manyheads.tasks import Task, TrainingData
from manyheads.text.reading.readers import Row

_BATCH_TOKENS = 2500


def valid_rows(bundle: Bundle, n_rows: int, files: Sequence[Path] = ()) -> list[Row]:
    """Return the first usable validation rows of the bundle's recipe, or of these files."""
    if n_rows < 2:
        raise LensError(
            _("A sample of {n_rows} rows is too small. Take at least 2, better 100 or more.", n_rows=n_rows)
        )
    try:
        rows = list(islice(_usable_rows(bundle, files, "valid"), n_rows))
    except DataError as error:
        if files:
            raise
        raise DataError(
            _(
                "{error} The validation data of the bundle's recipe cannot be read: give rows with --valid.",
                error=error,
            )
        ) from None
    if len(rows) < 2:
        raise DataError(
            _("There are {n_rows} validation rows; at least 2 are needed. Give others with --valid.", n_rows=len(rows))
        )
    return rows


def train_rows(bundle: Bundle, n_rows: int, files: Sequence[Path] = ()) -> list[Row]:
    """Draw usable training rows of the bundle's recipe, or of these files, uniformly at random with a fixed seed."""
    if n_rows < 1:
        raise LensError(_("A sample of {n_rows} rows is too small. Take some thousands.", n_rows=n_rows))
    rng, sample = random.Random(1), list[Row]()
    try:
        for number, row in enumerate(_usable_rows(bundle, files, "train")):  # reservoir sampling
            if number < n_rows:
                sample.append(row)
            elif (index := rng.randrange(number + 1)) < n_rows:
                sample[index] = row
    except DataError as error:
        if files:
            raise
        raise DataError(
            _("{error} The training data of the bundle's recipe cannot be read: give rows with --train.", error=error)
        ) from None
    if not sample:
        raise DataError(_("There are no training rows. Give others with --train."))
    return sample


def _usable_rows(bundle: Bundle, files: Sequence[Path], split: str) -> Iterator[Row]:
    rows: Iterable[Row]
    if files:
        rows = bundle.task.read([str(file) for file in files], {}, bundle.task.settings)
    else:
        recipe = Recipe.from_table(bundle.recipe)
        corpus = Corpus.of(recipe)
        rows = corpus.train() if split == "train" else corpus.valid()
    return bundle.task.usable(iter(rows))


@dataclass(frozen=True)
class Sample:
    """Rows with their batches, made once and used for every measurement."""

    rows: Sequence[Row]
    decode: DecodeSettings
    plans: Sequence[Any]
    training_data: TrainingData
    batches: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)

    def training_task(self, task: Task) -> Any:
        """Return the task's training task without R-Drop, whose second pass is identical without dropout."""
        if getattr(task.settings, "consistency", 0.0):
            task = replace(task, settings=replace(task.settings, consistency=0.0))  # type: ignore[type-var]
        return task.training_task(self.training_data)

    def loss(self, task: Task, gates: Mapping[str, Tensor] | None = None) -> float:
        """Return the task's training loss per token, without dropout, under these gates."""
        training_task = self.training_task(task)
        total, n_tokens = 0.0, 0
        with evaluating(task.module), gated(task.model, gates or {}):
            for number, plan in enumerate(self.plans):
                if number not in self.batches:
                    self.batches[number] = training_task.make(plan, number)
                batch = self.batches[number]
                total += float(training_task.loss(batch, 0)) * batch.n_tokens
                n_tokens += batch.n_tokens
        return total / n_tokens

    def tally(self, task: Task, gates: Mapping[str, Tensor] | None = None) -> Tally:
        """Return the tally of the task's first score under these gates."""
        with evaluating(task.module), gated(task.model, gates or {}):
            return task.tally(self.rows, self.decode)


@contextmanager
def open_sample(task: Task, rows: Sequence[Row], decode: DecodeSettings) -> Iterator[Sample]:
    """Encode rows as a sample. Generated text is decoded greedily: beam search would take several times as long."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Texts.write(folder / "text", rows, len(rows[0]))
        texts = Texts.open(folder / "text")
        encode = partial(_encode, task)
        Encoded.write(folder / "ids", texts, encode, task.max_row_length(task.model.settings, task.settings))
        encoded = Encoded.open(folder / "ids", texts)
        if not len(encoded):
            raise DataError(
                _("None of the {n_rows} rows can be used: all are too long for this model.", n_rows=len(rows))
            )
        training_data = TrainingData(encoded=encoded, batch_tokens=_BATCH_TOKENS)
        plans = list(task.training_task(training_data).plan(0))
        yield Sample(rows, replace(decode, method="greedy", n_best=1, repetition_guard=False), plans, training_data)


def _encode(task: Task, rows: Sequence[Row]) -> Sequence[Sequence[Sequence[int]]]:
    return task.encode_rows(rows, task.tokenizer, task.settings)
