"""Files with one planted fault: the learner finds it, and fixes it or names it.

The cases are in `debug_cases.toml`. The seed chooses the fault, and is in the file's second line.
"""

import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manyheads.errors import LearnError
from manyheads.learn.exercise import Exercise, all_exercises
from manyheads.messages import _
from manyheads.settings import build, did_you_mean, read_toml

MARK = re.compile(r"^#\s*manyheads learn debug:\s*(\d+)\s+seed\s+(\d+)\s*$", re.MULTILINE)
MAX_SEED = 10**6


@dataclass(frozen=True)
class PlantedFault:
    """A change that makes a right solution wrong, and the variant that it equals."""

    variant: str
    old: str
    new: str


@dataclass(frozen=True)
class DebugCase:
    """A right solution and the faults to plant into it."""

    exercise: str
    source: str
    faults: tuple[PlantedFault, ...]

    def planted(self, seed: int) -> tuple[str, PlantedFault]:
        """The source with the fault of a seed."""
        fault = self.faults[random.Random(seed).randrange(len(self.faults))]
        return self.source.strip("\n").replace(fault.old, fault.new) + "\n", fault


@dataclass(frozen=True)
class _CaseFile:
    cases: tuple[DebugCase, ...]


@cache
def debug_cases() -> tuple[DebugCase, ...]:
    """All cases, in order."""
    return build(_CaseFile, read_toml(Path(__file__).with_name("debug_cases.toml"))).cases


def find_case(number: int) -> tuple[DebugCase, Exercise]:
    """The case with this number, from 1, and its exercise."""
    cases = debug_cases()
    if not 1 <= number <= len(cases):
        raise LearnError(_("There is no case {number}: they are 1 to {last}.", number=number, last=len(cases)))
    case = cases[number - 1]
    return case, all_exercises()[case.exercise]


def make_debug_file(number: int, seed: int) -> str:
    """The file of a case: what to do, and code with one fault."""
    case, exercise = find_case(number)
    source, _fault = case.planted(seed)
    statement = "\n".join(f"# {line}".rstrip() for line in str(exercise.statement).splitlines())
    task = _("One thing in this file is wrong. Find it and fix it, or name it.")
    return (
        f"# manyheads learn: {exercise.name}\n# manyheads learn debug: {number} seed {seed}\n#\n# {task}\n#\n"
        f"# {exercise.title}\n{statement}\n{source}"
    )


def grade_name(path: Path, name: str) -> tuple[bool, Exercise, PlantedFault]:
    """Whether a name is that of the fault in a file, with the exercise and the fault."""
    try:
        found = MARK.search(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        found = None
    if found is None:
        raise LearnError(_("{path} is no file of learn debug. Write one first.", path=path))
    case, exercise = find_case(int(found[1]))
    if name not in exercise.variants:
        hint = did_you_mean(name, exercise.variants)
        raise LearnError(
            _("{name!r} is no mistake of {exercise}. {hint}", name=name, exercise=exercise.name, hint=hint)
        )
    _source, fault = case.planted(int(found[2]))
    return name == fault.variant, exercise, fault
