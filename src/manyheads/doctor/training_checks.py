"""Checks of a run: its log of events and its checkpoints.

Each is a function of the `RunLog`. A run that is too short for a check passes it.
"""

import math
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from manyheads.doctor.run_log import RunLog
from manyheads.errors import CheckpointError
from manyheads.messages import _
from manyheads.metrics import rows_name
from manyheads.run import RunFolder
from manyheads.storage import verify_manifest
from manyheads.tasks import DEFAULT_KIND, TASKS
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, describe_sizes, share
from manyheads.training import TrainSettings
from manyheads.training.settings import LONG_WARMUP, warmup_share

_WINDOW = 20  # steps per mean loss
_SPIKE = 1.0  # nats
_SCORE_DROP = 1.0  # points of the score below its best
_PATIENCE = 3  # validations in a row
_EARLY_STEPS = 200  # in which a lack of progress is normal
_STUCK_SECONDS = 120.0  # without an event before a run counts as stuck, at least


def check_log(log: RunLog) -> Finding:
    """Check that the log can be read, and report how far the run got."""
    states = {"Finished": _("finished"), "Interrupted": _("interrupted by the user")}
    state = states.get(log.last_event, _("not finished"))
    message = _("{step:,} steps, {n_scores} validations, {state}", step=log.step, n_scores=len(log.scores), state=state)
    if log.n_unreadable > 1:
        return Finding(
            "log",
            "warning",
            message + _("; {n_unreadable} lines of log.jsonl cannot be read.", n_unreadable=log.n_unreadable),
            (),
            _("The disk may have been full. Checkpoints are checked separately."),
        )
    return Finding("log", "good", message + _("."))


def check_prepared(log: RunLog) -> Iterator[Finding]:
    """Report the rows and sizes that the run started with."""
    event = log.prepared
    try:
        rows = rows_name(str(event["noun"]), int(event["n_rows"]), {k: int(n) for k, n in event["dropped"].items()})
        sizes = describe_sizes(int(event["n_parameters"]), int(event["vocab_size"]))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        return
    yield Finding("rows", "good", _("{rows}.", rows=rows))
    yield Finding("sizes", "good", sizes)


def check_warmup(settings: TrainSettings) -> Finding:
    """Check that the warm-up leaves most of the run at a useful learning rate."""
    check, steps, warmup = "warm-up", f"{settings.steps:,}", f"{settings.warmup:,}"
    part = warmup_share(settings)
    if part <= LONG_WARMUP:
        message = _("the learning rate reaches its peak at step {warmup} of {steps}.", warmup=warmup, steps=steps)
        return Finding(check, "good", message)
    shorter = f"train.warmup = {max(1, settings.steps // 10)}"
    message = _(
        "the warm-up takes {warmup} steps, {part:.0%} of the run of {steps} steps.",
        warmup=warmup,
        part=part,
        steps=steps,
    )
    if part > 1:
        message = _(
            "the warm-up takes {warmup} steps, but the run has {steps}: the learning rate ends at {part:.0%} "
            "of its peak.",
            warmup=warmup,
            steps=steps,
            part=1 / part,
        )
    fix = _("Train longer, or set {shorter}.", shorter=shorter)
    return Finding(check, "bad" if part > 1 else "warning", message, (), fix)


def check_finite(log: RunLog) -> Finding:
    """Check for losses and gradients that are NaN or infinite."""
    broken = [
        step for step in log.losses if not (math.isfinite(log.losses[step]) and math.isfinite(log.gradient_norms[step]))
    ]
    if not broken:
        return Finding("finite numbers", "good", _("every loss and gradient is finite."))
    message = _("at step {step:,} the loss or the gradient is NaN or infinite.", step=broken[0])
    return Finding("finite numbers", "bad", message, (), _lower_rate_advice())


def _lower_rate_advice() -> str:
    return _(
        "Train into a new folder with a lower train.learning_rate (a third), a longer train.warmup, "
        'train.clip_norm = 1.0 or model.norm_placement = "pre".'
    )


def check_divergence(log: RunLog) -> Finding:
    """Check for a loss that rises and stays high, which a too high learning rate causes."""
    found = [_divergence(means) for means in map(_means, log.comparable_losses()) if means]
    if not found:
        return Finding("divergence", "good", _("not checked: too few steps."))
    return max(reversed(found), key=lambda finding: ("good", "warning", "bad").index(finding.verdict))


def _divergence(means: dict[int, float]) -> Finding:
    """Check losses that are comparable throughout."""
    check = "divergence"
    lowest_step = min(means, key=lambda step: means[step])
    last_step = max(means)
    risen = means[last_step] - means[lowest_step]
    first = means[min(means)]
    if risen > _SPIKE or means[last_step] > first + _SPIKE / 2:
        return Finding(
            check,
            "bad",
            _(
                "the loss fell to {lowest:.2f} at step {lowest_step:,} and has risen to {last:.2f} at step "
                "{last_step:,}.",
                lowest=means[lowest_step],
                lowest_step=lowest_step,
                last=means[last_step],
                last_step=last_step,
            ),
            (),
            _lower_rate_advice(),
        )
    spikes = _spikes(means)
    if spikes:
        return Finding(
            check,
            "warning",
            _(
                "the loss jumped by more than {height:.0f} {n_spikes} times, first before step {step:,}, and "
                "recovered each time.",
                height=_SPIKE,
                n_spikes=len(spikes),
                step=spikes[0],
            ),
            (),
            _("For a steadier run, lower train.learning_rate or set train.clip_norm = 1.0."),
        )
    message = _("the loss went from {first:.2f} to {last:.2f} without diverging.", first=first, last=means[last_step])
    return Finding(check, "good", message)


def check_progress(log: RunLog) -> Finding:
    """Check for a loss that hardly falls."""
    check = "progress"
    means = _means(log.losses)
    if log.step < _EARLY_STEPS or not means:
        return Finding(check, "good", _("not checked: {step:,} steps are too few.", step=log.step))
    first, last = log.losses[min(log.losses)], means[max(means)]
    best = log.format_score(max(log.scores.values())) if log.scores else ""
    message = _("the loss went from {first:.2f} to {last:.2f}", first=first, last=last)
    message += _(", the best score is {best}.", best=best) if best else _(".")
    if last > 0.9 * first:
        return Finding(
            check,
            "bad",
            message,
            (),
            _(
                "The model does not learn: run doctor on the recipe (overfit one batch, languages, alignment); "
                "raise train.learning_rate if it is below 1e-4."
            ),
        )
    return Finding(check, "good", message)


def check_overfitting(log: RunLog) -> Finding:
    """Check for validation scores that fall while the training loss goes on falling."""
    check = "over-fitting"
    steps = sorted(log.scores)
    if len(steps) <= _PATIENCE:
        message = _("not checked: {n_steps} validations are too few.", n_steps=len(steps))
        return Finding(check, "good", message)
    best = max(steps, key=lambda step: log.scores[step])
    score = log.format_score(log.scores[best])
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
            _(
                "since step {best:,} the score has fallen from {score} to {last_score}, while the training "
                "loss fell from {loss:.2f} to {last_loss:.2f}.",
                best=best,
                score=score,
                last_score=log.format_score(log.scores[steps[-1]]),
                loss=_nearest(means, best),
                last_loss=_nearest(means, steps[-1]),
            ),
            (),
            _overfitting_advice(log, best),
        )
    message = _(
        "the best score, {score}, is that of step {best:,} of {last:,}.", score=score, best=best, last=steps[-1]
    )
    return Finding(check, "good", message)


def _overfitting_advice(log: RunLog, best: int) -> str:
    has_r_drop = not math.isinf(log.consistency_after)
    return _(
        "The model overfits: raise model.dropout, {r_drop}set tokenizer.sampling = 0.1, average more snapshots "
        "(train.average_snapshots), or train only {best:,} steps; more data helps most.",
        r_drop="" if has_r_drop else _("set task.consistency = 5.0 (R-Drop), "),
        best=best,
    )


def check_samples(log: RunLog) -> Finding:
    """Check the samples of the last validations for output collapse."""
    steps = sorted(log.samples)[-6:]
    samples = [log.samples[step] for step in steps]
    if log.step < _EARLY_STEPS or len(samples) < _PATIENCE:
        return Finding("samples", "good", _("not checked: too early."))
    part = TASKS[DEFAULT_KIND].doctor if log.recipe is None else log.recipe.task_class.doctor
    return part.check_outputs("samples", samples)


def check_running(log: RunLog, now: float | None = None) -> Finding:
    """Check for a run that ended unexpectedly, or that is stuck."""
    check = "running"
    if log.last_event in ("Finished", "Interrupted"):
        message = _("the run ended normally, at step {step:,}.", step=log.step)
        return Finding(check, "good", message)
    silent = (time.time() if now is None else now) - log.last_time
    pace = median(log.seconds.values()) if log.seconds else 1.0
    if RunFolder(log.folder).is_running:
        if silent <= max(_STUCK_SECONDS, 50 * pace):
            message = _("the run is at step {step:,}.", step=log.step)
            return Finding(check, "good", message)
        return Finding(
            check,
            "warning",
            _(
                "stuck at step {step:,}: nothing was logged for {minutes:.0f} minutes.",
                step=log.step,
                minutes=silent / 60,
            ),
            (),
            _("Stop it with Ctrl-C and run the same command again: it resumes from the last checkpoint."),
        )
    return Finding(
        check,
        "warning",
        _("the run is not running, and its log ends at step {step:,} without an end.", step=log.step),
        (),
        _(
            "If it was killed, run the same command again: it resumes from the last checkpoint. If it reported "
            "a loss that is not finite: "
        )
        + _lower_rate_advice(),
    )


def check_checkpoints(folder: Path) -> Finding:
    """Check that every checkpoint and snapshot is intact."""
    check = "checkpoints"
    folders = RunFolder(folder).step_folders()
    faults = []
    for path in folders:
        try:
            verify_manifest(path, CheckpointError)
        except CheckpointError as error:
            faults.append(str(error))
    if faults:
        return Finding(
            check,
            "bad",
            _("{counted} checkpoints and snapshots are damaged.", counted=share(len(faults), len(folders))),
            tuple(faults[:MAX_EXAMPLES]),
            _(
                "Delete the damaged folders and run the same command again: it resumes from the newest intact "
                "one. Check the disk."
            ),
        )
    message = _("{n_folders} checkpoints and snapshots, all intact.", n_folders=len(folders))
    return Finding(check, "good", message)


def _means(values: dict[int, float]) -> dict[int, float]:
    """Return the mean of every twenty steps, by the last step of each group."""
    steps = sorted(step for step, value in values.items() if math.isfinite(value))
    groups = [steps[start : start + _WINDOW] for start in range(0, len(steps) - _WINDOW + 1, _WINDOW)]
    return {group[-1]: fmean(values[step] for step in group) for group in groups}


def _nearest(means: dict[int, float], step: int) -> float:
    return means[min(means, key=lambda known: abs(known - step))]


def _spikes(means: dict[int, float]) -> list[int]:
    return [after for before, after in pairwise(sorted(means)) if means[after] > means[before] + _SPIKE]
