"""`Service`: what the HTTP handlers call. It checks requests, queues their texts and waits for the answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from manyheads.messages import _
from manyheads.serve.service.access import current_client
from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.settings import ServeSettings
from manyheads.serve.service.work import ServedBundle, Work
from manyheads.serve.service.worker_pool import WorkerPool

_MAX_STOPS = 16  # texts that end a continuation
_LARGE = 10**12  # larger numbers are not repeated in a message


class Service:
    """Answers requests with the worker processes of some bundles."""

    def __init__(self, folders: Mapping[str, str], settings: ServeSettings) -> None:
        self.settings = settings
        self.metrics = ServiceMetrics()
        self.charge: Callable[[str, float], None] = lambda client, cost: None  # called with the cost of each request
        queue = BatchQueue(
            n_workers=settings.workers,
            max_texts=settings.queue_texts,
            max_characters=settings.queue_characters,
            batch_texts=settings.batch_texts,
            batch_seconds=settings.batch_seconds,
        )
        self.pool = WorkerPool(
            folders, settings.workers, queue, self.metrics.batch_done, share_examples=settings.share_examples
        )
        self.metrics.watch(self.pool)

    @property
    def bundles(self) -> Mapping[str, ServedBundle]:
        """The bundles by name."""
        return self.pool.bundles

    @property
    def is_ready(self) -> bool:
        """Whether every worker is alive and has loaded every bundle."""
        return self.pool.n_ready >= self.settings.workers

    async def start(self) -> None:
        """Start the workers; raise BundleError if a bundle cannot be loaded."""
        await self.pool.start()

    async def close(self) -> None:
        """End the workers."""
        await self.pool.close()

    def find(self, name: str | None, kind: str | None = None) -> ServedBundle:
        """Return the bundle with this name; the name may be left out if only one bundle (of a task) is served."""
        among = {one.name: one for one in self.bundles.values() if kind is None or one.task == kind}
        of_kind = "" if kind is None else f" of the task {kind}"
        if name is None:
            if len(among) == 1:
                return next(iter(among.values()))
            if not among:
                raise ProblemError(404, _("No bundle{of_kind} is served.", of_kind=of_kind))
            raise ProblemError(
                422, _("bundle: several bundles are served. Give one of {among}.", among=", ".join(among))
            )
        if name not in among:
            served = f"Served: {', '.join(among)}." if among else "None is served."
            raise ProblemError(
                404,
                _(
                    "bundle: there is no bundle {short!r}{of_kind}. {served}",
                    short=_short(name),
                    of_kind=of_kind,
                    served=served,
                ),
            )
        return among[name]

    async def predict(self, request: Work) -> list[dict[str, Any]]:
        """Return one table for each text, in order."""
        return [json.loads(one) for one in await self.predict_json(request)]

    async def predict_json(self, request: Work) -> list[str]:
        """Return the JSON of one table for each text, in order, as the workers wrote it."""
        work, loop = self.check(request), asyncio.get_running_loop()
        deadline = loop.time() + self.settings.timeout
        client, bundle = current_client.get(), self.bundles[work.bundle]
        queued = [
            QueuedText(work.how, text, deadline, loop.create_future(), client, work.bundle, work.cost(text, bundle))
            for text in work.texts
        ]
        self.pool.submit(queued)
        self.charge(client, sum(one.cost for one in queued))
        self.metrics.texts_received(work)
        answers = [one.answer for one in queued]
        try:
            async with asyncio.timeout_at(deadline):
                return list(await asyncio.gather(*answers))
        except TimeoutError:
            raise ProblemError(
                504, _("The answer was not ready within {timeout:g} s.", timeout=self.settings.timeout)
            ) from None
        finally:  # what nobody waits for is not computed
            for answer in answers:
                if not answer.done():
                    answer.cancel()
                elif not answer.cancelled():
                    answer.exception()  # marks it as seen

    async def stream(self, request: Work) -> AsyncIterator[dict[str, Any]]:
        """Yield `{"delta": text}` for each part of a continuation, then `{"done": table}`."""
        work = self.check(request)
        if len(work.texts) != 1:
            raise ProblemError(422, _("stream: a stream has one text. Send one request for each text."))
        client, n_left = current_client.get(), self.settings.max_streams - self.pool.n_streams
        if self.pool.n_streams_of(client) >= n_left:  # so that one client does not take them all
            raise ProblemError(429, _("Too many streams are open. Try again in 1 s."), {"Retry-After": "1"})
        self.charge(client, work.cost(work.texts[0], self.bundles[work.bundle]))
        self.metrics.texts_received(work)
        events = self.pool.stream(work.how, work.texts[0], client)
        async with (
            asyncio.timeout(self.settings.timeout),
            aclosing(events),
        ):  # ends it with this one, not some time later
            async for event in events:
                yield event

    async def reload(self, name: str) -> ServedBundle:
        """Load a bundle again from its folder."""
        return await self.pool.reload(self.find(name).name)

    def check(self, request: Work) -> Work:
        """Return the request with its bundle; raise a ProblemError if it is larger than this server allows."""
        limits = self.settings
        if len(request.texts) > limits.max_texts:
            raise ProblemError(
                413,
                _(
                    "texts: {n_texts:,} texts; at most {max_texts:,} are allowed.",
                    n_texts=len(request.texts),
                    max_texts=limits.max_texts,
                ),
            )
        for number, text in enumerate(request.texts):
            if len(text) > limits.max_text:
                raise ProblemError(
                    413,
                    _(
                        "texts[{number}] has {n_text:,} characters; at most {max_text:,} are allowed.",
                        number=number,
                        n_text=len(text),
                        max_text=limits.max_text,
                    ),
                )
        self._check_decode(request.decode)
        return request if request.bundle else replace(request, bundle=self.find(None).name)

    def _check_decode(self, decode: Mapping[str, Any]) -> None:
        """Refuse settings that would occupy a worker for very long."""
        limits = self.settings
        for name, most in (("beam", limits.max_beam), ("n_best", limits.max_beam)):
            _check_most(f"decode.{name}", decode.get(name), most)
        n_samples = decode.get("n_best") if decode.get("method") == "sample" else 1
        most = limits.max_new_tokens // max(1, n_samples // 8 if isinstance(n_samples, int) else 1)
        _check_most("decode.max_new_tokens", decode.get("max_new_tokens"), most)
        stop = decode.get("stop")
        _check_most("the number of decode.stop", len(stop) if isinstance(stop, list | tuple) else 0, _MAX_STOPS)


def _check_most(name: str, value: object, most: int) -> None:
    if isinstance(value, int) and value > most:
        given = f"{value:,}" if value < _LARGE else "a huge number"
        raise ProblemError(
            422, _("{name} = {given}: this server allows at most {most:,} here.", name=name, given=given, most=most)
        )


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:80] + "…"
