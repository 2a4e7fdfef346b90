"""`%load_ext manyheads.learn`: check a cell of a notebook with `%%learn NAME [HINT]` in its first line."""

from pathlib import Path
from typing import Any, Protocol

from manyheads.errors import LearnError
from manyheads.learn.examiner import Run, examine
from manyheads.learn.exercise import all_exercises
from manyheads.learn.learner_progress import record
from manyheads.learn.submission import make_submission
from manyheads.learn.verdict_text import N_HINTS, show_verdict
from manyheads.messages import _


class Shell(Protocol):
    """What is used of IPython's shell."""

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        """Register a magic."""

    def run_cell(self, code: str) -> Any:
        """Run code in the notebook's own process."""


class CheckedCell:
    """The examiner's answer, which a notebook shows below the cell."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def check_cell(line: str, cell: str, *, run: Run | None = None) -> CheckedCell:
    """Check the code of a cell; `line` is what follows the magic: an exercise, and perhaps a level of hints."""
    name, _space, hint = line.strip().partition(" ")
    try:
        if hint.strip() not in ("", *map(str, range(1, N_HINTS + 1))):
            raise LearnError(_("The hint is {hint!r}; expected 1, 2 or 3.", hint=hint.strip()))
        submission = make_submission(Path(_("cell")), cell, all_exercises(), name=name or None)
        verdict = examine(submission, run=run)
        record(submission.exercise, is_check=True, is_solved=verdict.outcome == "solved")
    except LearnError as error:
        return CheckedCell([str(error)])
    return CheckedCell(show_verdict(verdict, submission, hints=int(hint or 0)))


def register(shell: Shell) -> None:
    """Register the magic: a cell is checked in a child process, and then run in the notebook."""

    def learn(line: str, cell: str) -> CheckedCell:
        """Check this cell as a solution of an exercise."""
        checked = check_cell(line, cell)
        shell.run_cell(cell)
        return checked

    shell.register_magic_function(learn, "cell", "learn")
