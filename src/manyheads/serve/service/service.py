"""`Service`: what the HTTP handlers call. It checks requests, queues their texts and waits for the answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from manyheads.answer.request import AnswerRequest
from manyheads.messages import _
from manyheads.serve.service.access import current_client
from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.settings import ServeSettings
from manyheads.serve.service.worker_pool import WorkerPool

_MAX_STOPS = 16  # texts that end a continuation
_LARGE = 10**12  # larger numbers are not repeated in a message
_BYTES = 3  # of UTF-8 in a token, about: a Chinese character, or most of a short English word
_CONSTRAINED = 4  # times as many hypotheses with a glossary or terms to keep


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
    def bundles(self) -> Mapping[str, BundleDescription]:
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

    def find(self, name: str | None) -> BundleDescription:
        """Return the bundle with this name; the name may be left out if only one bundle is served."""
        names = ", ".join(self.bundles)
        if name is None:
            if len(self.bundles) == 1:
                return next(iter(self.bundles.values()))
            if not self.bundles:
                raise ProblemError(404, _("No bundle is served."))
            raise ProblemError(422, _("bundle: several bundles are served. Give one of {names}.", names=names))
        if name not in self.bundles:
            served = _("Served: {names}.", names=names) if names else _("None is served.")
            raise ProblemError(
                404, _("bundle: there is no bundle {name!r}. {served}", name=_short(name), served=served)
            )
        return self.bundles[name]

    async def predict(self, request: AnswerRequest) -> list[dict[str, Any]]:
        """Return the answer to each text, in order, as JSON values."""
        return [json.loads(answer) for answer in await self.predict_json(request)]

    async def predict_json(self, request: AnswerRequest) -> list[str]:
        """Return the answer to each text, in order, as the JSON that the workers wrote."""
        self.check(request)
        loop, client, bundle = asyncio.get_running_loop(), current_client.get(), self.bundles[request.bundle]
        deadline = loop.time() + self.settings.timeout
        texts = [
            QueuedText(
                request.key,
                text,
                deadline,
                loop.create_future(),
                client,
                bundle.name,
                answer_cost(request, text, bundle),
            )
            for text in request.texts
        ]
        self.pool.submit(texts)
        self.charge(client, sum(queued.cost for queued in texts))
        self.metrics.texts_received(request)
        answers = [queued.answer for queued in texts]
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

    async def stream(self, request: AnswerRequest) -> AsyncIterator[dict[str, Any]]:
        """Yield `{"delta": text}` for each part of a continuation, then `{"done": answer}`."""
        self.check(request)
        if len(request.texts) != 1:
            raise ProblemError(422, _("stream: a stream has one text. Send one request for each text."))
        client, n_left = current_client.get(), self.settings.max_streams - self.pool.n_streams
        if self.pool.n_streams_of(client) >= n_left:  # so that one client does not take them all
            raise ProblemError(429, _("Too many streams are open. Try again in 1 s."), {"Retry-After": "1"})
        self.charge(client, answer_cost(request, request.texts[0], self.bundles[request.bundle]))
        self.metrics.texts_received(request)
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        async with aclosing(self.pool.stream(request.key, request.texts[0], deadline, client)) as events:
            async for event in events:  # `aclosing` ends it with this one, not some time later
                yield event

    async def reload(self, name: str) -> BundleDescription:
        """Load a bundle again from its folder."""
        return await self.pool.reload(self.find(name).name)

    def check(self, request: AnswerRequest) -> None:
        """Raise a ProblemError if a request is larger than this server allows."""
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
                        "texts[{number}] has {n_characters:,} characters; at most {max_text:,} are allowed.",
                        number=number,
                        n_characters=len(text),
                        max_text=limits.max_text,
                    ),
                )
        self._check_decode(request.options.decode)
        try:
            request.key.encode()
        except UnicodeEncodeError:
            raise ProblemError(422, _("A setting has half of a surrogate pair, which is not valid Unicode.")) from None

    def _check_decode(self, decode: Mapping[str, Any]) -> None:
        """Refuse settings that would occupy a worker for very long."""
        limits = self.settings
        for name, most in (("beam", limits.max_beam), ("n_best", limits.max_beam)):
            _check_most(f"decode.{name}", decode.get(name), most)
        n_samples = decode.get("n_best") if decode.get("method") == "sample" else 1
        most = limits.max_new_tokens // max(1, n_samples // 8 if isinstance(n_samples, int) else 1)
        _check_most("decode.max_new_tokens", decode.get("max_new_tokens"), most)
        stop = decode.get("stop")
        _check_most(_("the number of decode.stop"), len(stop) if isinstance(stop, list | tuple) else 0, _MAX_STOPS)


def _check_most(name: str, value: object, most: int) -> None:
    if isinstance(value, int) and value > most:
        given = f"{value:,}" if value < _LARGE else _("a huge number")
        raise ProblemError(
            422, _("{name} = {given}: this server allows at most {most:,} here.", name=name, given=given, most=most)
        )


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:80] + "…"


def answer_cost(request: AnswerRequest, text: str, bundle: BundleDescription) -> float:
    """Return about how many tokens a bundle reads and writes for a text, times the hypotheses of its search."""
    n_tokens = 1 + len(text.encode("utf-8", "surrogatepass")) / _BYTES
    decode = {**bundle.decode, **request.options.decode}
    if bundle.answer_form == "continuation":
        n_tokens += _number(decode.get("max_new_tokens"))
    if bundle.answer_form not in ("text", "continuation"):
        return n_tokens
    hypotheses = {"beam": "beam", "sample": "n_best"}.get(str(decode.get("method", "beam")), "")
    width = _number(decode.get(hypotheses))
    return n_tokens * width * (_CONSTRAINED if request.options.glossary or request.options.keep else 1)


def _number(value: object) -> int:
    """A setting of a client, which a worker checks later."""
    return max(1, value) if isinstance(value, int) else 1
