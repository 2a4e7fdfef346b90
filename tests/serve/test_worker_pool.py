"""The pool of workers: what it does when one dies, hangs or does not read, long texts, reloads."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.bundle import load
from manyheads.serve.service import worker_pool
from manyheads.serve.service.access import current_client
from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service
from manyheads.serve.service.settings import ServeSettings
from manyheads.serve.service.worker_pool import WorkerPool

from own_thread import in_own_thread
from serve.fake_workers import Behavior, FakeProcess, FakeWorkers, Message, answer_all
from serve.service_process import children

LONG = 1e4  # tokens


def run_with(
    monkeypatch: pytest.MonkeyPatch,
    test: Callable[[WorkerPool, FakeWorkers], Awaitable[None]],
    behavior: Behavior = answer_all,
    n_workers: int = 1,
    **limits: Any,
) -> None:
    """Run a test with a pool of fake workers."""
    fake = FakeWorkers(behavior)
    fake.install(monkeypatch)

    async def main() -> None:
        defaults: dict[str, Any] = {"max_texts": 100, "max_characters": 10**8, "batch_texts": 4, "batch_seconds": 1e12}
        queue = BatchQueue(n_workers=n_workers, **(defaults | limits))
        pool = WorkerPool({"b": "folder"}, n_workers, queue, lambda n_texts, seconds: None)
        await pool.start()
        try:
            async with asyncio.timeout(120):
                await test(pool, fake)
        finally:
            fake.may_read.set()
            await pool.close()

    in_own_thread(lambda: asyncio.run(main()))()


def ask(pool: WorkerPool, *texts: str, seconds: float = 60.0, cost: float = 1.0, client: str = "") -> list[QueuedText]:
    """Submit texts of one request."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    queued = [QueuedText("{}", text, deadline, loop.create_future(), client, "b", cost) for text in texts]
    pool.submit(queued)
    return queued


async def eventually(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_true():
            await asyncio.sleep(0.01)


def test_texts_are_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        texts = [str(number) for number in range(40)]
        assert [await one.answer for one in ask(pool, *texts)] == [f'"{text}"' for text in texts]

    run_with(monkeypatch, test, n_workers=2)


def test_a_text_that_kills_its_workers_is_refused_after_three_and_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(worker: FakeProcess, message: Message) -> None:
        if "poison" in message.get("texts", ()):
            worker.kill()
        else:
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        (poison,) = ask(pool, "poison")
        with pytest.raises(ProblemError, match="Three workers stopped") as caught:
            await poison.answer
        assert caught.value.status == 500
        await eventually(lambda: pool.n_ready == 1)
        assert len(fake.sent("predict")) == 3
        assert (pool.n_restarts, len(fake.started)) == (3, 4)
        (other,) = ask(pool, "other")
        assert await other.answer == '"other"'

    run_with(monkeypatch, test, die)


def test_a_batch_that_its_worker_had_not_begun_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(worker: FakeProcess, message: Message) -> None:
        if "poison" in message.get("texts", ()):
            worker.receive()  # the next batch has been sent, too
            worker.kill()
        else:
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        poison, *others = ask(pool, "poison", *"abcdefg")
        assert [await one.answer for one in others] == [f'"{one}"' for one in "abcdefg"]
        assert {one.n_attempts for one in others} == {0}
        assert poison.n_attempts == 3
        assert isinstance(poison.answer.exception(), ProblemError)

    run_with(monkeypatch, test, die, batch_texts=1)


def test_a_worker_is_replaced_if_it_is_busy_with_what_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_GRACE", 0.05)

    def hang(worker: FakeProcess, message: Message) -> None:
        if "hang" not in message.get("texts", ()):
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        (useless,) = ask(pool, "hang", seconds=0.05)
        await asyncio.sleep(0.2)
        assert not fake.started[0].is_killed  # somebody waits: the service has not given up
        useless.answer.cancel()
        (again,) = ask(pool, "hang", seconds=0.3)
        assert not fake.started[0].is_killed
        fake.started[0].send({"id": fake.started[0].received[0]["id"], "answers": [{"ok": "1"}]})
        await eventually(lambda: len(fake.sent("predict")) == 2)
        again.answer.cancel()
        await eventually(lambda: fake.started[0].is_killed)
        await eventually(lambda: pool.n_ready == 1)
        (one,) = ask(pool, "a")
        assert await one.answer == '"a"'

    run_with(monkeypatch, test, hang)


def test_a_worker_that_does_not_read_delays_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        fake.may_read.clear()
        (first,) = ask(pool, "a")  # the worker was already waiting for a message
        await first.answer
        rescue = threading.Timer(20, fake.may_read.set)  # a send that blocks would otherwise block this test
        rescue.start()
        (large,) = ask(pool, "x" * 8_000_000)
        assert not fake.may_read.is_set()
        rescue.cancel()
        fake.may_read.set()
        assert len(await large.answer) == 8_000_002

    run_with(monkeypatch, test)


def test_a_long_text_is_answered_beside_others_and_cancelled_when_its_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wait(worker: FakeProcess, message: Message) -> None:
        if "seconds" not in message:
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        first, second = ask(pool, "first", "second", cost=LONG)
        for text in "abc":
            (one,) = ask(pool, text)
            assert await one.answer == f'"{text}"'
        (begun,) = fake.sent("seconds")
        assert begun["texts"] == ["first"]
        assert 60 < begun["seconds"] <= 62
        first.answer.cancel()
        await eventually(lambda: len(fake.sent("seconds")) == 2)
        assert fake.sent("cancel") == [{"cancel": begun["id"]}]
        worker = fake.started[0]
        worker.send({"id": begun["id"], "answers": [{"ok": "late"}]})  # was under way
        worker.send({"id": fake.sent("seconds")[1]["id"], "answers": [{"ok": "2"}]})
        assert await second.answer == "2"
        (one,) = ask(pool, "d")
        assert await one.answer == '"d"'
        assert len(fake.sent("cancel")) == 1  # what was answered is not cancelled

    run_with(monkeypatch, test, wait)


def test_a_long_text_whose_copy_dies_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(worker: FakeProcess, message: Message) -> None:
        if "predict" in message:
            worker.send({"id": message["id"], "stopped": True})

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        (one,) = ask(pool, "long", cost=LONG)
        with pytest.raises(ProblemError, match="Three workers stopped"):
            await one.answer
        assert len(fake.sent("predict")) == 3
        assert pool.n_restarts == 0

    run_with(monkeypatch, test, stop)


def test_a_text_that_a_worker_refuses_has_its_error_and_the_others_their_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(worker: FakeProcess, message: Message) -> None:
        answers = [{"error": [422, "Odd."]} if text == "odd" else {"ok": text} for text in message["texts"]]
        worker.send({"id": message["id"], "answers": answers})

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        good, odd = ask(pool, "good", "odd")
        assert await good.answer == "good"
        with pytest.raises(ProblemError, match="Odd") as caught:
            await odd.answer
        assert caught.value.status == 422

    run_with(monkeypatch, test, refuse)


def test_what_waits_when_the_pool_is_closed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        ask(pool, "begun")
        (waiting,) = ask(pool, "waiting")
        await pool.close()
        assert isinstance(error := waiting.answer.exception(), ProblemError)
        assert (error.status, error.detail) == (503, "The server is shutting down. Try again later.")
        with pytest.raises(ProblemError, match="shutting down"):
            ask(pool, "late")

    run_with(monkeypatch, test, lambda worker, message: None)


def test_a_stream_is_cancelled_if_it_is_left_and_not_if_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(worker: FakeProcess, message: Message) -> None:
        if message.get("texts") == ["whole"]:
            worker.send({"id": message["id"], "delta": "a"})
            worker.send({"id": message["id"], "done": {"answer": "a"}})
        elif "predict" in message:
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        deadline = asyncio.get_running_loop().time() + 60
        assert [event async for event in pool.stream("{}", "whole", deadline)] == [
            {"delta": "a"},
            {"done": {"answer": "a"}},
        ]
        (one,) = ask(pool, "after it")
        await one.answer
        assert fake.sent("cancel") == []
        left = pool.stream("{}", "left", deadline)
        waiting = asyncio.ensure_future(anext(left))
        await eventually(lambda: len(fake.sent("stream")) == 2)
        waiting.cancel()
        await asyncio.wait([waiting])
        await eventually(lambda: fake.sent("cancel") == [{"cancel": fake.sent("stream")[1]["id"]}])
        assert pool.n_streams == 0

    run_with(monkeypatch, test, write)


def test_reloads_that_wait_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        fake.may_read.clear()
        asked = [asyncio.create_task(pool.reload("b")) for _ in range(3)]
        await asyncio.sleep(0)  # the first has begun
        await asyncio.sleep(0)
        asked += [asyncio.create_task(pool.reload("b")) for _ in range(200)]
        await asyncio.sleep(0)
        for one in asked[:-1]:
            one.cancel()
        fake.version = "2"
        fake.may_read.set()
        assert (await asked[-1]).version == "2"
        assert len(fake.sent("load")) == 4  # two in each of two workers
        assert (await pool.reload("b")).version == "2"
        assert len(fake.sent("load")) == 6

    run_with(monkeypatch, test, n_workers=2)


def test_a_reload_follows_a_link_and_a_new_worker_loads_what_is_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "current"
    old.mkdir()
    new.mkdir()
    link.symlink_to(old)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        pool._given["b"] = str(link)
        pool.folders["b"] = str(old)
        link.unlink()
        link.symlink_to(new)
        assert pool.folders["b"] == str(old)  # until somebody asks
        fake.version = "2"
        assert (await pool.reload("b")).version == "2"
        assert {message["path"] for message in fake.sent("load")} == {str(new)}
        assert pool.folders["b"] == str(new)

    run_with(monkeypatch, test, n_workers=2)


def test_a_bundle_that_cannot_be_loaded_again_serves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(worker: FakeProcess, message: Message) -> None:
        if "load" in message:
            worker.send({"id": message["id"], "error": [422, "It is damaged."]})

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        with pytest.raises(ProblemError, match=r"It is damaged\. The version that was loaded before is still served"):
            await pool.reload("b")
        assert len(fake.sent("load")) == 1
        assert (pool.n_ready, pool.n_restarts) == (2, 0)

    run_with(monkeypatch, test, refuse, n_workers=2)


def test_a_worker_that_cannot_load_what_another_has_loaded_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the answers of one request would be of two versions."""

    def refuse(worker: FakeProcess, message: Message) -> None:
        if "load" in message and len(worker.factory.sent("load")) == 2:
            worker.send({"id": message["id"], "error": [422, "It was damaged meanwhile."]})
        else:
            answer_all(worker, message)

    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        fake.version = "2"
        assert (await pool.reload("b")).version == "2"
        assert sorted(worker.is_killed for worker in fake.started[:2]) == [False, True]
        await eventually(lambda: pool.n_ready == 2)
        assert pool.bundles["b"].version == "2"

    run_with(monkeypatch, test, refuse, n_workers=2)


def test_when_a_new_worker_loads_another_version_all_load_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool, fake: FakeWorkers) -> None:
        fake.version = "2"
        fake.started[0].kill()
        await eventually(lambda: len(fake.sent("load")) == 2)
        await eventually(lambda: pool.bundles["b"].version == "2")
        assert {worker.number for worker in fake.started if any("load" in one for one in worker.received)} == {1, 2}

    run_with(monkeypatch, test, n_workers=2)


def test_streams_are_limited_and_a_client_leaves_some_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(worker: FakeProcess, message: Message) -> None:
        if "stream" in message:
            worker.send({"id": message["id"], "delta": "a"})

    fake = FakeWorkers(begin)
    fake.install(monkeypatch)

    async def main() -> None:
        service = Service({"b": "folder"}, ServeSettings(workers=1, max_streams=6))
        await service.start()
        open_: list[Any] = []

        async def begin_stream(client: str) -> bool:
            current_client.set(client)
            stream = service.stream(AnswerRequest("b", ("a",)))
            try:
                assert await anext(stream) == {"delta": "a"}
            except ProblemError as error:
                assert (error.status, error.headers) == (429, {"Retry-After": "1"})
                return False
            open_.append(stream)
            return True

        assert [await begin_stream(client) for client in "aaaa"] == [True, True, True, False]
        assert [await begin_stream(client) for client in "bbb"] == [True, True, False]
        assert [await begin_stream(client) for client in "cca"] == [True, False, False]
        assert service.pool.n_streams == 6
        await open_[0].aclose()
        assert await begin_stream("d")
        for stream in open_:
            await stream.aclose()
        assert service.pool.n_streams == service.pool.n_streams_of("a") == 0
        await service.close()

    in_own_thread(lambda: asyncio.run(main()))()


def test_the_deadline_of_a_stream_ends_the_wait_for_its_next_part_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(worker: FakeProcess, message: Message) -> None:
        if "stream" in message:
            worker.send({"id": message["id"], "delta": "a"})

    FakeWorkers(begin).install(monkeypatch)

    async def main() -> None:
        service = Service({"b": "folder"}, ServeSettings(workers=1, timeout=0.2))
        await service.start()
        try:
            stream = service.stream(AnswerRequest("b", ("a",)))
            assert await anext(stream) == {"delta": "a"}
            await asyncio.sleep(0.4)  # what the reader does between two parts is not cancelled
            with pytest.raises(TimeoutError):
                await asyncio.create_task(_next(stream))  # another task than before, as in a response
            assert service.pool.n_streams == 0
        finally:
            await service.close()

    async def _next(stream: Any) -> object:
        return await anext(stream)

    in_own_thread(lambda: asyncio.run(main()))()


def test_the_limits_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ServeSettings(workers=1, max_texts=3, max_text=5, max_beam=4, max_new_tokens=9)
    service = in_own_thread(lambda: Service({"b": "folder"}, limits))()

    def check(*texts: str, **decode: Any) -> None:
        service.check(AnswerRequest("b", texts, AnswerOptions(decode)))

    check("12345", "", "1", beam=4, n_best=4, max_new_tokens=9, stop=["a"] * 16)
    for texts, decode, status, message in (
        (("123456",), {}, 413, r"texts\[0\] has 6 characters; at most 5 are allowed"),
        (("", "", "", ""), {}, 413, "4 texts; at most 3 are allowed"),
        (("",), {"beam": 5}, 422, "decode.beam = 5: this server allows at most 4"),
        (("",), {"n_best": 5}, 422, "decode.n_best = 5: this server allows at most 4"),
        (("",), {"max_new_tokens": 10}, 422, "decode.max_new_tokens = 10: this server allows at most 9"),
        (("",), {"stop": ["a"] * 17}, 422, "decode.stop = 17: this server allows at most 16"),
    ):
        with pytest.raises(ProblemError, match=message) as caught:
            check(*texts, **decode)
        assert caught.value.status == status


def test_a_stream_has_one_text() -> None:
    async def main() -> None:
        service = Service({"b": "folder"}, ServeSettings(workers=1))
        for texts in ((), ("a", "b")):
            with pytest.raises(ProblemError, match="a stream has one text") as caught:
                await anext(service.stream(AnswerRequest("b", texts)))
            assert caught.value.status == 422

    in_own_thread(lambda: asyncio.run(main()))()


def test_many_samples_leave_fewer_new_tokens_to_each() -> None:
    limits = ServeSettings(workers=1, max_beam=32, max_new_tokens=90)
    service = in_own_thread(lambda: Service({"b": "folder"}, limits))()
    for method, n_best, most in (("sample", 1, 90), ("sample", 15, 90), ("sample", 16, 45), ("sample", 24, 30)):
        decode = {"method": method, "n_best": n_best}
        service.check(AnswerRequest("b", ("a",), AnswerOptions(decode | {"max_new_tokens": most})))
        with pytest.raises(ProblemError, match=f"this server allows at most {most} here"):
            service.check(AnswerRequest("b", ("a",), AnswerOptions(decode | {"max_new_tokens": most + 1})))
    service.check(AnswerRequest("b", ("a",), AnswerOptions({"method": "beam", "n_best": 24, "max_new_tokens": 90})))


def test_a_copy_of_a_worker_gives_the_same_answer_and_ends_with_its_client(
    monkeypatch: pytest.MonkeyPatch, trained: Callable[[str], Path]
) -> None:
    """With a real worker, for which every text is a long one."""
    monkeypatch.setattr(worker_pool, "_SECONDS_PER_TOKEN", 1.0)
    bundle, text = trained("seq2seq"), "猫在睡觉。老师昨天买了书。"

    async def main() -> None:
        service = Service({"b": str(bundle)}, ServeSettings(workers=1, timeout=300))
        await service.start()
        try:
            (pid,) = service.pool.pids
            (one,) = await service.predict(AnswerRequest("b", (text,)))
            assert one["answer"] == load(bundle).predictions([text])[0].answer
            misspelt = AnswerRequest("b", ("a",), AnswerOptions({"beem": 3}))
            (wrong,) = await asyncio.gather(service.predict(misspelt), return_exceptions=True)
            assert isinstance(wrong, ProblemError)
            assert wrong.status == 422
            service.pool._seconds_per_token.clear()
            request = AnswerRequest("b", (text * 1500,), AnswerOptions({"method": "beam", "beam": 32}))
            long = asyncio.create_task(service.predict(request))
            await eventually(lambda: children([pid]))
            long.cancel()
            await eventually(lambda: not children([pid]))
            assert service.pool.pids == [pid]
        finally:
            await service.close()

    in_own_thread(lambda: asyncio.run(main()))()
