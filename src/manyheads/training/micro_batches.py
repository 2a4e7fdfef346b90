"""Micro-batches: the parts into which the batches of an update are divided, for one process or for several.

Everything random in a micro-batch is seeded by (seed, step, number of the micro-batch). What an update computes
therefore does not depend on which process computes which part; only the order in which gradients are added does.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from manyheads.errors import RecipeError
from manyheads.messages import _, _n
from manyheads.training.settings import TrainSettings

_FEWEST_PARTS = 4  # of an update that several processes share, so that 1, 2 and 4 processes can resume it


@runtime_checkable
class SplitsPlans(Protocol):
    """A training task whose plans are more than sequences of rows."""

    def split(self, plan: Any, n_parts: int) -> Sequence[Any]:
        """Divide the plan of a batch into this many plans; some are empty if there are too few rows."""


def split_plan(training_task: object, plan: Any, n_parts: int) -> list[Any | None]:
    """Divide the plan of a batch into parts of about as many rows; None for a part without rows."""
    if n_parts == 1:
        return [plan]
    if isinstance(training_task, SplitsPlans):
        parts = training_task.split(plan, n_parts)
    else:
        parts = [plan[start:end] for start, end in part_bounds(len(plan), n_parts)]
    return [part if len(part) else None for part in parts]


def part_bounds(n_rows: int, n_parts: int) -> list[tuple[int, int]]:
    """Return the first row of each part and the one after its last; the sizes of parts differ by at most 1."""
    bounds = [n_rows * number // n_parts for number in range(n_parts + 1)]
    return list(itertools.pairwise(bounds))


def choose_micro_batches(settings: TrainSettings, n_processes: int) -> int | None:
    """Return `micro_batches` for a new run: as set, or the fewest parts that these processes, 1, 2 and 4 can share."""
    if settings.micro_batches is not None or n_processes == 1:
        return settings.micro_batches
    n_parts = math.lcm(n_processes, _FEWEST_PARTS)
    return n_parts // math.gcd(n_parts, settings.accumulation_steps)


def check_divisible(settings: TrainSettings, n_processes: int, *, is_started: bool) -> None:
    """Raise a RecipeError unless the processes can share the micro-batches of an update equally."""
    per_batch = settings.micro_batches or 1
    n_parts = settings.accumulation_steps * per_batch
    if n_parts % n_processes == 0:
        return
    parts = [f"train.micro_batches = {per_batch}"]
    if settings.accumulation_steps > 1:
        parts.append(f"train.accumulation_steps = {settings.accumulation_steps}")
    given = _(
        "{n_processes} processes cannot share the {n_parts} micro-batches of an update equally ({parts}).",
        n_processes=n_processes,
        n_parts=n_parts,
        parts=_(" and ").join(parts),
    )
    if n_parts == 1:
        given = _("{n_processes} processes cannot share an update of 1 micro-batch.", n_processes=n_processes)
    if is_started:
        usable = [number for number in range(1, n_parts + 1) if n_parts % number == 0]
        resume = _n(
            "This run was started with them: resume it with 1 process, or train into another folder with -o.",
            "This run was started with them: resume it with {counts} processes, or train into another folder with -o.",
            usable[-1],
            counts=_(" or ").join(map(str, usable[-4:])),
        )
        raise RecipeError(f"{given} {resume}")
    wanted = math.lcm(n_parts, n_processes) // settings.accumulation_steps
    raise RecipeError(_("{given} Use train.micro_batches = {wanted}, or leave it out.", given=given, wanted=wanted))
