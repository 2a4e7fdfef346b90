"""A service without workers: it answers every text at once, and remembers what it was asked."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

from manyheads.answer.request import AnswerRequest
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service
from manyheads.serve.service.settings import ServeSettings

SECONDS = 15


def translator(source: str, target: str, name: str = "", **changes: Any) -> BundleDescription:
    languages = {"purpose": "translation", "languages": (source, target), "decode": {"method": "beam", "beam": 4}}
    name = name or f"{source}-{target}"
    return BundleDescription(name, "seq2seq", "0123456789ab", 1_700_000_000, **(languages | changes))


def writer(name: str = "poems") -> BundleDescription:
    return BundleDescription(
        name, "language", "ba9876543210", 1_700_000_001, "continuation", purpose="", languages=("zh",)
    )


class FakeService:
    """Translates by reversing the text, and continues a prompt with the words of its decoding settings."""

    def __init__(self, *bundles: BundleDescription, **settings: Any) -> None:
        self.bundles = {bundle.name: bundle for bundle in bundles}
        self.settings = ServeSettings(**settings)
        self.is_ready = True
        self.asked: list[AnswerRequest] = []
        self.error: ProblemError | None = None  # raised by the next calls
        self.error_in_stream: Exception | None = None  # raised after the first part
        self.n_open_streams = 0

    @property
    def service(self) -> Service:
        return cast(Service, self)

    async def predict(self, request: AnswerRequest) -> list[dict[str, Any]]:
        self._ask(request)
        await asyncio.sleep(0)
        task = self.bundles[request.bundle].task
        answer = _continued if task == "language" else _reversed
        return [answer(text, request) for text in request.texts]

    async def stream(self, request: AnswerRequest) -> AsyncIterator[dict[str, Any]]:
        self._ask(request)
        self.n_open_streams += 1
        try:
            payload = _continued(request.texts[0], request)
            for number, part in enumerate(payload["answer"].split(" ")):
                yield {"delta": part if number == 0 else f" {part}"}
                if self.error_in_stream is not None:
                    raise self.error_in_stream
            yield {"done": payload}
        finally:
            self.n_open_streams -= 1

    def _ask(self, request: AnswerRequest) -> None:
        self.asked.append(request)
        if self.error is not None:
            raise self.error


def _continued(text: str, request: AnswerRequest) -> dict[str, Any]:
    decode = request.options.decode
    texts = [f"{decode['method']} {number} end" for number in range(decode["n_best"])]
    finished = decode["max_new_tokens"] > 3
    return {
        "prompt": text,
        "answer": texts[0],
        "candidates": [{"text": one, "finished": finished} for one in texts],
        "n_prompt_tokens": len(text.split()),
        "n_new_tokens": 3 * len(texts),
    }


def _reversed(text: str, request: AnswerRequest) -> dict[str, Any]:
    """The reversed text and variants of it; the third candidate is the same as the first."""
    n_best, answer = request.options.decode.get("n_best", 1), text[::-1]
    candidates = [answer if number in (0, 2) else f"{answer} {number}" for number in range(n_best)]
    return {"answer": answer, "candidates": [{"text": one} for one in candidates]}


def app_of(*routers: APIRouter) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)
    return app


def client_of(*routers: APIRouter) -> TestClient:
    return TestClient(app_of(*routers), base_url="http://127.0.0.1", raise_server_exceptions=True)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Serve an application on the loopback interface and yield its address."""
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    _wait_for(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(SECONDS)


def _wait_for(condition: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(SECONDS * 100):
        if condition():
            return
        waiting.wait(0.01)
    raise TimeoutError
