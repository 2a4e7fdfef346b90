"""Batches: clients take turns; similar lengths, oldest first, bounded, without the texts that nobody waits for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.problems import ProblemError

from own_thread import in_own_thread


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Futures need a running loop."""

    @in_own_thread
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


def queue(**limits: float) -> BatchQueue:
    defaults = {"n_workers": 1, "max_texts": 100, "max_characters": 1000, "batch_texts": 4, "batch_seconds": 10.0}
    return BatchQueue(**(defaults | limits))  # type: ignore[arg-type]


def text(
    length: int = 1, key: str = "a", deadline: float = 10.0, client: str = "", seconds: float = 0.01
) -> QueuedText:
    answer = asyncio.get_running_loop().create_future()
    return QueuedText(key, "x" * length, deadline, answer, client, seconds=seconds)


def many(count: int, client: str = "", seconds: float = 0.01, key: str = "a") -> list[QueuedText]:
    return [text(client=client, seconds=seconds, key=key) for _ in range(count)]


def clients(batch: list[QueuedText]) -> str:
    return "".join(one.client for one in batch)


@in_loop
async def test_a_batch_has_the_oldest_text_and_those_of_similar_length() -> None:
    waiting = queue(batch_texts=3)
    texts = [text(length) for length in (10, 50, 11, 49, 9)]
    waiting.add(texts, 0)
    assert waiting.take(0) == [texts[0], texts[2], texts[4]]
    assert waiting.take(0) == [texts[1], texts[3]]
    assert waiting.take(0) == []
    assert (waiting.n_texts, waiting.n_characters, round(waiting.seconds, 9)) == (0, 0, 0)


@in_loop
async def test_kinds_are_not_mixed_and_take_turns() -> None:
    waiting = queue(batch_texts=2)
    a, b = many(4, key="a"), many(2, key="b")
    waiting.add(a, 0)
    waiting.add(b, 0)
    assert [waiting.take(0) for _ in range(3)] == [a[:2], b, a[2:]]


@in_loop
async def test_a_batch_is_a_part_of_what_waits() -> None:
    waiting = queue(n_workers=2, batch_texts=100)
    waiting.add(many(40), 0)
    assert [len(waiting.take(0)) for _ in range(13)] == [10, 8, 6, 4, 4, 4, 2, 1, 1, 0, 0, 0, 0]


@in_loop
async def test_a_batch_is_bounded_in_expected_seconds_but_never_empty() -> None:
    waiting = queue(batch_seconds=0.25)
    texts = [text(seconds=0.2), text(seconds=0.1), text(seconds=0.1), text(seconds=0.1)]
    waiting.add(texts, 0)
    assert waiting.take(0) == texts[:1]
    assert waiting.take(0) == texts[1:3]


@in_loop
async def test_a_client_with_many_texts_does_not_delay_others() -> None:
    waiting = queue(batch_texts=4, n_workers=1)
    waiting.add(many(90, "a"), 0)
    assert clients(waiting.take(0)) == "aaaa"
    waiting.add([text(client="b")], 0)
    assert clients(waiting.take(0)) == "b"  # its batch is not longer than it would be without the other
    waiting.add(many(2, "c"), 0)
    assert clients(waiting.take(0)) == "ca"  # with more texts than its share, it has a share of a batch


@in_loop
async def test_clients_with_few_texts_share_a_batch_without_the_one_with_many() -> None:
    waiting = queue(batch_texts=12, n_workers=1)
    waiting.add(many(90, "a"), 0)
    waiting.take(0)
    for client in "bcd":
        waiting.add(many(2, client), 0)
    assert sorted(clients(waiting.take(0))) == sorted("bcdb")  # a part of what they wait for
    assert sorted(clients(waiting.take(0))) == sorted("cd")
    assert clients(waiting.take(0)) == "aaa"


@in_loop
async def test_clients_take_turns_when_their_texts_are_not_of_the_same_kind() -> None:
    waiting = queue(batch_texts=2)
    waiting.add(many(10, "a", key="a"), 0)
    waiting.add(many(2, "b", key="b"), 0)
    assert [clients(waiting.take(0)) for _ in range(4)] == ["a", "b", "a", "b"]


@in_loop
async def test_clients_get_the_same_time_whatever_the_length_of_their_texts() -> None:
    waiting = queue(batch_texts=1, max_texts=1000)
    waiting.add(many(100, "a", seconds=0.2), 0)
    waiting.add(many(400, "b", seconds=0.05), 0)
    taken = [waiting.take(0)[0] for _ in range(100)]
    seconds = [sum(one.seconds for one in taken if one.client == client) for client in "ab"]
    assert abs(seconds[0] - seconds[1]) <= 0.2
    assert max(len(run) for run in clients(taken).split("a")) <= 5


@in_loop
async def test_time_in_which_a_client_asked_for_nothing_is_not_saved_up() -> None:
    waiting = queue(batch_texts=1)
    waiting.add([text(client="a")], 0)
    waiting.take(0)
    waiting.add(many(30, "b"), 0)
    for _ in range(20):
        waiting.take(0)
    waiting.add(many(10, "a"), 0)
    assert clients([waiting.take(0)[0] for _ in range(6)]).count("b") >= 2


@in_loop
async def test_a_client_has_a_share_of_a_batch_until_it_has_not_asked_for_a_while() -> None:
    waiting = queue(batch_texts=4, max_texts=1000)
    waiting.add(many(200, "a"), 0)
    waiting.add([text(client="b")], 0)
    assert clients(waiting.take(0)) == "aba"
    assert clients(waiting.take(4.9)) == "aa"
    assert clients(waiting.take(5)) == "aaaa"


@in_loop
async def test_long_texts_are_taken_one_by_one_and_only_when_asked_for() -> None:
    waiting = queue()
    long, short = many(2, seconds=0.26), many(2, seconds=0.25)
    waiting.add([*long, *short], 0)
    assert waiting.take(0) == short
    assert waiting.take(0) == []
    assert [waiting.take(0, is_long=True) for _ in range(3)] == [long[:1], long[1:], []]


@in_loop
async def test_the_time_of_long_texts_counts_among_long_texts() -> None:
    waiting = queue(batch_texts=1)
    waiting.add(many(20, "a"), 0)
    waiting.add(many(20, "b", seconds=1.0, key="b"), 0)
    for _ in range(19):
        waiting.take(0, is_long=True)
    waiting.add([text(client="c")], 0)
    waiting.add([text(client="a", seconds=1.0, key="b", deadline=1000)], 0)
    assert "c" in clients([waiting.take(0)[0] for _ in range(2)])
    assert clients(waiting.take(0, is_long=True)) == "a"
    assert clients(waiting.take(0, is_long=True)) == "b"


@in_loop
async def test_a_full_queue_refuses_the_whole_request() -> None:
    waiting = queue(max_texts=3)
    waiting.add(many(2), 0)
    with pytest.raises(ProblemError, match="The queue is full: 2 texts are waiting") as caught:
        waiting.add(many(2), 0)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
    assert waiting.n_texts == 2
    waiting.add(many(1), 0)
    with pytest.raises(ProblemError, match="full"):
        waiting.add(many(1), 0)


@in_loop
async def test_a_queue_is_bounded_in_characters() -> None:
    waiting = queue(max_characters=10)
    waiting.add([text(9)], 0)
    with pytest.raises(ProblemError, match="full"):
        waiting.add([text(2)], 0)
    waiting.add([text(1)], 0)
    assert waiting.n_characters == 10


@in_loop
async def test_of_a_full_queue_the_client_with_the_most_work_is_refused() -> None:
    waiting = queue(max_texts=10)
    heavy, light = many(8, "a"), many(2, "b")
    waiting.add(heavy, 0)
    waiting.add(light, 0)
    waiting.add([text(client="c"), text(client="c")], 0)
    assert [one.answer.done() for one in heavy] == [False] * 6 + [True] * 2
    with pytest.raises(ProblemError, match="full") as caught:
        heavy[-1].answer.result()
    assert caught.value.status == 429
    heavy[-2].answer.exception()
    assert not any(one.answer.done() for one in light)
    with pytest.raises(ProblemError, match="full"):  # not a client that would then have more than another
        waiting.add(many(1, "a"), 0)
    assert waiting.n_texts == 10


@in_loop
async def test_a_client_may_not_queue_more_than_its_share_of_the_time_until_the_deadline() -> None:
    waiting = queue(n_workers=2)
    waiting.add([text(client="a", seconds=30.0)], 0)  # the first request may be too large: the estimate may be wrong
    with pytest.raises(ProblemError, match="Your requests need the workers for about 30 s, and 20 s are yours"):
        waiting.add([text(client="a")], 0)
    waiting.add([text(client="b", seconds=4.0)], 0)
    waiting.add([text(client="b", seconds=6.0)], 0)
    with pytest.raises(ProblemError, match="10 s are yours") as caught:
        waiting.add([text(client="b", seconds=0.1)], 0)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "20"})


@in_loop
async def test_a_request_that_never_fits_is_refused_as_too_large() -> None:
    for limits in ({"max_texts": 3}, {"max_characters": 3}):
        waiting = queue(**limits)
        with pytest.raises(ProblemError, match="Send several requests") as caught:
            waiting.add(many(4), 0)
        assert caught.value.status == 413
        waiting.add(many(3), 0)


@in_loop
async def test_texts_that_nobody_waits_for_are_dropped_and_late_ones_refused() -> None:
    waiting = queue()
    gone, late, live = text(1), text(1, deadline=5), text(1)
    waiting.add([gone, late, live], 0)
    gone.answer.cancel()
    assert waiting.take(6) == [live]
    with pytest.raises(ProblemError, match="deadline") as caught:
        late.answer.result()
    assert caught.value.status == 504
    assert waiting.n_texts == 0


@in_loop
async def test_texts_that_nobody_waits_for_make_room() -> None:
    waiting = queue(max_texts=2)
    gone = many(2)
    waiting.add(gone, 0)
    for one in gone:
        one.answer.cancel()
    waiting.add(many(2), 0)
    assert waiting.n_texts == 2


@in_loop
async def test_retries_come_first_and_always_fit() -> None:
    waiting = queue(max_texts=2, batch_texts=1)
    first, retried = [text(5), text(5)], [text(5, key="b") for _ in range(3)]
    waiting.add(first, 0)
    waiting.add(retried, 0, is_retry=True)
    assert waiting.take(0) == retried[-1:]


@in_loop
async def test_refuse_all_answers_everything() -> None:
    waiting = queue()
    one = text(1)
    waiting.add([one], 0)
    waiting.refuse_all(ProblemError(503, "The server is shutting down."))
    with pytest.raises(ProblemError):
        one.answer.result()
    assert waiting.take(0) == []
