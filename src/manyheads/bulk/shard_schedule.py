"""Runs the shards of a job on workers, and decides what happens when one of them dies.

A shard whose worker dies is tried again, once. If that worker dies as well, the shard is left out, and the job fails
after the others are done.
"""

import os
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias

from manyheads.bulk.line_shards import Segment, Shard
from manyheads.bulk.shard_folder import ShardFolder
from manyheads.errors import JobError, ManyheadsError
from manyheads.messages import _

MAX_ATTEMPTS = 2
_N_LISTED = 10  # failed shards in a message

# Writes the answers of a shard to a stream, and returns remarks on them as JSON values.
AnswerShard: TypeAlias = Callable[[Shard, TextIO], dict[str, Any]]
# Opens what answers shards in a worker process. A function of a module, since other processes import it.
OpenAnswers: TypeAlias = Callable[[dict[str, Any]], AnswerShard]


@dataclass(frozen=True)
class WorkerTask:
    """What workers do: all values are JSON values or functions of modules, so that they can be sent."""

    open_answers: OpenAnswers
    spec: dict[str, Any] = field(hash=False)  # the argument of `open_answers`
    folder: str  # of the shards
    n_shards: int
    suffix: str


@dataclass(frozen=True)
class Outcome:
    """How an attempt at a shard ended."""

    shard: Shard
    death: str = ""  # why the worker ended, if it died
    error: Exception | None = None  # that ends the whole job


class Workers(Protocol):
    """What answers shards: processes of this machine, or a cluster."""

    n_slots: int  # how many shards are to be submitted at a time

    def submit(self, shard: Shard) -> None:
        """Begin with a shard."""

    def wait(self) -> Sequence[Outcome]:
        """Wait until attempts have ended, and return how."""

    def close(self) -> None:
        """End all workers."""


def run_shards(workers: Workers, shards: Iterable[Shard], on_finished: Callable[[Shard], None]) -> None:
    """Have all shards answered; raise JobError at the end if some cannot be."""
    waiting = deque(shards)
    deaths: Counter[int] = Counter()
    failed: list[Outcome] = []
    n_running = 0
    while waiting or n_running:
        while waiting and n_running < workers.n_slots:
            workers.submit(waiting.popleft())
            n_running += 1
        for outcome in workers.wait():
            n_running -= 1
            if outcome.error is not None:
                raise outcome.error
            if not outcome.death:
                on_finished(outcome.shard)
                continue
            deaths[outcome.shard.number] += 1
            if deaths[outcome.shard.number] < MAX_ATTEMPTS:
                waiting.append(outcome.shard)
            else:
                failed.append(outcome)
    if failed:
        raise JobError(_describe(failed))


def _describe(failed: Sequence[Outcome]) -> str:
    numbers = sorted(outcome.shard.number for outcome in failed)
    first = min(failed, key=lambda outcome: outcome.shard.number)
    listed = ", ".join(map(str, numbers[:_N_LISTED])) + (", …" if len(numbers) > _N_LISTED else "")
    more = _(" (failed shards: {shards})", shards=listed) if len(failed) > 1 else ""
    return _(
        "Shard {number} (lines {lines}) failed {attempts} times: {reason}{more}. The other shards are finished. Run "
        "the same command again to try once more.",
        number=first.shard.number,
        lines=first.shard.lines,
        attempts=MAX_ATTEMPTS,
        reason=first.death,
        more=more,
    )


def use_one_thread() -> None:
    """Compute with one thread: there is one worker per core."""
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"  # of the native engine
    torch.set_num_threads(1)


def answer_shard(task: WorkerTask, answer: AnswerShard, shard: Shard) -> dict[str, Any]:
    """Write the answers of a shard; return an error that ends the job, or the reason of a failure, as JSON values."""
    try:
        folder = ShardFolder(Path(task.folder), task.n_shards, task.suffix)
        folder.write(shard.number, lambda stream: answer(shard, stream))
    except ManyheadsError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"os_error": [error.errno, error.strerror or str(error), error.filename]}
    except Exception as error:  # another process may be luckier, for instance with its memory
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        reason = _("{error} in {function} ({where})", error=type(error).__name__, function=place.name, where=where)
        return {"failure": reason}
    return {}


def outcome_of(shard: Shard, message: dict[str, Any]) -> Outcome:
    """Return the outcome that `answer_shard` reported."""
    if "error" in message:
        return Outcome(shard, error=JobError(message["error"]))
    if "os_error" in message:
        return Outcome(shard, error=OSError(*message["os_error"]))
    return Outcome(shard, death=message.get("failure", ""))


def shard_from(values: list[Any]) -> Shard:
    """Return a shard that was sent as JSON."""
    number, first, segments = values
    return Shard(number, first, tuple(Segment(*segment) for segment in segments))
