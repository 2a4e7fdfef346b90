"""A sample of a bundle's own rows to measure heads by, and what it comes to: a loss, a score."""

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
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
from manyheads.metrics import Tally
from manyheads.model import evaluating, gated
from manyheads.run import Corpus, Recipe
from manyheads.tasks import Task, TrainingData
from manyheads.text.readers import Row

_BATCH_TOKENS = 2500


def valid_rows(bundle: Bundle, n_rows: int, files: Sequence[Path] = ()) -> list[Row]:
    """The first usable rows of the bundle's valid set, or of these files."""
    if n_rows < 2:
        raise LensError(f"A sample of {n_rows} says nothing. Take at least 2, better 100 or more.")
    try:
        if files:
            rows = bundle.task.read([str(file) for file in files], {}, bundle.task.settings)
        else:
            recipe = Recipe.from_table(bundle.recipe)
            rows = iter(Corpus.of(recipe).valid())
        found = list(islice(bundle.task.usable(rows), n_rows))
    except DataError as error:
        told = "" if files else " The valid set of the bundle's recipe cannot be read: name other rows with --valid."
        raise DataError(f"{error}{told}") from None
    if len(found) < 2:
        raise DataError(f"There are {len(found)} rows to measure by; at least 2 are needed. Name others with --valid.")
    return found


def train_rows(bundle: Bundle, n_rows: int, files: Sequence[Path] = ()) -> list[Row]:
    """Some usable rows of what the bundle was trained on, or of these files: drawn from all of them alike."""
    if n_rows < 1:
        raise LensError(f"A sample of {n_rows} rows teaches nothing. Take some thousands.")
    try:
        if files:
            rows = bundle.task.read([str(file) for file in files], {}, bundle.task.settings)
        else:
            recipe = Recipe.from_table(bundle.recipe)
            rows = iter(Corpus.of(recipe).train())
        chance, found = random.Random(1), list[Row]()
        for number, row in enumerate(bundle.task.usable(rows)):
            if number < n_rows:
                found.append(row)
            elif (place := chance.randrange(number + 1)) < n_rows:
                found[place] = row
    except DataError as error:
        told = (
            "" if files else " The training text of the bundle's recipe cannot be read: name other rows with --train."
        )
        raise DataError(f"{error}{told}") from None
    if not found:
        raise DataError("There are no rows to learn from. Name others with --train.")
    return found


@dataclass(frozen=True)
class Sample:
    """Rows that heads are measured by, cut into batches once and for all."""

    rows: Sequence[Row]
    decode: DecodeSettings
    plans: Sequence[Any]
    training_data: TrainingData
    batches: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)

    def training_task(self, task: Task) -> Any:
        """The task's own, without the second pass that R-Drop makes: without dropout, both are the same."""
        if getattr(task.settings, "consistency", 0.0):
            task = replace(task, settings=replace(task.settings, consistency=0.0))  # type: ignore[type-var]
        return task.training_task(self.training_data)

    def loss(self, task: Task, gates: Mapping[str, Tensor] | None = None) -> float:
        """The task's own loss per token, without dropout, with heads gated."""
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
        """The task's own score, taken apart, with heads gated."""
        with evaluating(task.module), gated(task.model, gates or {}):
            return task.tally(self.rows, self.decode)


@contextmanager
def open_sample(task: Task, rows: Sequence[Row], decode: DecodeSettings) -> Iterator[Sample]:
    """Rows made ready to measure heads by. Texts are written greedily: a search would take several times as long."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Texts.write(folder / "text", rows, len(rows[0]))
        texts = Texts.open(folder / "text")
        encode = partial(_encode, task)
        Encoded.write(folder / "ids", texts, encode, task.max_row_length(task.model.settings, task.settings))
        encoded = Encoded.open(folder / "ids", texts)
        if not len(encoded):
            raise DataError(f"None of {len(rows)} rows can be learnt from, so heads cannot be measured by them.")
        training_data = TrainingData(encoded=encoded, batch_tokens=_BATCH_TOKENS)
        plans = list(task.training_task(training_data).plan(0))
        yield Sample(rows, replace(decode, method="greedy", n_best=1), plans, training_data)


def _encode(task: Task, rows: Sequence[Row]) -> Sequence[Sequence[Sequence[int]]]:
    return task.encode_rows(rows, task.tokenizer, task.settings)
