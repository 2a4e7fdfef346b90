"""How long a recipe takes on this machine: measured by doing a little of everything that `run` does.

On a processor the clock counts the time it really works for us, which other programs do not change; how much longer
everything takes beside them is a factor of its own, steadier than any single measurement.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from manyheads.data import Encoded, Texts, plan_batches
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.recipe.settings import Recipe
from manyheads.recipe.surveying import Survey
from manyheads.tasks import Material, Seq2Seq, TensorBatch
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Checkpoints, Trainer

_WATCHED = 200  # valid sentences translated at each validation, as in a run
_TRIAL_STEPS = 20
_TRIAL_SECONDS = 4.0  # for each kind of step; one that takes longer is done twice all the same
_TRIAL_SENTENCES = 200  # translated to see how fast that is
_FEWER_SENTENCES = 24  # by a model wider than tiny


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
        consistent = max(0, train.steps - recipe.task.consistency_after) if recipe.task.consistency else 0
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


def measure(recipe: Recipe, survey: Survey) -> Pace:
    """Train and translate a little with the recipe's own model, text and batches."""
    with TemporaryDirectory(prefix="manyheads-") as folder:
        return _Trial(recipe, survey, Path(folder)).pace()


class _Trial:
    """A run in miniature, each part under a clock."""

    def __init__(self, recipe: Recipe, survey: Survey, folder: Path) -> None:
        self.survey = survey
        self.folder = folder
        device = pick_device(recipe.device)
        self.clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self.began = (time.perf_counter(), self.clock())
        lines = (line for pair in survey.sample for line in pair)
        self.tokenizer = Tokenizer.learn(lines, recipe.tokenizer, recipe.seed)
        self.recipe = replace(recipe, model=replace(recipe.model, vocabulary=self.tokenizer.vocabulary))
        Texts.write(folder / "text", survey.sample, n_fields=2)
        texts = Texts.open(folder / "text")
        encode = partial(Seq2Seq.encode_rows, tokenizer=self.tokenizer, settings=recipe.task)
        if not Encoded.write(folder / "data", texts, encode, recipe.model.max_length - 1)["kept"]:
            raise DataError(
                f"{' + '.join(survey.data.train)}: every pair is longer than model.max_length = "
                f"{recipe.model.max_length} pieces. Split the text into sentences, one a line."
            )
        self.prepare = (self.clock() - self.began[1]) * self.share
        self.encoded = Encoded.open(folder / "data", texts)
        torch.manual_seed(recipe.seed)
        self.model = Transformer(self.recipe.model).to(device)
        self.task = Seq2Seq(self.model, self.tokenizer, recipe.task)

    @property
    def share(self) -> float:
        """How many times the sample all the text is."""
        return self.survey.n_pairs / len(self.survey.sample)

    def pace(self) -> Pace:
        plain = self._trainer(consistency=0.0)
        step = self._step(plain)
        consistency = self.recipe.task.consistency
        consistent = self._step(self._trainer(consistency)) if consistency else step
        validate = self._translate(DecodeSettings(method="greedy", max_extra=0), _WATCHED)
        finish = self._translate(replace(self.recipe.decode, max_extra=0), self.survey.n_scored)
        save = self._clocked(lambda: Checkpoints(self.folder, 1).save(plain, snapshot=True))
        n_batches = len(plan_batches(self.encoded.lengths, self.recipe.train.batch_tokens, seed=1, epoch=0))
        return Pace(
            n_parameters=self.model.n_parameters,
            vocabulary=self.tokenizer.vocabulary,
            memory=_peak_memory(self.model.output.weight.device),
            batches_per_epoch=max(1.0, n_batches * self.share),
            prepare=self.prepare,
            step=step,
            consistent_step=consistent,
            validate=validate,
            save=save,
            finish=finish,
            slowdown=max(1.0, (time.perf_counter() - self.began[0]) / (self.clock() - self.began[1])),
        )

    def _trainer(self, consistency: float) -> Trainer[TensorBatch]:
        task = replace(self.task, settings=replace(self.recipe.task, consistency=consistency, consistency_after=0))
        material = Material(
            self.encoded, self.recipe.train.batch_tokens, self.recipe.tokenizer.sampling, self.recipe.seed
        )
        lesson = task.lesson(material)
        settings = replace(self.recipe.train, steps=_TRIAL_STEPS, accumulate=1)
        return Trainer(self.model, lesson, settings, width=self.model.settings.width, seed=self.recipe.seed)

    def _step(self, trainer: Trainer[TensorBatch]) -> float:
        """Seconds of one update; the first, when memory is found and the optimiser is made, does not count."""
        times = [self.clock()]
        latest = time.perf_counter() + 2 * _TRIAL_SECONDS
        for _ in trainer.run():
            times.append(self.clock())
            if len(times) > 3 and (times[-1] - times[0] > _TRIAL_SECONDS or time.perf_counter() > latest):
                break
        return (times[-1] - times[1]) / (len(times) - 2) * self.recipe.train.accumulate

    def _translate(self, settings: DecodeSettings, n_sentences: int) -> float:
        """Seconds to translate so many; without extra length, an untrained model writes as much as a trained one."""
        wanted = min(n_sentences, _TRIAL_SENTENCES if self.recipe.model.width <= 128 else _FEWER_SENTENCES)
        sources = [source for source, _ in self.survey.sample if self.task.fits(source)][:wanted]
        if not sources:
            return 0.0
        return self._clocked(lambda: self.task.answers(sources, settings)) * n_sentences / len(sources)

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
