"""Key comparisons again with fresh seeds: whether a headline stands up to a second look.

`make lab-check ARGS=--fresh` runs them; results/fresh/ has the outcomes that the documentation quotes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from manyheads.lab.effects import Effect
from manyheads.lab.figures import format_value
from manyheads.lab.lab_answers import Answered
from manyheads.lab.question import Measure
from manyheads.lab.result_store import ResultFolder, Results, Row, read_results, sort_rows
from manyheads.lab.sweep import RunTrial, record, run_trial
from manyheads.messages import Message, _

_FRESH_SEED = 100  # fresh seeds are above this: neither those of the results nor those of tuning


@dataclass(frozen=True)
class Repeated:
    """A key comparison, as it is stored and with fresh seeds."""

    what: Message
    stored: str
    fresh: str
    difference: str  # of the means, or their ratio
    is_same: bool | None  # whether the verdicts agree; None: not measured


def replicate(
    answered: Answered, folder: Path, n_seeds: int, *, end: float | None = None, run: RunTrial = run_trial
) -> tuple[Row, ...]:
    """Run every cell of a key comparison at its stored learning rate; trials in the folder are not run again.

    No trial is started after the monotonic time `end`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results, store = answered.results, ResultFolder(folder)
    rows = store.read_rows(results.definition)
    for seed in range(_FRESH_SEED + 1, _FRESH_SEED + 1 + n_seeds):
        for arm, condition in _key_cells(answered):
            rate = results.chosen_rate(arm, condition)
            key = (arm, condition, seed, rate, False)
            if key in rows or (end is not None and time.monotonic() > end):
                continue
            rows[key] = record(key, run(answered.question.id, arm, condition, seed, rate, results.size == "full"))
            store.append(rows[key], results.definition)
    return sort_rows(rows.values())


def compare_fresh(answered: Answered, fresh: Results) -> Iterator[Repeated]:
    """Every key comparison with its stored and its fresh effect."""
    again = Answered(answered.question, fresh).effects
    for effect in answered.effects:
        if not effect.comparison.is_key:
            continue
        repeated = next((one for one in again if one.comparison == effect.comparison), None)
        measure = answered.question.measure(effect.comparison.measure)
        yield Repeated(
            answered.describe(effect.comparison),
            answered.difference(effect),
            _("not measured") if repeated is None else answered.difference(repeated),
            "–" if repeated is None else _gap(effect, repeated, measure),
            None if repeated is None else effect.verdict == repeated.verdict,
        )


def shipped_replication(question: str) -> Results | None:
    """The fresh results that come with manyheads."""
    path = files(__package__).joinpath("results", "fresh", f"{question}.json")
    return read_results(Path(str(path))) if path.is_file() else None


def _key_cells(answered: Answered) -> list[tuple[str, str]]:
    cells = {}
    for one in answered.question.comparisons:
        if one.is_key:
            cells[one.arm, one.condition] = cells[one.against, one.against_condition or one.condition] = True
    return list(cells)


def _gap(stored: Effect, fresh: Effect, measure: Measure) -> str:
    if stored.is_ratio:
        return f"× {fresh.mean / stored.mean:.3g}"
    return format_value(fresh.mean - stored.mean, measure, is_signed=True)
