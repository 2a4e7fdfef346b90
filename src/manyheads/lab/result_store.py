"""Results of an experiment: one row per trial, stored as it finishes, so that a sweep that is killed can resume.

A run has a folder with rows.jsonl, one line per trial, and results.json when all trials are done. Results of every
question at default size are shipped in results/.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from manyheads.bounded_files import read_json_object
from manyheads.cores import count_cores
from manyheads.errors import LabError
from manyheads.lab.question import Edge, Question, edge_of
from manyheads.messages import _
from manyheads.storage import atomic_write, naming_full_disk

FORMAT = 1
ROWS, RESULTS = "rows.jsonl", "results.json"
_DIGITS = 10  # of stored numbers
_NEWER = ("start", "convergence")  # fields of Setup that older digests lack: they count only if they are set


@dataclass(frozen=True)
class Row:
    """The outcome of one trial."""

    arm: str
    condition: str
    seed: int
    learning_rate: float | None
    is_tuning: bool
    measures: Mapping[str, float]
    problem: str = ""  # "diverged": the weights before that step are measured; "nan": some measures are missing

    @property
    def key(self) -> tuple[str, str, int, float | None, bool]:
        """What distinguishes this trial from the others."""
        return (self.arm, self.condition, self.seed, self.learning_rate, self.is_tuning)


@dataclass(frozen=True)
class Results:
    """All rows of an experiment, with what made them."""

    question: str
    size: str  # "default", "full", or the name of a recipe
    definition: str  # digest of the question's definition
    stamp: Mapping[str, Any]  # date, machine, versions, seconds
    rows: tuple[Row, ...]
    impossible: Mapping[str, str]  # arms that could not run, with the reason

    def chosen_rate(self, arm: str, condition: str) -> float | None:
        """The tuned learning rate of a cell."""
        return next((row.learning_rate for row in self.measured(arm, condition)), None)

    def measured(self, arm: str, condition: str) -> list[Row]:
        """The rows of a cell, without those of tuning, by seed."""
        rows = [row for row in self.rows if (row.arm, row.condition, row.is_tuning) == (arm, condition, False)]
        return sorted(rows, key=lambda row: row.seed)

    def values(self, arm: str, condition: str, measure: str) -> dict[int, float]:
        """A measure of a cell by seed; empty if the arm could not run."""
        rows = self.measured(arm, condition)
        return {row.seed: row.measures[measure] for row in rows if measure in row.measures}

    def tried_rates(self, arm: str, condition: str) -> list[float]:
        """The learning rates that the tuning of a cell has tried."""
        rows = [row for row in self.rows if (row.arm, row.condition, row.is_tuning) == (arm, condition, True)]
        return sorted({row.learning_rate for row in rows if row.learning_rate is not None})

    def edge(self, arm: str, condition: str) -> Edge:
        """An arrow if the chosen rate of a cell is the highest or the lowest one tried."""
        rates, chosen = self.tried_rates(arm, condition), self.chosen_rate(arm, condition)
        return edge_of(rates, chosen) if rates and chosen is not None else ""

    def problems(self, arm: str, condition: str) -> list[Row]:
        """The rows of a cell whose run failed, without those of tuning."""
        return [row for row in self.measured(arm, condition) if row.problem]

    def to_json(self) -> bytes:
        """The content of results.json: one line for each row, so that a change of results is readable as a diff."""
        table = {"format": FORMAT, **asdict(self)}
        rows = ",\n".join(json.dumps(_without_empty(row), ensure_ascii=False) for row in table.pop("rows"))
        head = json.dumps(table, ensure_ascii=False, indent=1).removesuffix("\n}")
        return f'{head},\n "rows": [\n{rows}\n]}}\n'.encode()


def _without_empty(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is stored: most have no problem."""
    return {key: value for key, value in row.items() if key != "problem" or value}


class ResultFolder:
    """The folder of one experiment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_rows(self, definition: str) -> dict[tuple[Any, ...], Row]:
        """The rows of an earlier, interrupted sweep; a last line that was cut off is ignored."""
        path = self.path / ROWS
        if not path.exists():
            return {}
        rows = {}
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                table = json.loads(line)
                if table.pop("definition") != definition:
                    raise LabError(
                        _(
                            "{path} belongs to another version of this experiment, or to another size. Choose another "
                            "folder with -o, or start over with --fresh.",
                            path=path,
                        )
                    )
                row = Row(**table)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise LabError(
                    _(
                        "{path}, line {number}: not the record of a trial. The file is damaged: delete it, or start "
                        "over with --fresh.",
                        path=path,
                        number=number,
                    )
                ) from None
            rows[row.key] = row
        return rows

    def append(self, row: Row, definition: str) -> None:
        """Store a finished trial."""
        path = self.path / ROWS
        with naming_full_disk(path):
            _cut_partial_line(path)
            with path.open("ab") as file:
                file.write(json.dumps({"definition": definition, **_without_empty(asdict(row))}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def earlier_stamp(self, definition: str) -> Mapping[str, Any]:
        """The stamp of the results that an earlier part of this sweep wrote, because its time was up."""
        path = self.path / RESULTS
        earlier = read_results(path) if path.exists() else None
        return earlier.stamp if earlier is not None and earlier.definition == definition else {}

    def write_results(self, results: Results) -> Path:
        """Write results.json."""
        path = self.path / RESULTS
        atomic_write(path, results.to_json())
        return path

    def clear(self) -> None:
        """Delete the rows and the results."""
        for name in (ROWS, RESULTS):
            (self.path / name).unlink(missing_ok=True)


def _cut_partial_line(path: Path) -> None:
    """Remove a last line without its end, which a killed process left."""
    if not path.exists():
        return
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)


def read_results(path: Path) -> Results:
    """Read results.json."""
    table = read_json_object(path, LabError)
    try:
        if table.pop("format") != FORMAT:
            raise LabError(_("{path} has another format than this version of manyheads reads.", path=path))
        rows = tuple(Row(**row) for row in table.pop("rows"))
        if not all(isinstance(value, int | float) for row in rows for value in row.measures.values()):
            raise TypeError
        return Results(rows=rows, **table)
    except (KeyError, TypeError, AttributeError):
        raise LabError(
            _("{path} is damaged: it lacks a field, or has one too many. Run the experiment again.", path=path)
        ) from None


def shipped_results(question: str) -> Results | None:
    """The results of a question at default size that come with manyheads."""
    path = files(__package__).joinpath("results", f"{question}.json")
    return read_results(Path(str(path))) if path.is_file() else None


def definition_digest(question: Question, size: str, data: str = "") -> str:
    """A digest of all that determines the numbers of an experiment; texts do not count. `data` identifies a recipe."""
    described = {
        "question": question.id,
        "size": size,
        "arms": {arm.name: _described(arm.changes) for arm in question.arms},
        "conditions": {condition.name: _described(condition.changes) for condition in question.conditions},
        "measures": [measure.name for measure in question.measures],
        "setup": _described(question.setup),
        "full": _described(question.full) if size != "default" else None,
        "tuning": [question.tuned_on, question.learning_rates, question.n_tuning_seeds],
        "seeds": None if question.converges else question.n_seeds,  # seeds can be added to a newer experiment
        "skipped": question.skipped,
    }
    if data:
        described["data"] = data
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def _described(value: Any) -> Any:
    """A value as JSON: a function by its name, a task by its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {
            field.name: _described(getattr(value, field.name))
            for field in fields(value)
            if field.name not in _NEWER or getattr(value, field.name) is not None
        }
        return {"type": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if callable(value):
        inner = getattr(value, "func", None)  # of functools.partial
        return (
            value.__qualname__
            if inner is None
            else [inner.__qualname__, _described(value.args), _described(value.keywords)]
        )
    return value


def make_stamp(seconds: float, n_processes: int) -> dict[str, Any]:
    """The date, the machine and the versions of an experiment."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {count_cores()} cores",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seconds": round(seconds),
        "processes": n_processes,
    }


def rounded(measures: Mapping[str, float]) -> dict[str, float]:
    """Numbers as they are stored; JSON has no infinity, so that a value which is not finite is left out."""
    return {name: float(f"{value:.{_DIGITS}g}") for name, value in measures.items() if math.isfinite(value)}


def sort_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows in an order that does not depend on which trial finished first."""
    return tuple(
        sorted(rows, key=lambda row: (row.condition, row.arm, row.is_tuning, row.learning_rate or 0.0, row.seed))
    )
