"""What happens to shards whose workers die or fail."""

from collections import deque
from collections.abc import Sequence

import pytest

from manyheads.bulk.line_shards import Segment, Shard
from manyheads.bulk.shard_schedule import Outcome, run_shards
from manyheads.errors import JobError

SHARDS = [Shard(number, 1000 * number, (Segment(0, 0, 1000),)) for number in range(5)]


class ScriptedWorkers:
    """Workers that die on some shards a number of times."""

    n_slots = 2

    def __init__(self, deaths: dict[int, int], error: Exception | None = None) -> None:
        self.deaths, self.error = dict(deaths), error
        self.queue: deque[Shard] = deque()
        self.n_most = 0

    def submit(self, shard: Shard) -> None:
        self.queue.append(shard)
        self.n_most = max(self.n_most, len(self.queue))

    def wait(self) -> Sequence[Outcome]:
        shard = self.queue.popleft()
        if self.deaths.get(shard.number, 0):
            self.deaths[shard.number] -= 1
            return [Outcome(shard, death="the worker process was ended by SIGKILL")]
        return [Outcome(shard, error=self.error)]

    def close(self) -> None:
        pass


def test_every_shard_is_answered_once_and_deaths_are_made_up_for() -> None:
    workers, finished = ScriptedWorkers({1: 1, 4: 1}), list[int]()
    run_shards(workers, SHARDS, lambda shard: finished.append(shard.number))
    assert sorted(finished) == [0, 1, 2, 3, 4]
    assert workers.n_most == 2


def test_a_shard_that_kills_two_workers_fails_the_job_after_the_others_are_done() -> None:
    finished: list[int] = []
    with pytest.raises(JobError) as error:
        run_shards(ScriptedWorkers({0: 2, 3: 9}), SHARDS, lambda shard: finished.append(shard.number))
    assert sorted(finished) == [1, 2, 4]
    assert str(error.value) == (
        "Shard 0 (lines 1 to 1,000) failed 2 times: the worker process was ended by SIGKILL (failed shards: 0, 3). "
        "The other shards are finished. Run the same command again to try once more."
    )


def test_of_many_failed_shards_the_first_ten_are_listed() -> None:
    shards = [Shard(number, number, (Segment(0, 0, 1),)) for number in range(12)]
    for n_failed, listed in ((1, ""), (10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (11, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …")):
        with pytest.raises(JobError, match=r"^Shard 0 \(lines 1 to 1\) failed") as error:
            run_shards(ScriptedWorkers(dict.fromkeys(range(n_failed), 2)), shards, lambda shard: None)
        assert (f" (failed shards: {listed})." in str(error.value)) == bool(listed)


def test_an_error_of_the_input_or_the_disk_ends_the_job_at_once() -> None:
    finished: list[int] = []
    with pytest.raises(OSError, match="No space"):
        run_shards(ScriptedWorkers({}, OSError(28, "No space")), SHARDS, lambda shard: finished.append(shard.number))
    assert finished == []
