"""When does each role appear? The heads of every snapshot that a run kept, judged on one small sample.

With `train.head_timeline = true` a run keeps all its snapshots. Nothing of the lens happens while it trains; this
reads the snapshots afterwards, and writes heads.jsonl beside them: a line a snapshot.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from manyheads.bundle import load
from manyheads.errors import LensError
from manyheads.lens.examples import Example, sample_of
from manyheads.lens.places import read_all
from manyheads.lens.roles import SEEDS, HeadReport, judge, random_twin
from manyheads.lens.watching import watch
from manyheads.model.weights import load_weights
from manyheads.storage import write_whole
from manyheads.train import Checkpoints

SAMPLE = 60  # texts
_FILE = "heads.jsonl"
_KEPT = ("confidence", "entropy", "distance", "near", "weight-1", "weight+1", "begin", "end", "induction")


@dataclass(frozen=True)
class Moment:
    """What every head did at one step: its role, and the figures that are worth following."""

    step: int
    n_texts: int
    roles: Mapping[str, str]
    figures: Mapping[str, Mapping[str, float]]  # by head, by figure


def follow(run: Path, examples: Sequence[Example] | None = None, count: int = SAMPLE) -> Iterator[Moment]:
    """One moment for each snapshot of a finished run, in the order of steps; heads.jsonl holds them all at the end."""
    if not (run / "bundle").is_dir():
        raise LensError(f"{run} is not the folder of a finished run: it has no bundle. Train it to the end first.")
    bundle = load(run / "bundle")
    checkpoints = Checkpoints(run, 1)
    steps = checkpoints.snapshot_steps()
    if len(steps) < 2:
        raise LensError(
            f"{run} has {len(steps)} snapshots, too few for a timeline. Train with train.head_timeline = true, which "
            "keeps them all."
        )
    scenes = read_all(bundle.task, sample_of(bundle, count) if examples is None else examples)
    controls = [watch(random_twin(bundle.task.model.settings, seed), scenes.kept) for seed in SEEDS]
    lines = []
    for step in steps:
        load_weights(bundle.task.module, checkpoints.snapshot(step), f"the snapshot of step {step}")
        moment = _moment(step, judge(watch(bundle.task.model, scenes.kept), controls))
        lines.append(json.dumps(asdict(moment), ensure_ascii=False))
        yield moment
    write_whole(run / _FILE, ("\n".join(lines) + "\n").encode())


def _moment(step: int, report: HeadReport) -> Moment:
    figures = {}
    for card in report.cards:
        wanted = {*_KEPT, *(role.figure for role in card.roles)}
        wanted |= {name for name in card.figures if name.startswith("align") or name[-1] in "<>"}
        figures[card.head] = {name: round(one.value, 4) for name, one in card.figures.items() if name in wanted}
    return Moment(step, report.n_texts, {card.head: card.role for card in report.cards}, figures)
