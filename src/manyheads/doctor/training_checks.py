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
from manyheads.language import pick
from manyheads.metrics import rows_name
from manyheads.run import RunFolder
from manyheads.storage import verify_manifest
from manyheads.tasks import DEFAULT_KIND, TASKS
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, describe_sizes, share
from manyheads.training import TrainSettings
from manyheads.training.schedule import LONG_WARMUP, warmup_share

_WINDOW = 20  # steps per mean loss
_SPIKE = 1.0  # nats
_SCORE_DROP = 1.0  # points of the score below its best
_PATIENCE = 3  # validations in a row
_EARLY_STEPS = 200  # in which a lack of progress is normal
_STUCK_SECONDS = 120.0  # without an event before a run counts as stuck, at least


def check_log(log: RunLog) -> Finding:
    """Check that the log can be read, and report how far the run got."""
    states = {"Finished": pick("finished", "已完成"), "Interrupted": pick("interrupted by the user", "被用户中断")}
    state = states.get(log.last_event, pick("not finished", "未完成"))
    message = pick(
        f"{log.step:,} steps, {len(log.scores)} validations, {state}",
        f"{log.step:,} 步，{len(log.scores)} 次验证，{state}",
    )
    if log.n_unreadable > 1:
        return Finding(
            "log",
            "warning",
            message
            + pick(
                f"; {log.n_unreadable} lines of log.jsonl cannot be read.",
                f"；log.jsonl 有 {log.n_unreadable} 行无法读取。",
            ),
            (),
            pick(
                "The disk may have been full. Checkpoints are checked separately.",
                "可能是磁盘已满。检查点另行检查。",
            ),
        )
    return Finding("log", "good", message + pick(".", "。"))


def check_prepared(log: RunLog) -> Iterator[Finding]:
    """Report the rows and sizes that the run started with."""
    event = log.prepared
    try:
        rows = rows_name(str(event["noun"]), int(event["n_rows"]), {k: int(n) for k, n in event["dropped"].items()})
        sizes = describe_sizes(int(event["n_parameters"]), int(event["vocab_size"]))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        return
    yield Finding("rows", "good", f"{rows}{pick('.', '。')}")
    yield Finding("sizes", "good", sizes)


def check_warmup(settings: TrainSettings) -> Finding:
    """Check that the warm-up leaves most of the run at a useful learning rate."""
    check, steps, warmup = "warm-up", f"{settings.steps:,}", f"{settings.warmup:,}"
    part = warmup_share(settings)
    if part <= LONG_WARMUP:
        message = pick(
            f"the learning rate reaches its peak at step {warmup} of {steps}.",
            f"学习率在第 {warmup} 步（共 {steps} 步）达到最大值。",
        )
        return Finding(check, "good", message)
    shorter = f"train.warmup = {max(1, settings.steps // 10)}"
    message = pick(
        f"the warm-up takes {warmup} steps, {part:.0%} of the run of {steps} steps.",
        f"预热要 {warmup} 步，占全部 {steps} 步的 {part:.0%}。",
    )
    if part > 1:
        message = pick(
            f"the warm-up takes {warmup} steps, but the run has {steps}: the learning rate ends at {1 / part:.0%} of"
            " its peak.",
            f"预热要 {warmup} 步，而训练只有 {steps} 步：学习率最终只到最大值的 {1 / part:.0%}。",
        )
    fix = pick(f"Train longer, or set {shorter}.", f"请延长训练，或设 {shorter}。")
    return Finding(check, "bad" if part > 1 else "warning", message, (), fix)


def check_finite(log: RunLog) -> Finding:
    """Check for losses and gradients that are NaN or infinite."""
    broken = [
        step for step in log.losses if not (math.isfinite(log.losses[step]) and math.isfinite(log.gradient_norms[step]))
    ]
    if not broken:
        return Finding(
            "finite numbers", "good", pick("every loss and gradient is finite.", "所有损失和梯度都是有限值。")
        )
    message = pick(
        f"at step {broken[0]:,} the loss or the gradient is NaN or infinite.",
        f"第 {broken[0]:,} 步的损失或梯度为 NaN 或无穷大。",
    )
    return Finding("finite numbers", "bad", message, (), _lower_rate_advice())


def _lower_rate_advice() -> str:
    return pick(
        "Train into a new folder with a lower train.learning_rate (a third), a longer train.warmup,"
        ' train.clip_norm = 1.0 or model.norm_placement = "pre".',
        "请换一个目录重新训练：降低 train.learning_rate（约三分之一）、加长 train.warmup、设 train.clip_norm = 1.0，"
        '或使用 model.norm_placement = "pre"。',
    )


def check_divergence(log: RunLog) -> Finding:
    """Check for a loss that rises and stays high, which a too high learning rate causes."""
    found = [_divergence(means) for means in map(_means, log.comparable_losses()) if means]
    if not found:
        return Finding("divergence", "good", pick("not checked: too few steps.", "步数太少，无法判断。"))
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
            pick(
                f"the loss fell to {means[lowest_step]:.2f} at step {lowest_step:,} and has risen to"
                f" {means[last_step]:.2f} at step {last_step:,}.",
                f"损失在第 {lowest_step:,} 步降到 {means[lowest_step]:.2f}，"
                f"到第 {last_step:,} 步又升到 {means[last_step]:.2f}。",
            ),
            (),
            _lower_rate_advice(),
        )
    spikes = _spikes(means)
    if spikes:
        return Finding(
            check,
            "warning",
            pick(
                f"the loss jumped by more than {_SPIKE:.0f} {len(spikes)} times, first before step {spikes[0]:,}, and"
                " recovered each time.",
                f"损失有 {len(spikes)} 次突升超过 {_SPIKE:.0f}，首次在第 {spikes[0]:,} 步之前，之后都恢复了。",
            ),
            (),
            pick(
                "For a steadier run, lower train.learning_rate or set train.clip_norm = 1.0.",
                "想更平稳，可降低 train.learning_rate 或设 train.clip_norm = 1.0。",
            ),
        )
    message = pick(
        f"the loss went from {first:.2f} to {means[last_step]:.2f} without diverging.",
        f"损失从 {first:.2f} 降到 {means[last_step]:.2f}，没有发散。",
    )
    return Finding(check, "good", message)


def check_progress(log: RunLog) -> Finding:
    """Check for a loss that hardly falls."""
    check = "progress"
    means = _means(log.losses)
    if log.step < _EARLY_STEPS or not means:
        return Finding(
            check, "good", pick(f"not checked: {log.step:,} steps are too few.", f"只有 {log.step:,} 步，无法判断。")
        )
    first, last = log.losses[min(log.losses)], means[max(means)]
    best = log.format_score(max(log.scores.values())) if log.scores else ""
    message = pick(
        f"the loss went from {first:.2f} to {last:.2f}" + (f", the best score is {best}." if best else "."),
        f"损失从 {first:.2f} 变为 {last:.2f}" + (f"，最好的分数是 {best}。" if best else "。"),
    )
    if last > 0.9 * first:
        return Finding(
            check,
            "bad",
            message,
            (),
            pick(
                "The model does not learn: run doctor on the recipe (overfit one batch, languages, alignment); raise"
                " train.learning_rate if it is below 1e-4.",
                "模型没有学到东西：请对配方运行 doctor；若 train.learning_rate 低于 1e-4，请调高。",
            ),
        )
    return Finding(check, "good", message)


def check_overfitting(log: RunLog) -> Finding:
    """Check for validation scores that fall while the training loss goes on falling."""
    check = "over-fitting"
    steps = sorted(log.scores)
    if len(steps) <= _PATIENCE:
        message = pick(f"not checked: {len(steps)} validations are too few.", f"只有 {len(steps)} 次验证，无法判断。")
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
            pick(
                f"since step {best:,} the score has fallen from {score} to {log.format_score(log.scores[steps[-1]])},"
                f" while the training loss fell from {_nearest(means, best):.2f} to {_nearest(means, steps[-1]):.2f}.",
                f"自第 {best:,} 步起，分数从 {score} 降到 {log.format_score(log.scores[steps[-1]])}，"
                f"而训练损失从 {_nearest(means, best):.2f} 降到 {_nearest(means, steps[-1]):.2f}。",
            ),
            (),
            _overfitting_advice(log, best),
        )
    message = pick(
        f"the best score, {score}, is that of step {best:,} of {steps[-1]:,}.",
        f"最好的分数 {score} 出现在第 {best:,} 步（共 {steps[-1]:,} 步）。",
    )
    return Finding(check, "good", message)


def _overfitting_advice(log: RunLog, best: int) -> str:
    has_r_drop = not math.isinf(log.consistency_after)
    return pick(
        "The model overfits: raise model.dropout, "
        + ("" if has_r_drop else "set task.consistency = 5.0 (R-Drop), ")
        + "set tokenizer.sampling = 0.1, average more snapshots (train.average_snapshots), or train only"
        f" {best:,} steps; more data helps most.",
        "模型过拟合：请增大 model.dropout、"
        + ("" if has_r_drop else "设 task.consistency = 5.0（R-Drop）、")
        + f"设 tokenizer.sampling = 0.1、平均更多快照（train.average_snapshots），"
        f"或只训练 {best:,} 步；增加数据最有效。",
    )


def check_samples(log: RunLog) -> Finding:
    """Check the samples of the last validations for output collapse."""
    steps = sorted(log.samples)[-6:]
    samples = [log.samples[step] for step in steps]
    if log.step < _EARLY_STEPS or len(samples) < _PATIENCE:
        return Finding("samples", "good", pick("not checked: too early.", "为时尚早，无法判断。"))
    part = TASKS[DEFAULT_KIND].doctor if log.recipe is None else log.recipe.task_class.doctor
    return part.check_outputs("samples", samples)


def check_running(log: RunLog, now: float | None = None) -> Finding:
    """Check for a run that ended unexpectedly, or that is stuck."""
    check = "running"
    if log.last_event in ("Finished", "Interrupted"):
        message = pick(f"the run ended normally, at step {log.step:,}.", f"训练在第 {log.step:,} 步正常结束。")
        return Finding(check, "good", message)
    silent = (time.time() if now is None else now) - log.last_time
    pace = median(log.seconds.values()) if log.seconds else 1.0
    if RunFolder(log.folder).is_running:
        if silent <= max(_STUCK_SECONDS, 50 * pace):
            message = pick(f"the run is at step {log.step:,}.", f"正在训练，当前第 {log.step:,} 步。")
            return Finding(check, "good", message)
        return Finding(
            check,
            "warning",
            pick(
                f"stuck at step {log.step:,}: nothing was logged for {silent / 60:.0f} minutes.",
                f"停在第 {log.step:,} 步：已有 {silent / 60:.0f} 分钟没有日志。",
            ),
            (),
            pick(
                "Stop it with Ctrl-C and run the same command again: it resumes from the last checkpoint.",
                "请用 Ctrl-C 中断后重新运行同一命令，会从最近的检查点继续。",
            ),
        )
    return Finding(
        check,
        "warning",
        pick(
            f"the run is not running, and its log ends at step {log.step:,} without an end.",
            f"训练没有在运行，日志在第 {log.step:,} 步中断。",
        ),
        (),
        pick(
            "If it was killed, run the same command again: it resumes from the last checkpoint. If it reported a loss"
            " that is not finite: ",
            "若是被终止的，请重新运行同一命令，会从最近的检查点继续。若曾提示损失不是有限值：",
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
            pick(
                f"{share(len(faults), len(folders))} checkpoints and snapshots are damaged.",
                f"{share(len(faults), len(folders))} 个检查点和快照已损坏。",
            ),
            tuple(faults[:MAX_EXAMPLES]),
            pick(
                "Delete the damaged folders and run the same command again: it resumes from the newest intact one."
                " Check the disk.",
                "请删除损坏的文件夹并重新运行同一命令，会从最近的完好检查点继续。同时请检查磁盘。",
            ),
        )
    message = pick(
        f"{len(folders)} checkpoints and snapshots, all intact.", f"{len(folders)} 个检查点和快照，全部完好。"
    )
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
