"""How long a recipe takes on this machine: measured by doing a little of everything that `run` does.

On a processor the clock counts the time it really works for us, which other programs do not change; how much longer
everything takes beside them is a factor of its own, steadier than any single measurement.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.recipe.settings import Recipe
from manyheads.recipe.surveying import Survey
from manyheads.tasks import Material, Seq2Seq, Seq2SeqSettings, Task
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Checkpoints, Trainer

_WATCHED = 200  # valid rows answered at each validation, as in a run
_TRIAL_STEPS = 30
_TRIAL_SECONDS = 4.0  # for each kind of step; one that takes longer is done twice all the same
_TRIAL_SENTENCES = 200  # translated to see how fast that is
_FEWER_SENTENCES = 24  # by a model wider than tiny
_TRIAL_CHARACTERS = 20_000  # of documents, foretold to see how fast that is


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What computes, and how busy it is."""

    device: str
    n_threads: int
    n_cores: int
    load: float  # processes that want a core, on average over the last minute

    @property
    def is_busy(self) -> bool:
        """Whether others compute here, so that what is measured now holds only as long as they do."""
        return self.load > self.n_cores / 2


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds that each part of a run takes on a machine that does nothing else, and what else the trial told."""

    n_parameters: int
    vocabulary: int
    memory: int  # bytes, at most
    batches_per_epoch: float
    prepare: float
    step: float
    consistent_step: float  # with R-Drop
    validate: float
    save: float
    finish: float
    slowdown: float  # times longer it takes beside what else the machine is doing now

    def free_seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes when the machine does nothing else."""
        train = recipe.train
        consistent = 0  # a task whose passes have to agree from the first step on has no other steps
        if isinstance(recipe.task, Seq2SeqSettings) and recipe.task.consistency:
            consistent = max(0, train.steps - recipe.task.consistency_after)
        steps = (train.steps - consistent) * self.step + consistent * self.consistent_step
        looks = -(-train.steps // train.validate_every) * self.validate
        saves = -(-train.steps // train.save_every) * self.save
        return self.prepare + steps + looks + saves + self.finish

    def seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes if the machine stays as busy as it is now."""
        return self.free_seconds(recipe) * self.slowdown


def this_machine(device: str = "auto") -> Machine:
    """The machine as it is now."""
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        load = 0.0
    return Machine(
        device=str(pick_device(device)), n_threads=torch.get_num_threads(), n_cores=os.cpu_count() or 1, load=load
    )


def measure(recipe: Recipe, survey: Survey, start: float = 0.0) -> Pace:
    """Train and answer a little with the recipe's own model, text and batches.

    `start` is how many seconds it took to begin, to read and to clean, which a run has to do as well.
    """
    with TemporaryDirectory(prefix="manyheads-") as folder:
        pace = _Trial(recipe, survey, Path(folder)).pace()
    return replace(pace, prepare=start + pace.prepare)


class _Trial:
    """A run in miniature, each part under a clock."""

    def __init__(self, recipe: Recipe, survey: Survey, folder: Path) -> None:
        self.survey = survey
        self.folder = folder
        device = pick_device(recipe.device)
        self.clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self.began = (time.perf_counter(), self.clock())
        kind = recipe.kind
        self.tokenizer = Tokenizer.learn(kind.lines(survey.sample), recipe.tokenizer, recipe.seed)
        self.recipe = replace(recipe, model=replace(recipe.model, vocabulary=self.tokenizer.vocabulary))
        Texts.write(folder / "text", survey.sample, n_fields=kind.cleaning(recipe.task).n_fields)
        texts = Texts.open(folder / "text")
        encode = partial(kind.encode_rows, tokenizer=self.tokenizer, settings=recipe.task)
        if not Encoded.write(folder / "data", texts, encode, kind.longest(recipe.model, recipe.task))["kept"]:
            raise DataError(
                f"{' + '.join(survey.data.train)}: every {survey.noun} is longer than model.max_length = "
                f"{recipe.model.max_length} pieces. Split the text into sentences, one a line."
            )
        self.prepare = (self.clock() - self.began[1]) * self.share
        self.encoded = Encoded.open(folder / "data", texts)
        self.device = device
        torch.manual_seed(recipe.seed)
        self.task = kind.begin(Transformer(self.recipe.model), self.tokenizer, recipe.task, texts)
        self.task.module.to(device)

    @property
    def share(self) -> float:
        """How many times the sample all the text is."""
        if self.survey.are_documents:
            return self.survey.n_characters / sum(map(len, self.survey.texts))
        return self.survey.n_rows / len(self.survey.sample)

    def pace(self) -> Pace:
        plain = self._trainer(self._agreeing(0.0))
        step = self._step(plain)
        wanted = self.recipe.task.consistency if isinstance(self.recipe.task, Seq2SeqSettings) else 0.0
        consistent = self._step(self._trainer(self._agreeing(wanted))) if wanted else step
        self.task.module.eval()
        validate, finish = self._answer()
        save = self._clocked(lambda: Checkpoints(self.folder, 1).save(plain, snapshot=True))
        return Pace(
            n_parameters=sum(parameter.numel() for parameter in self.task.module.parameters()),
            vocabulary=self.tokenizer.vocabulary,
            memory=_peak_memory(self.device),
            batches_per_epoch=max(1.0, len(plain.lesson.plan(0)) * self.share),
            prepare=self.prepare,
            step=step,
            consistent_step=consistent,
            validate=validate,
            save=save,
            finish=finish,
            slowdown=max(1.0, (time.perf_counter() - self.began[0]) / (self.clock() - self.began[1])),
        )

    def _agreeing(self, consistency: float) -> Task:
        """The task whose passes have to agree so much from the first step on, where it is one that begins otherwise."""
        if not isinstance(self.task, Seq2Seq):
            return self.task
        return replace(self.task, settings=replace(self.task.settings, consistency=consistency, consistency_after=0))

    def _trainer(self, task: Task) -> Trainer[Any]:
        material = Material(
            self.encoded, self.recipe.train.batch_tokens, self.recipe.tokenizer.sampling, self.recipe.seed
        )
        settings = replace(self.recipe.train, steps=_TRIAL_STEPS, accumulate=1)
        width, seed = self.recipe.model.width, self.recipe.seed
        return Trainer(task.module, task.lesson(material), settings, width=width, seed=seed)

    def _step(self, trainer: Trainer[Any]) -> float:
        """Seconds of one update; the first, when memory is found and the optimiser is made, does not count."""
        times = [self.clock()]
        latest = time.perf_counter() + 2 * _TRIAL_SECONDS
        for _ in trainer.run():
            times.append(self.clock())
            if len(times) > 3 and (times[-1] - times[0] > _TRIAL_SECONDS or time.perf_counter() > latest):
                break
        return (times[-1] - times[1]) / (len(times) - 2) * self.recipe.train.accumulate

    def _answer(self) -> tuple[float, float]:
        """Seconds of a look at the valid rows, and of scoring what is scored at the end."""
        if isinstance(self.task, Seq2Seq):
            # Without extra length, an untrained model writes as much as a trained one.
            validate = self._translate(DecodeSettings(method="greedy", max_extra=0), _WATCHED)
            scored = self.task.answering("auto")  # as the run will score them
            return validate, self._translate(replace(self.recipe.decode, max_extra=0), self.survey.n_scored, scored)
        watched = list(self.task.usable(self.survey.watched or self.survey.sample[:_WATCHED]))
        if not watched:
            return 0.0, 0.0
        validate = self._clocked(lambda: self.task.look(watched, self.task.metrics[0]))
        if self.survey.are_documents:
            return validate, self._foretell(watched)
        score = self._clocked(lambda: (self.task.finish(watched), self.task.score(watched, self.recipe.decode)))
        return validate, score * self.survey.n_scored / len(watched)

    def _foretell(self, rows: Sequence[Row]) -> float:
        """Seconds to score as many documents as there are; the few samples that are written cost next to nothing."""
        documents: list[Row] = []
        left = _TRIAL_CHARACTERS
        for (text,) in rows:
            documents += [(text[:left],)] if left > 0 else []
            left -= len(text)
        seconds = self._clocked(lambda: self.task.score(documents, replace(self.recipe.decode, max_extra=1)))
        return seconds * self.survey.n_scored_characters / sum(len(text) for (text,) in documents)

    def _translate(self, settings: DecodeSettings, n_sentences: int, task: Task | None = None) -> float:
        """Seconds to translate so many."""
        task = self.task if task is None else task
        wanted = min(n_sentences, _TRIAL_SENTENCES if self.recipe.model.width <= 128 else _FEWER_SENTENCES)
        sources = list(islice((row[0] for row in self.task.usable(self.survey.sample)), wanted))
        if not sources:
            return 0.0
        return self._clocked(lambda: task.predict(sources, settings)) * n_sentences / len(sources)

    def _clocked(self, work: Callable[[], object]) -> float:
        started = self.clock()
        work()
        return self.clock() - started


def _peak_memory(device: torch.device) -> int:
    """The most bytes this process has held; on a graphics card, the most held there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
