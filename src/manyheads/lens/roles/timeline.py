"""When each role appears in training: the roles of every head at each snapshot of a run.

A run with `train.keep_all_snapshots = true` keeps all its snapshots. Training itself does no extra work: the snapshots
are read afterwards, and heads.jsonl is written beside them with one line per snapshot.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from manyheads.bundle import load
from manyheads.errors import LensError
from manyheads.lens.roles.head_counts import collect_counts
from manyheads.lens.roles.role_assignment import SEEDS, HeadReport, assign_roles, random_control
from manyheads.lens.traces.encoded_examples import encode_examples
from manyheads.lens.traces.examples import sample_examples
from manyheads.messages import _
from manyheads.model.weights import load_weights
from manyheads.run import RunFolder
from manyheads.storage import atomic_write
from manyheads.tasks.lens_examples import Example
from manyheads.training import Checkpoints

SAMPLE = 60  # texts
_STATISTICS = ("confidence", "entropy", "distance", "near", "weight-1", "weight+1", "bos", "eos", "induction")


@dataclass(frozen=True)
class TimelineEntry:
    """The role and the main statistics of every head at one step."""

    step: int
    n_texts: int
    roles: Mapping[str, str]
    statistics: Mapping[str, Mapping[str, float]]  # by head, by statistic


def iterate_timeline(
    run: Path, examples: Sequence[Example] | None = None, count: int = SAMPLE
) -> Iterator[TimelineEntry]:
    """Yield one entry per snapshot of a finished run, in the order of steps; write heads.jsonl at the end."""
    folder = RunFolder(run)
    folder.check_format()
    if not folder.bundle.is_dir():
        raise LensError(
            _("{run} is not the folder of a finished run: it has no bundle. Train it to the end first.", run=run)
        )
    bundle = load(folder.bundle)
    checkpoints = Checkpoints(run, 1)
    steps = checkpoints.snapshot_steps()
    if len(steps) < 2:
        raise LensError(
            _(
                "{run} has {n_steps} snapshots; a timeline needs at least 2. Train with train.keep_all_snapshots = "
                "true, which keeps them all.",
                run=run,
                n_steps=len(steps),
            )
        )
    encoded_sample = encode_examples(bundle.task, sample_examples(bundle, count) if examples is None else examples)
    controls = [
        collect_counts(random_control(bundle.task.model.settings, seed), encoded_sample.examples) for seed in SEEDS
    ]
    lines = []
    for step in steps:
        load_weights(bundle.task.module, checkpoints.snapshot(step), f"the snapshot of step {step}")
        entry = _entry(step, assign_roles(collect_counts(bundle.task.model, encoded_sample.examples), controls))
        lines.append(json.dumps(asdict(entry), ensure_ascii=False))
        yield entry
    atomic_write(folder.timeline_file, ("\n".join(lines) + "\n").encode())


def _entry(step: int, report: HeadReport) -> TimelineEntry:
    statistics = {}
    for card in report.cards:
        names = {*_STATISTICS, *(role.statistic for role in card.roles)}
        names |= {name for name in card.statistics if name.startswith("align") or name[-1] in "<>"}
        statistics[card.head] = {
            name: round(statistic.value, 4) for name, statistic in card.statistics.items() if name in names
        }
    return TimelineEntry(step, report.n_texts, {card.head: card.role for card in report.cards}, statistics)
