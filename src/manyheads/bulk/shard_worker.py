"""What a worker does with a shard, in a process of this machine or of a cluster."""

import os
import traceback
from pathlib import Path
from typing import Any

from manyheads.bulk.line_shards import Segment, Shard
from manyheads.bulk.shard_folder import ShardFolder
from manyheads.bulk.shard_schedule import AnswerShard, Outcome, WorkerTask
from manyheads.errors import JobError, ManyheadsError
from manyheads.messages import _


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
