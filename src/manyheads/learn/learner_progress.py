"""What a learner has solved: a small file in the user's data folder, and nowhere else."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from platformdirs import user_data_path

from manyheads.bounded_files import read_json_object
from manyheads.errors import LearnError
from manyheads.storage import atomic_write

VARIABLE = "MANYHEADS_LEARN"  # the file, if it is not in the user's data folder


@dataclass(frozen=True)
class Attempts:
    """How often an exercise was checked, and when it was solved first."""

    n_checks: int = 0
    started: str = ""
    solved: str = ""


def progress_path() -> Path:
    """The file."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else user_data_path("manyheads") / "learn.json"


def read_progress() -> dict[str, Attempts]:
    """The attempts by exercise; a file that is missing is empty, one that is damaged an error."""
    path = progress_path()
    if not path.exists():
        return {}
    table = read_json_object(path, LearnError)
    return {name: _attempts(row) for name, row in table.items() if isinstance(row, dict)}


def _attempts(row: dict[str, object]) -> Attempts:
    n_checks = row.get("n_checks")
    return Attempts(
        n_checks if isinstance(n_checks, int) else 0, str(row.get("started", "")), str(row.get("solved", ""))
    )


def record(name: str, *, is_check: bool, is_solved: bool = False) -> None:
    """Add a check or a start of an exercise."""
    progress = read_progress()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    before = progress.get(name, Attempts())
    progress[name] = Attempts(
        n_checks=before.n_checks + is_check,
        started=before.started or now,
        solved=before.solved or (now if is_solved else ""),
    )
    path = progress_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {key: asdict(value) for key, value in progress.items()}
    atomic_write(path, json.dumps(table, indent=1).encode())
