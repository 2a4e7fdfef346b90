"""`RunPlan`: what a recipe costs before anything is prepared: parameters, FLOP, memory, time and money.

The speed of this machine comes from a trial: a few real updates of the recipe's model on a sample of its text. The
speed of accelerators comes from published peak rates and an assumed utilization.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.model.flops import PASSES, BatchShape, forward_flop, training_flop
from manyheads.model.size import parameters_by_part
from manyheads.plan.training_memory import DeviceMemory, device_memory
from manyheads.proposals.cost_estimate import CostEstimate, measure_cost
from manyheads.proposals.survey import survey_recipe
from manyheads.run import DataSettings, Recipe
from manyheads.tasks import TASKS
from manyheads.training.settings import uses_bfloat16

# The share of the peak that the matrix products of training reach. Eight P100 trained the base model of 2017 for 12
# hours, 3.3e18 FLOP at their rating of 9.5 TFLOP/s; the products of its 100,000 updates are 29 % of that, by
# `forward_flop` on full batches. Other hardware and sizes differ in both directions: measure your own and pass it.
UTILIZATION = 0.3
# The share of N times the speed of one device that N devices reach; see benchmarks/scale.md for measurements on CPUs.
EFFICIENCY = 0.9

_LENGTH = 25  # tokens of a sentence, if no text is read; that of WMT
_MAX_TRIAL_FLOP = 2e11  # of an update of the trial, which has smaller batches if the recipe's are larger: seconds
_MIN_TRIAL_TOKENS = 400
_BUILTIN_ROWS = 3000
MIN_UPDATE = 0.01  # seconds; a GPU waits for the program to start hundreds of kernels, however small they are


@dataclass(frozen=True)
class Accelerator:
    """One device: its memory, and its dense peak rates as published by its maker."""

    name: str
    memory_gb: float
    float32_tflops: float
    bfloat16_tflops: float | None  # None: not supported, so that training uses float32

    def peak_flops(self, *, uses_bfloat16: bool) -> float:
        """FLOP/s at the peak."""
        rate = self.bfloat16_tflops if uses_bfloat16 and self.bfloat16_tflops else self.float32_tflops
        return rate * 1e12


# Products of float32 do not use TF32, PyTorch's default. P100: the rating that the paper of 2017 uses.
ACCELERATORS = {
    accelerator.name: accelerator
    for accelerator in (
        Accelerator("p100", 16, 9.5, None),
        Accelerator("v100", 32, 15.7, None),
        Accelerator("t4", 16, 8.1, None),
        Accelerator("l4", 24, 30.3, 121.0),
        Accelerator("a10", 24, 31.2, 125.0),
        Accelerator("rtx3090", 24, 35.6, 71.0),
        Accelerator("rtx4090", 24, 82.6, 165.2),
        Accelerator("l40s", 48, 91.6, 362.0),
        Accelerator("a100", 80, 19.5, 312.0),
        Accelerator("h100", 80, 67.0, 989.0),
        Accelerator("h200", 141, 67.0, 989.0),
    )
}


def scaling_efficiency(n_devices: int) -> float:
    """The speed of several devices over that of one, divided by their number."""
    return 1.0 if n_devices == 1 else EFFICIENCY


@dataclass(frozen=True)
class Trial:
    """A few updates on this machine."""

    estimate: CostEstimate
    batch_tokens: int  # of the trial
    data_problem: str = ""  # why the recipe's own text was not used; "": it was
    is_whole: bool = False  # whether the tokenizer was trained on all the text


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The cost of a run."""

    recipe: Recipe
    parameters: dict[str, int]  # by part of the model
    batch: BatchShape  # of one batch, without R-Drop's second pass
    forward: dict[str, float]  # FLOP of a forward pass on one batch, by part of the model
    total_flop: float  # of all updates, forward and backward
    n_devices: int
    accelerator: Accelerator | None  # None: CPUs like this one
    utilization: float | None
    efficiency: float
    precision: str
    replicated: DeviceMemory
    sharded: DeviceMemory
    seconds: dict[str, float]  # by part of the run; of this machine when it is idle
    slowdown: float  # factor due to the machine's present load
    trial: Trial | None
    price: float | None  # of one device for an hour

    @property
    def n_parameters(self) -> int:
        """All parameters of the Transformer."""
        return sum(self.parameters.values())

    @property
    def total_seconds(self) -> float:
        """The whole run."""
        return sum(self.seconds.values())

    @property
    def batches_per_update(self) -> int:
        """Batches whose gradients are summed."""
        return self.recipe.train.accumulation_steps

    @property
    def flop_per_token(self) -> float:
        """FLOP of training per position, of source and target alike."""
        return PASSES * sum(self.forward.values()) / self.batch.n_positions

    @property
    def hardware_flop(self) -> float | None:
        """What the accelerators could compute in that time at their peak: how the paper of 2017 counts."""
        if self.accelerator is None:
            return None
        peak = self.accelerator.peak_flops(uses_bfloat16=self.precision == "bfloat16")
        return self.seconds["training"] * self.n_devices * peak

    @property
    def cost(self) -> float | None:
        """The price of all devices for the time of the run."""
        return None if self.price is None else self.price * self.n_devices * self.total_seconds / 3600


def try_recipe(recipe: Recipe, startup: float = 0.0) -> Trial:
    """Train for a few updates on the recipe's text, or on the built-in corpus if that cannot be read.

    `startup` is the number of CPU seconds that this process took to start: a run takes them as well.
    """
    problem = ""
    try:
        survey, reading = survey_recipe(recipe)
    except DataError as error:
        problem = str(error).partition("\n")[0]
        recipe = _with_builtin_text(recipe)
        survey, reading = survey_recipe(recipe)
    shape = assumed_batch(recipe)
    flop = training_flop(recipe.model, shape)
    batch_tokens = recipe.train.batch_tokens
    if flop > _MAX_TRIAL_FLOP:
        batch_tokens = max(_MIN_TRIAL_TOKENS, round(batch_tokens * _MAX_TRIAL_FLOP / flop))
        batch_tokens = min(batch_tokens, recipe.train.batch_tokens)
    trial = replace(recipe, train=replace(recipe.train, batch_tokens=batch_tokens))
    estimate = measure_cost(trial, survey, startup + reading)
    return Trial(estimate, batch_tokens, problem, is_whole=estimate.is_exact)


def make_plan(
    recipe: Recipe,
    *,
    trial: Trial | None = None,
    accelerator: Accelerator | None = None,
    n_devices: int = 1,
    utilization: float | None = None,
    price: float | None = None,
    vocab_size: int | None = None,
) -> RunPlan:
    """Plan a run on CPUs like this one, which needs a trial, or on accelerators.

    `vocab_size` is that of a tokenizer that exists already; without one, the recipe's counts, or the trial's if it read
    all the text.
    """
    if vocab_size is None and trial is not None and trial.is_whole and not trial.data_problem:
        vocab_size = trial.estimate.vocab_size
    if vocab_size is not None:
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=vocab_size))
    model, train = recipe.model, recipe.train
    batch = assumed_batch(recipe) if trial is None or trial.data_problem else _whole_batch(recipe, trial)
    counts = TASKS[recipe.task.kind].init.step_counts(recipe.task, train.steps)
    n_passes = _passes(recipe, len(counts))
    flop = training_flop(model, batch) * train.accumulation_steps
    total_flop = sum(count * passes * flop for count, passes in zip(counts, n_passes, strict=True))
    efficiency = scaling_efficiency(n_devices)
    is_bfloat16 = _uses_bfloat16(recipe, accelerator)
    seconds: dict[str, float]
    if accelerator is not None:
        utilization = UTILIZATION if utilization is None else utilization
        rate = accelerator.peak_flops(uses_bfloat16=is_bfloat16) * utilization * efficiency * n_devices
        seconds = {"training": max(total_flop / rate, train.steps * MIN_UPDATE)}
    elif trial is not None:
        seconds = _measured_seconds(recipe, trial, batch, counts, n_devices * efficiency)
    else:
        raise ValueError("A plan needs a trial or an accelerator.")
    parameters = parameters_by_part(model)
    memory = [
        device_memory(
            model,
            sum(parameters.values()),
            batch,
            n_devices=n_devices,
            is_sharded=is_sharded,
            has_ema=train.ema_decay is not None,
            uses_bfloat16=is_bfloat16,
        )
        for is_sharded in (False, True)
    ]
    if accelerator is None and trial is not None:
        program = _program_memory(recipe, trial)
        memory = [replace(part, program=program) for part in memory]
    return RunPlan(
        recipe=recipe,
        parameters=parameters,
        batch=batch,
        forward=forward_flop(model, batch),
        total_flop=total_flop,
        n_devices=n_devices,
        accelerator=accelerator,
        utilization=utilization if accelerator is not None else None,
        efficiency=efficiency,
        precision="bfloat16" if is_bfloat16 else "float32",
        replicated=memory[0],
        sharded=memory[1],
        seconds=seconds,
        slowdown=1.0 if trial is None or accelerator is not None else trial.estimate.slowdown,
        trial=None if accelerator is not None else trial,
        price=price,
    )


def assumed_batch(recipe: Recipe) -> BatchShape:
    """A full batch: of sentences of 25 tokens on both sides, or of windows as long as the model reads."""
    model, n_tokens = recipe.model, recipe.train.batch_tokens
    is_windows = recipe.task_class.cleaning(recipe.task).n_fields == 1
    length = min(model.max_length if is_windows else _LENGTH, model.max_length, n_tokens)
    share = getattr(recipe.task, "mask_probability", 0.0)
    return BatchShape.of_rows(
        n_tokens / length, length * model.has_encoder, length * model.has_decoder, output_share=share
    )


def _whole_batch(recipe: Recipe, trial: Trial) -> BatchShape:
    """The mean batch of the trial, scaled to the size of the recipe's batches; longer rows are as likely as there."""
    first = trial.estimate.batches[0]
    scale = recipe.train.batch_tokens / trial.batch_tokens / _passes(recipe, len(trial.estimate.batches))[0]
    return BatchShape(**{name: value * scale for name, value in vars(first).items()})


def _measured_seconds(
    recipe: Recipe, trial: Trial, batch: BatchShape, counts: Sequence[int], speedup: float
) -> dict[str, float]:
    """The time of each part of a run; other sizes than those of the trial take time in proportion to their FLOP."""
    train, estimate = recipe.train, trial.estimate
    tried = replace(recipe.model, vocab_size=estimate.vocab_size)
    n_passes = _passes(recipe, len(counts))
    updates = 0.0
    tried_steps = zip(estimate.step_seconds, estimate.batches, strict=True)
    for count, passes, (seconds, shape) in zip(counts, n_passes, tried_steps, strict=True):
        updates += count * seconds * passes * training_flop(recipe.model, batch) / training_flop(tried, shape)
    validations, saves = (-(-train.steps // every) for every in (train.validate_every, train.save_every))
    is_own = not trial.data_problem
    return {
        **({"preparation": estimate.prepare_seconds} if is_own else {}),
        "training": updates / speedup,
        "validation": validations * estimate.validate_seconds,
        "checkpoints": saves * estimate.save_seconds,
        **({"scoring": estimate.finish_seconds} if is_own else {}),
    }


def _program_memory(recipe: Recipe, trial: Trial) -> float:
    """What the trial took beside the model and a batch: it is the same for every size of them."""
    tried = replace(recipe.model, vocab_size=trial.estimate.vocab_size)
    known = device_memory(
        tried,
        sum(parameters_by_part(tried).values()),
        trial.estimate.batches[0],
        has_ema=recipe.train.ema_decay is not None,
        uses_bfloat16=_uses_bfloat16(recipe, None),
    )
    return max(0.0, trial.estimate.peak_memory - known.total)


def _passes(recipe: Recipe, n_phases: int) -> tuple[int, ...]:
    """Forward passes per update in each phase: R-Drop takes two, in one phase of seq2seq or throughout."""
    consistency = getattr(recipe.task, "consistency", 0.0)
    return (1, 2) if n_phases == 2 else (2 if consistency else 1,)


def _uses_bfloat16(recipe: Recipe, accelerator: Accelerator | None) -> bool:
    if accelerator is None:
        return uses_bfloat16(recipe.train.precision, torch.device("cpu"))
    if recipe.train.precision == "auto":
        return accelerator.bfloat16_tflops is not None
    return recipe.train.precision == "bfloat16"


def _with_builtin_text(recipe: Recipe) -> Recipe:
    """The recipe on the built-in corpus, with its sizes unchanged."""
    pair = "en-de" if recipe.model.has_cross_attention else "en"
    task: Any = recipe.task
    task = replace(task, **recipe.task_class.language_settings(pair.split("-")))
    data = DataSettings(builtin=pair, builtin_rows=_BUILTIN_ROWS)
    return replace(recipe, data=data, clean=CleanSettings(), task=task)


def assumptions(plan: RunPlan) -> list[str]:
    """What the plan takes for granted, in the language in use."""
    lines = [_("FLOP: matrix products only; the backward pass costs two forward passes.")]
    trial, train = plan.trial, plan.recipe.train
    if trial is None or trial.data_problem:
        length = round(plan.batch.n_positions / plan.batch.n_rows / (2 if plan.recipe.model.has_cross_attention else 1))
        lines.append(
            _(
                "Batches are full: {batch_tokens:,} tokens a side, in texts of {length} tokens.",
                batch_tokens=train.batch_tokens,
                length=length,
            )
        )
    if trial is not None and trial.data_problem:
        lines.append(
            _(
                "The text was not read ({problem}) The trial used the built-in corpus; preparation and "
                "scoring are left out.",
                problem=trial.data_problem,
            )
        )
    if trial is not None and trial.batch_tokens < train.batch_tokens:
        lines.append(
            _(
                "The trial had batches of {batch_tokens:,} tokens; time grows with FLOP.",
                batch_tokens=trial.batch_tokens,
            )
        )
    if plan.accelerator is not None and plan.utilization is not None:
        peak = plan.accelerator.peak_flops(uses_bfloat16=plan.precision == "bfloat16") / 1e12
        lines.append(
            _(
                "{name}: {peak:g} TFLOP/s in {precision} (published peak), of which {utilization:.0%} are "
                "used. Preparation, validation and scoring are left out.",
                name=plan.accelerator.name,
                peak=peak,
                precision=plan.precision,
                utilization=plan.utilization,
            )
        )
    if plan.accelerator is not None and plan.seconds["training"] == train.steps * MIN_UPDATE:
        lines.append(_("An update takes 10 ms at least: the model is too small to keep a GPU busy."))
    if plan.n_devices > 1:
        lines.append(
            _(
                "{n_devices} devices reach {efficiency:.0%} of {n_devices} times the speed of one.",
                n_devices=plan.n_devices,
                efficiency=plan.efficiency,
            )
        )
    return lines
