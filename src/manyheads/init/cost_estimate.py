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
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch

from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import DataError
from manyheads.init.survey import DatasetStats
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.run.recipe import Recipe
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, Task, TrainingData
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Checkpoints, Trainer

_N_VALIDATED = 200  # valid rows answered at each validation, as in a run
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
class CostEstimate:
    """Seconds that each part of a run takes on a machine that does nothing else, and what else the trial told."""

    n_parameters: int
    vocab_size: int
    peak_memory: int  # bytes, at most
    batches_per_epoch: float
    prepare_seconds: float
    step_seconds: float
    rdrop_step_seconds: float  # with R-Drop
    validate_seconds: float
    save_seconds: float
    finish_seconds: float
    slowdown: float  # times longer it takes beside what else the machine is doing now

    def idle_seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes when the machine does nothing else."""
        train = recipe.train
        consistent = 0  # a task whose passes have to agree from the first step on has no other steps
        if isinstance(recipe.task, Seq2SeqSettings) and recipe.task.consistency:
            consistent = max(0, train.steps - recipe.task.consistency_after)
        steps = (train.steps - consistent) * self.step_seconds + consistent * self.rdrop_step_seconds
        validations = -(-train.steps // train.validate_every) * self.validate_seconds
        saves = -(-train.steps // train.save_every) * self.save_seconds
        return self.prepare_seconds + steps + validations + saves + self.finish_seconds

    def seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes if the machine stays as busy as it is now."""
        return self.idle_seconds(recipe) * self.slowdown


def this_machine(device: str = "auto") -> Machine:
    """The machine as it is now."""
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        load = 0.0
    return Machine(
        device=str(pick_device(device)), n_threads=torch.get_num_threads(), n_cores=os.cpu_count() or 1, load=load
    )


def measure_cost(recipe: Recipe, stats: DatasetStats, start: float = 0.0) -> CostEstimate:
    """Train and answer a little with the recipe's own model, text and batches.

    `start` is how many seconds it took to begin, to read and to clean, which a run has to do as well.
    """
    with TemporaryDirectory(prefix="manyheads-") as folder:
        estimate = _Trial(recipe, stats, Path(folder)).estimate()
    return replace(estimate, prepare_seconds=start + estimate.prepare_seconds)


class _Trial:
    """A run in miniature, each part under a clock."""

    def __init__(self, recipe: Recipe, stats: DatasetStats, folder: Path) -> None:
        self.stats = stats
        self.folder = folder
        device = pick_device(recipe.device)
        self.clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self.began = (time.perf_counter(), self.clock())
        kind = recipe.task_class
        self.tokenizer = Tokenizer.train(kind.lines(stats.sample), recipe.tokenizer, recipe.seed)
        self.recipe = replace(recipe, model=replace(recipe.model, vocab_size=self.tokenizer.vocab_size))
        Texts.write(folder / "text", stats.sample, n_fields=kind.cleaning(recipe.task).n_fields)
        texts = Texts.open(folder / "text")
        encode = partial(kind.encode_rows, tokenizer=self.tokenizer, settings=recipe.task)
        if not Encoded.write(folder / "data", texts, encode, kind.max_row_length(recipe.model, recipe.task))["kept"]:
            raise DataError(
                f"{' + '.join(stats.data.train)}: every {stats.noun} is longer than model.max_length = "
                f"{recipe.model.max_length} tokens. Split the text into sentences, one a line."
            )
        self.prepare_seconds = (self.clock() - self.began[1]) * self.share
        self.encoded = Encoded.open(folder / "data", texts)
        self.device = device
        torch.manual_seed(recipe.seed)
        self.task = kind.create(Transformer(self.recipe.model), self.tokenizer, recipe.task, texts)
        self.task.module.to(device)

    @property
    def share(self) -> float:
        """How many times the sample all the text is."""
        if self.stats.are_documents:
            return self.stats.n_characters / sum(map(len, self.stats.texts))
        return self.stats.n_rows / len(self.stats.sample)

    def estimate(self) -> CostEstimate:
        plain = self._trainer(self._with_consistency(0.0))
        step = self._step(plain)
        wanted = self.recipe.task.consistency if isinstance(self.recipe.task, Seq2SeqSettings) else 0.0
        consistent = self._step(self._trainer(self._with_consistency(wanted))) if wanted else step
        self.task.module.eval()
        validate, finish = self._answer()
        save = self._timed(lambda: Checkpoints(self.folder, 1).save(plain, snapshot=True))
        return CostEstimate(
            n_parameters=sum(parameter.numel() for parameter in self.task.module.parameters()),
            vocab_size=self.tokenizer.vocab_size,
            peak_memory=_peak_memory(self.device),
            batches_per_epoch=max(1.0, len(plain.training_task.plan(0)) * self.share),
            prepare_seconds=self.prepare_seconds,
            step_seconds=step,
            rdrop_step_seconds=consistent,
            validate_seconds=validate,
            save_seconds=save,
            finish_seconds=finish,
            slowdown=max(1.0, (time.perf_counter() - self.began[0]) / (self.clock() - self.began[1])),
        )

    def _with_consistency(self, consistency: float) -> Task:
        """The task whose passes have to agree so much from the first step on, where it is one that begins otherwise."""
        if not isinstance(self.task, Seq2Seq):
            return self.task
        return replace(self.task, settings=replace(self.task.settings, consistency=consistency, consistency_after=0))

    def _trainer(self, task: Task) -> Trainer[Any]:
        training_data = TrainingData(
            self.encoded, self.recipe.train.batch_tokens, self.recipe.tokenizer.sampling, self.recipe.seed
        )
        settings = replace(self.recipe.train, steps=_TRIAL_STEPS, accumulation_steps=1)
        width, seed = self.recipe.model.width, self.recipe.seed
        return Trainer(task.module, task.training_task(training_data), settings, width=width, seed=seed)

    def _step(self, trainer: Trainer[Any]) -> float:
        """Seconds of one update; the first, when memory is found and the optimizer is made, does not count."""
        times = [self.clock()]
        latest = time.perf_counter() + 2 * _TRIAL_SECONDS
        for _ in trainer.run():
            times.append(self.clock())
            if len(times) > 3 and (times[-1] - times[0] > _TRIAL_SECONDS or time.perf_counter() > latest):
                break
        return (times[-1] - times[1]) / (len(times) - 2) * self.recipe.train.accumulation_steps

    def _answer(self) -> tuple[float, float]:
        """Seconds of a look at the valid rows, and of scoring what is scored at the end."""
        if isinstance(self.task, Seq2Seq):
            validate = self._translate(DecodeSettings(method="greedy"), _N_VALIDATED)
            scored = self.task.with_engine(EngineSelector("auto"))  # as the run will score them
            return validate, self._translate(self.recipe.decode, self.stats.n_scored, scored)
        valid_sample = list(self.task.usable(self.stats.valid_sample or self.stats.sample[:_N_VALIDATED]))
        if not valid_sample:
            return 0.0, 0.0
        validate = self._timed(lambda: self.task.validate(valid_sample, self.task.metrics[0]))
        if self.stats.are_documents:
            return validate, self._score_documents(valid_sample)
        score = self._timed(
            lambda: (self.task.calibrate(valid_sample), self.task.score(valid_sample, self.recipe.decode))
        )
        return validate, score * self.stats.n_scored / len(valid_sample)

    def _score_documents(self, rows: Sequence[Row]) -> float:
        """Seconds to score as many documents as there are; the few samples that are written cost next to nothing."""
        documents: list[Row] = []
        left = _TRIAL_CHARACTERS
        for (text,) in rows:
            documents += [(text[:left],)] if left > 0 else []
            left -= len(text)
        seconds = self._timed(lambda: self.task.score(documents, replace(self.recipe.decode, max_new_tokens=1)))
        return seconds * self.stats.n_scored_characters / sum(len(text) for (text,) in documents)

    def _translate(self, settings: DecodeSettings, n_sentences: int, task: Task | None = None) -> float:
        """Seconds to translate so many."""
        task = self.task if task is None else task
        wanted = min(n_sentences, _TRIAL_SENTENCES if self.recipe.model.width <= 128 else _FEWER_SENTENCES)
        sources = list(islice((row[0] for row in self.task.usable(self.stats.sample)), wanted))
        if not sources:
            return 0.0
        # An untrained model seldom generates EOS: it is limited to the length of an average source.
        lengths = [len(ids) + 1 for ids in self.task.tokenizer.encode_batch(sources)]
        brief = replace(settings, max_new_tokens=round(fmean(lengths)))
        return self._timed(lambda: task.predict(sources, brief)) * n_sentences / len(sources)

    def _timed(self, work: Callable[[], object]) -> float:
        started = self.clock()
        work()
        return self.clock() - started


def _peak_memory(device: torch.device) -> int:
    """The most bytes this process has held; on a graphics card, the most held there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
