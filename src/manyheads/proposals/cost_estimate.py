"""Estimate how long a recipe takes on this machine when it is idle, by a trial of every part of a run.

On a CPU the trial has one thread, whose processor time other programs affect only a little, through caches and shared
cores: several threads would count what they spin while they wait for one another. The same few batches are trained on
again and again, and of each the fastest update counts. `thread_speedup` says how much faster several threads are. What
other programs cost is one factor. `nominal_seconds` is no measurement: it is the same on every machine.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from manyheads.bundle import load
from manyheads.cores import count_cores
from manyheads.data import Encoded, Texts
from manyheads.data.cleaning import KEPT
from manyheads.data.encoded import TOO_LONG
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.metrics import Score
from manyheads.metrics.bootstrap import N_RESAMPLES
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.model.flops import BatchShape
from manyheads.model.size import parameters_by_part
from manyheads.model.weights import count_parameters
from manyheads.proposals.survey import row_noun
from manyheads.run.recipe import Recipe
from manyheads.run.warm_start import freeze
from manyheads.tasks import TASKS, LabelingTask, Task, TrainingData
from manyheads.tasks.proposal import Survey
from manyheads.tasks.task_init import validation_rows
from manyheads.text.tokens.tokenizer import Tokenizer
from manyheads.training import Checkpoints, Trainer, TrainingTask
from manyheads.training.micro_batches import split_plan

_TRIAL_BATCHES = 6  # different ones, since batches differ
_TRIAL_STEPS = 61
_TRIAL_SECONDS = 4.0  # of processor time for each phase of training; a slower step is still done twice
_MAX_TRIAL_FACTOR = 4  # a busy machine may take so many times that long
# The part of an update that threads share (Amdahl): at most _PARALLEL, and half of that if it takes _UNSHARED seconds,
# most of which are Python, small tensors and threads that wait for one another.
_PARALLEL, _UNSHARED = 0.85, 0.03
_NO_STEPS: tuple[tuple[float, ...], tuple[float, ...], tuple[BatchShape, ...]] = ((0.0,), (0.0,), ())
_FITTED_ROWS = 300  # to measure what is fitted before the first step
_SCORED_ROW = 8 * N_RESAMPLES  # bytes: how often each row of a test set is drawn for the confidence interval
# Bytes: engines, metrics and results of scoring a whole test set, of which the trial scores a few rows. Measured
# 2026-11-18: 110 MB (classifier, 3,080 rows) and 200 MB (translator, 1,000 rows).
_SCORING = 150_000_000
SLOWED = 1.2  # other programs that slow the machine down by less are not mentioned
# The nominal speed: weights × padded tokens per second, forward and backward, of one core of a server of 2026. What a
# layer does beside its matrices (norms, softmax, dropout) costs as much as _BESIDE weights for each of its features.
_NOMINAL_SPEED, _BESIDE = 1e10, 1000


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The device and the load of this machine."""

    device: str
    n_threads: int
    n_cores: int
    load: float  # the load average of the last minute

    @property
    def is_busy(self) -> bool:
        """Whether other programs slow the machine down, so that measurements hold only while they run."""
        return self.load > self.n_cores / 2


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """Seconds that each part of a run takes on an idle machine, and other results of the trial."""

    n_parameters: int
    vocab_size: int
    n_too_long: int  # rows that training keeps out
    is_exact: bool  # whether the trial read all the text; if not, the vocabulary and these rows are estimates
    peak_memory: int  # bytes, of the whole program; on a GPU, of the device
    batches_per_epoch: float
    prepare_seconds: float
    step_seconds: tuple[float, ...]  # of each training phase, see `TaskInit.step_counts`
    validate_seconds: float
    save_seconds: float
    finish_seconds: float
    slowdown: float  # factor due to the machine's present load
    n_busy: int = 0  # as many programs that always run would slow this machine down as much
    baseline: tuple[str, Score] | None = None  # the linear model of the task and its score on validation rows
    batches: tuple[BatchShape, ...] = ()  # the mean shape of the batches of each phase

    def idle_seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes on an idle machine."""
        train = recipe.train
        counts = TASKS[recipe.task.kind].init.step_counts(recipe.task, train.steps)
        steps = sum(count * seconds for count, seconds in zip(counts, self.step_seconds, strict=True))
        validations = -(-train.steps // train.validate_every) * self.validate_seconds
        saves = -(-train.steps // train.save_every) * self.save_seconds
        return self.prepare_seconds + steps + validations + saves + self.finish_seconds

    def seconds(self, recipe: Recipe) -> float:
        """How long the whole run takes at the machine's present load."""
        return self.idle_seconds(recipe) * self.slowdown


def nominal_seconds(recipe: Recipe, vocab_size: int) -> float:
    """How long one training step takes by its sizes alone, at a fixed speed: no measurement."""
    model = replace(recipe.model, vocab_size=vocab_size)
    parts = parameters_by_part(model)
    n_layers = model.n_encoder_layers * model.has_encoder + model.n_decoder_layers * model.has_decoder
    weights = parts["attention"] + parts["feed-forward"] + _BESIDE * n_layers * model.width
    weights += parts["embeddings"] * model.has_decoder  # its output layer reads them all
    return recipe.train.batch_tokens * recipe.train.accumulation_steps * weights / _NOMINAL_SPEED


def thread_speedup(n_threads: int, seconds: float) -> float:
    """How many times as fast as one thread several are on an idle machine, for an update of so many seconds.

    Two threads: 1.1 for 10 ms, 1.5 for 100 ms, 1.7 for 1 s.
    """
    parallel = _PARALLEL * seconds / (seconds + _UNSHARED)
    return 1 / (1 - parallel + parallel / n_threads)


def load_of(waited: float, n_threads: int) -> tuple[float, int]:
    """How many times as long a run takes beside other programs, and how many programs that always run cost as much.

    `waited` is the wall-clock time of one thread over its processor time. Beside n such programs, each of t threads
    gets c / (n + t) of c cores, or a whole one.
    """
    if waited <= SLOWED:
        return 1.0, 0
    n_busy = max(1, round(waited * count_cores() - 1))
    return waited + (n_threads - 1) / count_cores(), n_busy


def this_machine(device: str = "auto") -> Machine:
    """Describe this machine and its present load."""
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        load = 0.0
    return Machine(device=str(pick_device(device)), n_threads=torch.get_num_threads(), n_cores=count_cores(), load=load)


def measure_cost(recipe: Recipe, survey: Survey, start: float = 0.0) -> CostEstimate:
    """Estimate the cost by a short trial with the recipe's model, text and batches.

    `start` is the number of seconds spent so far on starting, reading and cleaning, which a run does as well.
    """
    with TemporaryDirectory(prefix="manyheads-") as folder, _one_thread() as n_threads:
        estimate = _Trial(recipe, survey, Path(folder), n_threads).estimate()
    return replace(estimate, prepare_seconds=start + estimate.prepare_seconds)


@contextmanager
def _one_thread() -> Iterator[int]:
    """Within, PyTorch computes with one thread; yield the number of threads outside, with which a run would train."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield n_threads
    finally:
        torch.set_num_threads(n_threads)


class _Repeated:
    """A training task with a few batches of the epoch only, again and again."""

    def __init__(self, training_task: TrainingTask[Any]) -> None:
        self._training_task = training_task
        plans = training_task.plan(0)
        self.n_all = len(plans)
        self._plans = [plans[number] for number in range(0, self.n_all, max(1, -(-self.n_all // _TRIAL_BATCHES)))]

    def plan(self, epoch: int) -> Sequence[Any]:
        """The same batches in every epoch."""
        return self._plans

    def split(self, plan: Any, n_parts: int) -> Sequence[Any]:
        """Divide a batch as the training task does."""
        return [() if part is None else part for part in split_plan(self._training_task, plan, n_parts)]

    def make(self, plan: Any, seed: int) -> Any:
        """Make a batch."""
        return self._training_task.make(plan, seed)

    def loss(self, batch: Any, step: int) -> Tensor:
        """Compute the loss of a batch."""
        return self._training_task.loss(batch, step)

    def describe(self, plan: Any) -> str:
        """Describe a batch."""
        return self._training_task.describe(plan)


class _Trial:
    """A small run with every part timed."""

    def __init__(self, recipe: Recipe, survey: Survey, folder: Path, n_threads: int) -> None:
        self.survey = survey
        self.folder = folder
        self.n_threads = n_threads
        device = pick_device(recipe.device)
        self.is_cpu = device.type == "cpu"
        self.clock = time.process_time if self.is_cpu else time.perf_counter
        self.began = (time.perf_counter(), self.clock())
        task_class = recipe.task_class
        if recipe.init_from:
            self.tokenizer = load(recipe.init_from).task.tokenizer
        else:
            self.tokenizer = Tokenizer.train(task_class.lines(survey.sample), recipe.tokenizer, recipe.seed)
        self.recipe = replace(recipe, model=replace(recipe.model, vocab_size=self.tokenizer.vocab_size))
        Texts.write(folder / "text", survey.sample, n_fields=task_class.cleaning(recipe.task).n_fields)
        texts = Texts.open(folder / "text")
        encode = partial(task_class.encode_rows, tokenizer=self.tokenizer, settings=recipe.task)
        counts = Encoded.write(folder / "data", texts, encode, task_class.max_row_length(recipe.model, recipe.task))
        self.n_too_long = counts[TOO_LONG]
        if not counts[KEPT]:
            raise DataError(
                _(
                    "{files}: every {noun} is longer than model.max_length = {max_length} tokens. Split the text "
                    "into sentences, one per line.",
                    files=" + ".join(recipe.data.train),
                    noun=row_noun(survey.noun),
                    max_length=recipe.model.max_length,
                )
            )
        self.prepare_seconds = (self.clock() - self.began[1]) * self.share
        self.encoded = Encoded.open(folder / "data", texts)
        self.device = device
        torch.manual_seed(recipe.seed)
        started, memory = self.clock(), _peak_memory(device)
        self.task = task_class.create(Transformer(self.recipe.model), self.tokenizer, recipe.task, texts)
        self.prepare_seconds += (self.clock() - started) * self.share  # a linear model is fitted to all rows
        self.row_memory = _peak_memory(device) - memory + sum(file.stat().st_size for file in folder.rglob("*"))
        self.task.module.to(device)
        freeze(self.task.module, recipe.freeze, may_freeze_all=not recipe.train.steps)
        if recipe.task.fits_head:
            rows = survey.sample[:_FITTED_ROWS]
            self.prepare_seconds += self._timed(lambda: self.task.fit_head(rows)) * survey.n_rows / len(rows)

    @property
    def share(self) -> float:
        """The size of all the text divided by that of the sample."""
        if self.survey.are_documents:
            return self.survey.n_characters / sum(map(len, self.survey.texts))
        return self.survey.n_rows / len(self.survey.sample)

    def estimate(self) -> CostEstimate:
        part = self.recipe.task_class.init
        trainers = [self._trainer(task) for task in part.phases(self.task)]
        quiet, means, batches = zip(*map(self._step, trainers), strict=True) if self.recipe.train.steps else _NO_STEPS
        # What is done once cannot be repeated until the machine is quiet, but was slowed down as training was.
        noise = max(1.0, sum(means) / sum(quiet)) if sum(quiet) else 1.0
        n_threads = self.n_threads if self.is_cpu else 1
        speedups = [thread_speedup(n_threads, seconds / self.recipe.train.accumulation_steps) for seconds in quiet]
        waited = (time.perf_counter() - self.began[0]) / (self.clock() - self.began[1])
        slowdown, n_busy = load_of(waited, n_threads)
        self.task.module.eval()
        validate, finish = part.scoring_seconds(self.task, self.survey, self.recipe.decode, self._timed)
        save = self._timed(lambda: Checkpoints(self.folder, 1).save(trainers[0], snapshot=True))
        return CostEstimate(
            n_parameters=count_parameters(self.task.module),
            vocab_size=self.tokenizer.vocab_size,
            n_too_long=round(self.n_too_long * self.share),
            is_exact=self.share == 1.0,
            peak_memory=self._peak_memory(),
            batches_per_epoch=max(1.0, self.n_batches * self.share),
            prepare_seconds=self.prepare_seconds / noise,
            step_seconds=tuple(seconds / speedup for seconds, speedup in zip(quiet, speedups, strict=True)),
            validate_seconds=validate / noise / speedups[-1],
            save_seconds=save / noise,
            finish_seconds=finish / noise / speedups[-1],
            slowdown=slowdown,
            n_busy=n_busy,
            baseline=self._baseline(),
            batches=batches,
        )

    def _peak_memory(self) -> int:
        """The peak of the trial, and what a run has more of: rows to train on and to score."""
        peak = _peak_memory(self.device)
        if not self.is_cpu:
            return peak
        rows = self.row_memory * (self.share - 1) + _SCORED_ROW * self.survey.n_scored
        return round(peak + rows + _SCORING)

    def _baseline(self) -> tuple[str, Score] | None:
        rows = validation_rows(self.task, self.survey)
        if not rows or not isinstance(self.task, LabelingTask) or not self.task.baseline_name:
            return None
        return self.task.baseline_name, self.task.baseline_tally(rows).score()

    def _trainer(self, task: Task) -> Trainer[Any]:
        training_data = TrainingData(
            self.encoded, self.recipe.train.batch_tokens, self.recipe.tokenizer.sampling, self.recipe.seed
        )
        settings = replace(self.recipe.train, steps=_TRIAL_STEPS, accumulation_steps=1)
        width, seed = self.recipe.model.width, self.recipe.seed
        repeated = _Repeated(task.training_task(training_data))
        self.n_batches = repeated.n_all
        return Trainer(task.module, repeated, settings, width=width, seed=seed)

    def _step(self, trainer: Trainer[Any]) -> tuple[float, float, BatchShape]:
        """Seconds of one update with one thread, on a quiet machine and now, and the mean shape of a batch."""
        seconds: list[float] = []
        latest = time.perf_counter() + _MAX_TRIAL_FACTOR * _TRIAL_SECONDS
        with _observed_shapes(self.task.model) as shapes:
            before = self.clock()
            for _ in trainer.run():
                now = self.clock()
                seconds.append(now - before)
                if len(seconds) > 2 and (sum(seconds) > _TRIAL_SECONDS or time.perf_counter() > latest):
                    break
                before = self.clock()
        per_update = self.recipe.train.accumulation_steps
        quiet = quiet_mean(seconds, len(trainer.training_task.plan(0)))
        return quiet * per_update, fmean(seconds[1:]) * per_update, _mean_shape(self.recipe, shapes)

    def _timed(self, work: Callable[[], object]) -> float:
        started = self.clock()
        work()
        return self.clock() - started


@contextmanager
def _observed_shapes(model: Transformer) -> Iterator[dict[str, list[tuple[int, int]]]]:
    """Collect the shape of the ids that each stack reads, by its embedding; of one that reads them twice, both."""
    shapes: dict[str, list[tuple[int, int]]] = {"source": [], "target": []}

    def observe(name: str) -> Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], None]:
        return lambda _module, inputs: shapes[name].append((inputs[0].size(0), inputs[0].size(1)))

    parts = ((name, getattr(model, f"{name}_embedding", None)) for name in shapes)
    handles = [part.register_forward_pre_hook(observe(name)) for name, part in parts if part is not None]
    try:
        yield shapes
    finally:
        for handle in handles:
            handle.remove()


def _mean_shape(recipe: Recipe, shapes: Mapping[str, Sequence[tuple[int, int]]]) -> BatchShape:
    """The mean shape of batches; an encoder predicts as many of its tokens as the task masks."""
    share = getattr(recipe.task, "mask_probability", 0.0)
    sources, targets = shapes["source"], shapes["target"]
    if sources and targets:
        sides = zip(sources, targets, strict=True)
        batches = [BatchShape.of_rows(n, source, target) for (n, source), (_, target) in sides]
    else:
        batches = [BatchShape.of_rows(n, source, output_share=share) for n, source in sources]
        batches += [BatchShape.of_rows(n, 0, target) for n, target in targets]
    sums = {field.name: sum(getattr(batch, field.name) for batch in batches) for field in fields(BatchShape)}
    return BatchShape(**{name: total / len(batches) for name, total in sums.items()})


def quiet_mean(seconds: Sequence[float], n_batches: int) -> float:
    """The mean over batches of the fastest update of each, given the seconds of updates that take them in turn.

    Other programs only ever slow an update down. The first one, which allocates memory and the optimizer's state, does
    not count.
    """
    by_batch = (seconds[batch or n_batches :: n_batches] for batch in range(n_batches))
    return fmean(min(times) for times in by_batch if times)


def _peak_memory(device: torch.device) -> int:
    """The peak memory of this process in bytes; on a GPU, the peak there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
