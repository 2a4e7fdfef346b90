"""Batches: similar lengths, oldest first, bounded, without the texts that nobody waits for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from manyheads.serve.batch_queue import BatchQueue, QueuedText, QueueFullError
from manyheads.serve.problems import ProblemError

from own_thread import in_own_thread


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Futures need a running loop."""

    @in_own_thread
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


def queue(**limits: int) -> BatchQueue:
    return BatchQueue(
        **({"max_texts": 100, "max_characters": 1000, "batch_texts": 4, "batch_characters": 100} | limits)
    )


def text(length: int, how: str = "a", deadline: float = 10.0) -> QueuedText:
    return QueuedText(how, "x" * length, deadline, asyncio.get_running_loop().create_future())


@in_loop
async def test_a_batch_has_the_oldest_text_and_those_of_similar_length() -> None:
    waiting = queue(batch_texts=3)
    texts = [text(length) for length in (10, 50, 11, 49, 9)]
    waiting.add(texts)
    assert waiting.take(0, 1) == [texts[0], texts[2], texts[4]]
    assert waiting.take(0, 1) == [texts[1], texts[3]]
    assert waiting.take(0, 1) == []
    assert waiting.n_texts == waiting.n_characters == 0


@in_loop
async def test_kinds_are_not_mixed_and_take_turns() -> None:
    waiting = queue(batch_texts=2)
    a, b = [text(1, "a") for _ in range(4)], [text(1, "b") for _ in range(2)]
    waiting.add(a)
    waiting.add(b)
    assert [waiting.take(0, 1) for _ in range(3)] == [a[:2], b, a[2:]]


@in_loop
async def test_idle_workers_share_what_waits() -> None:
    waiting = queue()
    waiting.add([text(1) for _ in range(4)])
    assert [len(waiting.take(0, n_idle)) for n_idle in (2, 1)] == [2, 2]


@in_loop
async def test_a_batch_is_bounded_in_characters_but_never_empty() -> None:
    waiting = queue(batch_characters=25)
    texts = [text(40), text(10), text(10), text(10)]
    waiting.add(texts)
    assert waiting.take(0, 1) == texts[:1]
    assert waiting.take(0, 1) == texts[1:3]


@in_loop
async def test_a_full_queue_refuses_the_whole_request() -> None:
    waiting = queue(max_texts=3)
    waiting.add([text(1), text(1)])
    with pytest.raises(QueueFullError) as caught:
        waiting.add([text(1), text(1)])
    assert caught.value.n_waiting == 2
    assert waiting.n_texts == 2
    waiting.add([text(1)])
    with pytest.raises(QueueFullError):
        waiting.add([text(1)])


@in_loop
async def test_a_request_that_never_fits_is_refused_as_too_large() -> None:
    with pytest.raises(ProblemError, match="at most 3 texts and 1,000 characters") as caught:
        queue(max_texts=3).add([text(1) for _ in range(4)])
    assert caught.value.status == 413


@in_loop
async def test_texts_that_nobody_waits_for_are_dropped_and_late_ones_refused() -> None:
    waiting = queue()
    gone, late, live = text(1), text(1, deadline=5), text(1)
    waiting.add([gone, late, live])
    gone.answer.cancel()
    assert waiting.take(6, 1) == [live]
    with pytest.raises(ProblemError, match="deadline") as caught:
        late.answer.result()
    assert caught.value.status == 504
    assert waiting.n_texts == 0


@in_loop
async def test_retries_come_first_and_always_fit() -> None:
    waiting = queue(max_texts=2)
    first, retried = [text(5), text(5)], text(5)
    waiting.add(first)
    waiting.add([retried], is_retry=True)
    assert waiting.take(0, 3) == [retried]


@in_loop
async def test_refuse_all_answers_everything() -> None:
    waiting = queue()
    one = text(1)
    waiting.add([one])
    waiting.refuse_all(ProblemError(503, "The server is shutting down."))
    with pytest.raises(ProblemError):
        one.answer.result()
    assert waiting.take(0, 1) == []
