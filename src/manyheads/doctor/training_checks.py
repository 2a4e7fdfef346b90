"""Checks of a run by what it wrote: the log of its events, and its checkpoints.

Each takes the `RunLog` and gives a finding. What is too short to be judged is said to be good so far.
"""

import math
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from manyheads.doctor.findings import MAX_EXAMPLES, Finding, share
from manyheads.doctor.outputs import check_outputs
from manyheads.errors import CheckpointError, RecipeError
from manyheads.run import RunFolder
from manyheads.storage import verify_manifest

_WINDOW = 20  # steps whose mean loss is compared
_SPIKE = 1.0  # nats
_SCORE_DROP = 1.0  # points of the score below its best
_PATIENCE = 3  # validations in a row
_EARLY_STEPS = 200  # steps in which no progress is no fault
_STUCK_SECONDS = 120.0  # seconds without an event, at least, before a run counts as stuck

Sample = tuple[str, str, str]


@dataclass(frozen=True)
class RunLog:
    """What a run told of itself; steps that were trained again after a restart count once."""

    folder: Path
    losses: dict[int, float] = field(default_factory=dict)  # by step
    gradient_norms: dict[int, float] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)
    last_event: str = ""
    last_time: float = 0.0
    n_unreadable: int = 0  # lines
    consistency_after: float = math.inf  # the step after which R-Drop is in the loss, which raises it; inf: never

    @property
    def step(self) -> int:
        """The last step made."""
        return max(self.losses, default=0)

    def comparable_losses(self) -> list[dict[int, float]]:
        """The losses in parts that can be compared: without R-Drop, then with it; no part is empty."""
        parts: list[dict[int, float]] = [{}, {}]
        for step, loss in self.losses.items():
            parts[step > self.consistency_after][step] = loss
        return [part for part in parts if part]


def read_log(folder: Path) -> RunLog:
    """Read the log of a run folder; lines that cannot be read are counted and skipped."""
    log = RunLog(folder)
    last_event, last_time, n_invalid = "", 0.0, 0
    reader = RunFolder(folder).log()
    for event in reader:
        try:
            _add_event(event, log)
            last_event, last_time = str(event["event"]), float(event["time"])
        except (ValueError, KeyError, TypeError):
            n_invalid += 1
    return replace(
        log,
        last_event=last_event,
        last_time=last_time,
        n_unreadable=reader.n_unreadable + n_invalid,
        consistency_after=_consistency_after(folder),
    )


def _consistency_after(folder: Path) -> float:
    """When R-Drop began, as the run's own recipe says; where that cannot be read, never."""
    try:
        task = RunFolder(folder).read_recipe_table().get("task", {})
        return float(task.get("consistency_after", 0)) if task.get("consistency", 0) else math.inf
    except (RecipeError, OSError, ValueError, TypeError, AttributeError):
        return math.inf


def _add_event(event: dict[str, Any], log: RunLog) -> None:
    kind, step = event["event"], event.get("step")
    if kind == "Resumed" and isinstance(step, int):
        for column in (log.losses, log.gradient_norms, log.seconds, log.scores, log.samples):
            for later in [known for known in column if known > step]:
                del column[later]
    elif kind == "Step" and isinstance(step, int):
        log.losses[step] = float(event["loss"])
        log.gradient_norms[step] = float(event["gradient_norm"])
        log.seconds[step] = float(event["seconds"])
    elif kind == "Validated" and isinstance(step, int):
        log.scores[step] = float(event["score"] if "score" in event else event["bleu"])
        source, translation, reference = event["sample"]
        log.samples[step] = (str(source), str(translation), str(reference))


def check_log(log: RunLog) -> Finding:
    """Whether the log can be read, and how far the run came."""
    finished = {"Finished": "finished", "Interrupted": "stopped when asked"}.get(log.last_event, "not finished")
    message = f"{log.step:,} steps, {len(log.scores)} validations, {finished}"
    if log.n_unreadable > 1:
        return Finding(
            "log", "warning", f"{message}; {log.n_unreadable} lines of log.jsonl cannot be read.", (),
            "The disk may have been full; the checkpoints are what counts. 日志不完整，可能是磁盘已满。",
        )  # fmt: skip
    return Finding("log", "good", f"{message}.")


def check_finite(log: RunLog) -> Finding:
    """Losses and gradients that are no numbers."""
    broken = [
        step for step in log.losses if not (math.isfinite(log.losses[step]) and math.isfinite(log.gradient_norms[step]))
    ]
    if not broken:
        return Finding("finite numbers", "good", "every loss and gradient is a number.")
    return Finding(
        "finite numbers", "bad", f"at step {broken[0]:,} the loss or the gradient is no longer a number.", (), _LOWER_RATE,
    )  # fmt: skip


_LOWER_RATE = (
    "Train into a new folder with a lower train.learning_rate (a third), a longer train.warmup, train.clip_norm = 1.0 or"
    ' model.norm_placement = "pre". 请降低学习率、加长预热，或使用 pre-norm。'
)


def check_divergence(log: RunLog) -> Finding:
    """A loss that rose and stayed up: a learning rate too high."""
    found = [_divergence(means) for means in map(_means, log.comparable_losses()) if means]
    if not found:
        return Finding("divergence", "good", "too few steps to tell.")
    return max(reversed(found), key=lambda finding: ("good", "warning", "bad").index(finding.verdict))


def _divergence(means: dict[int, float]) -> Finding:
    """The same of losses that can be compared throughout."""
    check = "divergence"
    lowest_step = min(means, key=lambda step: means[step])
    last_step = max(means)
    risen = means[last_step] - means[lowest_step]
    first = means[min(means)]
    if risen > _SPIKE or means[last_step] > first + _SPIKE / 2:
        return Finding(
            check,
            "bad",
            f"the loss fell to {means[lowest_step]:.2f} at step {lowest_step:,} and has risen to {means[last_step]:.2f}"
            f" at step {last_step:,}.",
            (),
            _LOWER_RATE,
        )
    spikes = _spikes(means)
    if spikes:
        return Finding(
            check,
            "warning",
            f"jumps of the loss by more than {_SPIKE:.0f}: {len(spikes)}, the first before step {spikes[0]:,}; it came"
            " back each time.",
            (),
            "It recovered; for a calmer run lower train.learning_rate or set train.clip_norm = 1.0."
            " 损失曾突然上升：可降低学习率。",
        )
    return Finding(check, "good", f"the loss went from {first:.2f} to {means[last_step]:.2f} without blowing up.")


def check_progress(log: RunLog) -> Finding:
    """A loss that hardly moves."""
    check = "progress"
    means = _means(log.losses)
    if log.step < _EARLY_STEPS or not means:
        return Finding(check, "good", f"{log.step:,} steps are too few to expect much.")
    first, last = log.losses[min(log.losses)], means[max(means)]
    best = max(log.scores.values(), default=None)
    message = f"the loss went from {first:.2f} to {last:.2f}" + (
        f", the best score is {best:.1f}." if best is not None else "."
    )
    if last > 0.9 * first:
        return Finding(
            check, "bad", message, (),
            "It does not learn: run doctor on the recipe (overfit one batch, languages, alignment); raise"
            " train.learning_rate if it is below 1e-4. 模型没有学到东西：请对配方运行 doctor。",
        )  # fmt: skip
    return Finding(check, "good", message)


def check_overfitting(log: RunLog) -> Finding:
    """Scores on unseen text that fall while the loss in training goes on falling."""
    check = "over-fitting"
    steps = sorted(log.scores)
    if len(steps) <= _PATIENCE:
        return Finding(check, "good", f"{len(steps)} validations are too few to tell.")
    best = max(steps, key=lambda step: log.scores[step])
    later = [step for step in steps if step > best]
    means = _means(log.comparable_losses()[-1]) if log.losses else {}
    fell = bool(means) and _nearest(means, steps[-1]) < _nearest(means, best)
    has_fallen = len(later) >= _PATIENCE and all(
        log.scores[step] < log.scores[best] - _SCORE_DROP for step in later[-_PATIENCE:]
    )
    if has_fallen and fell:
        return Finding(
            check,
            "warning",
            f"since step {best:,} the score has fallen from {log.scores[best]:.1f} to {log.scores[steps[-1]]:.1f},"
            f" while the training loss fell from {_nearest(means, best):.2f} to {_nearest(means, steps[-1]):.2f}.",
            (),
            f"It learns the training text by heart: raise model.dropout, {_r_drop_advice(log)}set"
            f" tokenizer.sampling = 0.1, average more snapshots (train.average_snapshots), or train only {best:,} steps; more"
            " data helps most. 过拟合：请增大 dropout，启用子词采样，或减少步数。",
        )
    return Finding(check, "good", f"the best score, {log.scores[best]:.1f}, is of step {best:,} of {steps[-1]:,}.")


def _r_drop_advice(log: RunLog) -> str:
    return "set task.consistency = 5.0 (R-Drop), " if math.isinf(log.consistency_after) else ""


def check_samples(log: RunLog) -> Finding:
    """Whether the samples of the last validations are all the same, or go round in circles."""
    steps = sorted(log.samples)[-6:]
    samples = [log.samples[step] for step in steps]
    if log.step < _EARLY_STEPS or len(samples) < _PATIENCE:
        return Finding("samples", "good", "too early to judge its translations.")
    return check_outputs("samples", [source for source, _, _ in samples], [found for _, found, _ in samples])


def check_running(log: RunLog, now: float | None = None) -> Finding:
    """A run that ended without a word, or that hangs."""
    check = "running"
    if log.last_event in ("Finished", "Interrupted"):
        return Finding(check, "good", f"the run ended as it should, at step {log.step:,}.")
    silent = (time.time() if now is None else now) - log.last_time
    pace = median(log.seconds.values()) if log.seconds else 1.0
    if RunFolder(log.folder).is_running:
        if silent <= max(_STUCK_SECONDS, 50 * pace):
            return Finding(check, "good", f"the run is under way at step {log.step:,}.")
        return Finding(
            check, "warning", f"stuck at step {log.step:,}: nothing was logged for {silent / 60:.0f} minutes.", (),
            "Stop it with Ctrl-C and start the same command again: it goes on from its last checkpoint."
            " 请中断后重新运行同一命令，会从检查点继续。",
        )  # fmt: skip
    return Finding(
        check, "warning", f"the run is not under way, and its log ends at step {log.step:,} without a last word.", (),
        "If it was killed, run the same command again: it goes on from its last checkpoint. If it spoke of a loss that"
        f" is no number: {_LOWER_RATE}",
    )  # fmt: skip


def check_checkpoints(folder: Path) -> Finding:
    """Whether every checkpoint and snapshot is whole."""
    check = "checkpoints"
    sealed = RunFolder(folder).step_folders()
    faults = []
    for path in sealed:
        try:
            verify_manifest(path, CheckpointError)
        except CheckpointError as error:
            faults.append(str(error))
    if faults:
        return Finding(
            check, "bad", f"{share(len(faults), len(sealed))} checkpoints and snapshots are damaged.",
            tuple(faults[:MAX_EXAMPLES]),
            "Remove the damaged folders and run the same command again: it goes on from the newest whole one. Check the"
            " disk. 请删除损坏的检查点并重新运行；同时检查磁盘。",
        )  # fmt: skip
    return Finding(check, "good", f"{len(sealed)} checkpoints and snapshots, all whole.")


def _means(values: dict[int, float]) -> dict[int, float]:
    """The mean of each twenty steps, by the last of them; none where there are fewer."""
    steps = sorted(step for step, value in values.items() if math.isfinite(value))
    groups = [steps[start : start + _WINDOW] for start in range(0, len(steps) - _WINDOW + 1, _WINDOW)]
    return {group[-1]: fmean(values[step] for step in group) for group in groups}


def _nearest(means: dict[int, float], step: int) -> float:
    return means[min(means, key=lambda known: abs(known - step))]


def _spikes(means: dict[int, float]) -> list[int]:
    return [after for before, after in pairwise(sorted(means)) if means[after] > means[before] + _SPIKE]
