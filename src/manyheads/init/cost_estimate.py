"""Estimate how long a recipe takes on this machine, by a trial of every part of a run.

On a CPU the clock counts processor time, which other programs affect only a little, through caches and shared cores:
the fastest of several slices of training counts. What other programs cost is measured over the whole trial as one
factor. `nominal_seconds` is no measurement: it is the same on every machine.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from manyheads.data import Encoded, Texts
from manyheads.data.cleaning import KEPT
from manyheads.data.encoded import TOO_LONG
from manyheads.errors import DataError
from manyheads.metrics import Score
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.model.flops import BatchShape
from manyheads.model.size import count_parameters as count_weights
from manyheads.model.weights import count_parameters
from manyheads.run.recipe import Recipe
from manyheads.tasks import TASKS, HasBaseline, Task, TrainingData
from manyheads.tasks.proposal import Survey
from manyheads.tasks.task_init import validation_rows
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Checkpoints, Trainer

_TRIAL_STEPS = 41
_TRIAL_SECONDS = 4.0  # for each phase of training; a slower step is still done twice
_SLICES, _SLICE_STEPS = 4, 5  # at most so many slices, of at least so many steps, since batches differ
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
    peak_memory: int  # bytes, at most
    batches_per_epoch: float
    prepare_seconds: float
    step_seconds: tuple[float, ...]  # of each training phase, see `TaskInit.step_counts`
    validate_seconds: float
    save_seconds: float
    finish_seconds: float
    slowdown: float  # factor due to the machine's present load
    baseline: tuple[str, Score] | None = None  # the linear model of the task and its score on validation rows
    batches: tuple[BatchShape, ...] = ()  # the mean shape of the batches of each phase
    mean_step_seconds: tuple[float, ...] = ()  # over the whole trial; other programs may have slowed it down

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
    parts = count_weights(model)
    n_layers = model.n_encoder_layers * model.has_encoder + model.n_decoder_layers * model.has_decoder
    weights = parts["attention"] + parts["feed-forward"] + _BESIDE * n_layers * model.width
    weights += parts["embeddings"] * model.has_decoder  # its output layer reads them all
    return recipe.train.batch_tokens * recipe.train.accumulation_steps * weights / _NOMINAL_SPEED


def this_machine(device: str = "auto") -> Machine:
    """Describe this machine and its present load."""
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        load = 0.0
    return Machine(
        device=str(pick_device(device)), n_threads=torch.get_num_threads(), n_cores=os.cpu_count() or 1, load=load
    )


def measure_cost(recipe: Recipe, survey: Survey, start: float = 0.0) -> CostEstimate:
    """Estimate the cost by a short trial with the recipe's model, text and batches.

    `start` is the number of seconds spent so far on starting, reading and cleaning, which a run does as well.
    """
    with TemporaryDirectory(prefix="manyheads-") as folder:
        estimate = _Trial(recipe, survey, Path(folder)).estimate()
    return replace(estimate, prepare_seconds=start + estimate.prepare_seconds)


class _Trial:
    """A small run with every part timed."""

    def __init__(self, recipe: Recipe, survey: Survey, folder: Path) -> None:
        self.survey = survey
        self.folder = folder
        device = pick_device(recipe.device)
        self.clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self.began = (time.perf_counter(), self.clock())
        task_class = recipe.task_class
        self.tokenizer = Tokenizer.train(task_class.lines(survey.sample), recipe.tokenizer, recipe.seed)
        self.recipe = replace(recipe, model=replace(recipe.model, vocab_size=self.tokenizer.vocab_size))
        Texts.write(folder / "text", survey.sample, n_fields=task_class.cleaning(recipe.task).n_fields)
        texts = Texts.open(folder / "text")
        encode = partial(task_class.encode_rows, tokenizer=self.tokenizer, settings=recipe.task)
        counts = Encoded.write(folder / "data", texts, encode, task_class.max_row_length(recipe.model, recipe.task))
        self.n_too_long = counts[TOO_LONG]
        if not counts[KEPT]:
            raise DataError(
                f"{' + '.join(recipe.data.train)}: every {survey.noun} is longer than model.max_length = "
                f"{recipe.model.max_length} tokens. Split the text into sentences, one per line."
            )
        self.prepare_seconds = (self.clock() - self.began[1]) * self.share
        self.encoded = Encoded.open(folder / "data", texts)
        self.device = device
        torch.manual_seed(recipe.seed)
        started = self.clock()
        self.task = task_class.create(Transformer(self.recipe.model), self.tokenizer, recipe.task, texts)
        self.prepare_seconds += (self.clock() - started) * self.share  # a linear model is fitted to all rows
        self.task.module.to(device)

    @property
    def share(self) -> float:
        """The size of all the text divided by that of the sample."""
        if self.survey.are_documents:
            return self.survey.n_characters / sum(map(len, self.survey.texts))
        return self.survey.n_rows / len(self.survey.sample)

    def estimate(self) -> CostEstimate:
        part = self.recipe.task_class.init
        trainers = [self._trainer(task) for task in part.phases(self.task)]
        steps, means, batches = zip(*map(self._step, trainers), strict=True)
        self.task.module.eval()
        validate, finish = part.scoring_seconds(self.task, self.survey, self.recipe.decode, self._timed)
        save = self._timed(lambda: Checkpoints(self.folder, 1).save(trainers[0], snapshot=True))
        return CostEstimate(
            n_parameters=count_parameters(self.task.module),
            vocab_size=self.tokenizer.vocab_size,
            n_too_long=round(self.n_too_long * self.share),
            is_exact=self.share == 1.0,
            peak_memory=_peak_memory(self.device),
            batches_per_epoch=max(1.0, len(trainers[0].training_task.plan(0)) * self.share),
            prepare_seconds=self.prepare_seconds,
            step_seconds=steps,
            validate_seconds=validate,
            save_seconds=save,
            finish_seconds=finish,
            slowdown=max(1.0, (time.perf_counter() - self.began[0]) / (self.clock() - self.began[1])),
            baseline=self._baseline(),
            batches=batches,
            mean_step_seconds=means,
        )

    def _baseline(self) -> tuple[str, Score] | None:
        rows = validation_rows(self.task, self.survey)
        if not rows or not isinstance(self.task, HasBaseline) or not self.task.baseline_name:
            return None
        return self.task.baseline_name, self.task.baseline_tally(rows).score()

    def _trainer(self, task: Task) -> Trainer[Any]:
        training_data = TrainingData(
            self.encoded, self.recipe.train.batch_tokens, self.recipe.tokenizer.sampling, self.recipe.seed
        )
        settings = replace(self.recipe.train, steps=_TRIAL_STEPS, accumulation_steps=1)
        width, seed = self.recipe.model.width, self.recipe.seed
        return Trainer(task.module, task.training_task(training_data), settings, width=width, seed=seed)

    def _step(self, trainer: Trainer[Any]) -> tuple[float, float, BatchShape]:
        """Seconds of one update in the fastest slice and on average, and the mean shape of a batch.

        The first update, which allocates memory and optimizer state, does not count.
        """
        times = [self.clock()]
        latest = time.perf_counter() + 2 * _TRIAL_SECONDS
        with _observed_shapes(self.task.model) as shapes:
            for _ in trainer.run():
                times.append(self.clock())
                if len(times) > 3 and (times[-1] - times[0] > _TRIAL_SECONDS or time.perf_counter() > latest):
                    break
        n_batches = self.recipe.train.accumulation_steps
        mean = (times[-1] - times[1]) / (len(times) - 2)
        return _fastest_slice(times[1:]) * n_batches, mean * n_batches, _mean_shape(self.recipe, shapes)

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
    sums = {one.name: sum(getattr(batch, one.name) for batch in batches) for one in fields(BatchShape)}
    return BatchShape(**{name: total / len(batches) for name, total in sums.items()})


def _fastest_slice(times: Sequence[float]) -> float:
    """The mean of the fastest slice of steps, given the time before each and after the last."""
    n_steps = len(times) - 1
    n_slices = max(1, min(_SLICES, n_steps // _SLICE_STEPS))
    bounds = [round(part * n_steps / n_slices) for part in range(n_slices + 1)]
    return min((times[end] - times[start]) / (end - start) for start, end in pairwise(bounds))


def _peak_memory(device: torch.device) -> int:
    """The peak memory of this process in bytes; on a GPU, the peak there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
