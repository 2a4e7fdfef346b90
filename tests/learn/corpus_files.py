"""A corpus of right and wrong solutions, written without looking at the code of the references.

A block begins with `=== EXERCISE | NOTE` and holds a right solution. Each line `--- VARIANTS: OLD => NEW ;; OLD => NEW`
below it makes a wrong one of it; VARIANTS are the names of the mistakes, or "?" for one that the bank does not have.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manyheads.learn.child_process import run_here
from manyheads.learn.examiner import Verdict, examine
from manyheads.learn.exercise import all_exercises
from manyheads.learn.submission import Submission, make_submission

FOLDER = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Solution:
    """A solution: right if `mistakes` is empty."""

    exercise: str
    note: str
    source: str
    mistakes: tuple[str, ...]

    @property
    def submission(self) -> Submission:
        return make_submission(Path(f"{self.exercise}.py"), self.source, all_exercises(), name=self.exercise)

    def examine(self) -> Verdict:
        return examine(self.submission, run=run_here)


def read_corpus() -> Iterator[Solution]:
    for path in sorted(FOLDER.glob("*.txt")):
        for block in path.read_text("utf-8").split("\n=== "):
            yield from _read_block(block.removeprefix("=== "))


def _read_block(block: str) -> Iterator[Solution]:
    head, _newline, body = block.partition("\n")
    exercise, note = (part.strip() for part in head.split("|", 1))
    lines = body.splitlines()
    source = "\n".join(line for line in lines if not line.startswith("--- ")) + "\n"
    yield Solution(exercise, note, source, ())
    for line in lines:
        if line.startswith("--- "):
            names, _colon, edits = line.removeprefix("--- ").partition(": ")
            yield Solution(exercise, f"{note}: {line}", _edited(source, edits, line), tuple(sorted(names.split(","))))


def _edited(source: str, edits: str, line: str) -> str:
    """The source with edits in every line but the signatures."""
    for edit in edits.split(" ;; "):
        old, _arrow, new = edit.partition(" =>")
        lines = [
            text if text.startswith("def ") else text.replace(old, new.removeprefix(" ")) for text in source.split("\n")
        ]
        if "\n".join(lines) == source:
            raise ValueError(f"{old!r} is not in the solution: {line}")
        source = "\n".join(lines)
    return source
