"""The language of an error over HTTP is that of the request's Accept-Language header; without one, English."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from answer.in_process_service import InProcessService
from manyheads.language import using
from manyheads.messages import Message
from manyheads.serve.local_only import LocalOnly
from manyheads.serve.service.access import Access
from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.predict_api import predict_router
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_guard import RequestGuard
from manyheads.serve.service.service_app import _problem
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.settings import ServeSettings
from manyheads.serve.site_rules import language_of

from own_thread import in_own_thread
from serve.fake_service import app_of

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
GERMAN = {"Accept-Language": "de-DE,de;q=0.9,zh;q=0.1"}


@pytest.fixture(autouse=True)
def chinese_operator() -> Iterator[None]:
    """The language of whoever started the server does not matter."""
    with using("zh"):
        yield


@pytest.fixture
def client(bundle_folder: Path) -> TestClient:
    app: FastAPI = app_of(predict_router(InProcessService(m=bundle_folder).service))
    app.add_exception_handler(ProblemError, _problem)
    guard = RequestGuard(app, ServeSettings(), Access({}), ServiceMetrics(), lambda: 7, ["/v1/predict"])
    return TestClient(guard, base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("body", "english", "chinese"),
    [
        # Refused by the HTTP process, and by a worker.
        ({"texts": "a", "bundle": "x"}, "bundle: there is no bundle 'x'. Served: m.", "没有模型包 'x'"),
        ({"texts": "a", "threshold": 0.5}, "threshold: a bundle of task seq2seq has no threshold.", "没有阈值"),
    ],
)
def test_errors_are_in_the_language_of_the_request(
    client: TestClient, body: dict[str, Any], english: str, chinese: str
) -> None:
    def detail(headers: dict[str, str]) -> str:
        answer = client.post("/v1/predict", json=body, headers=headers)
        assert answer.status_code in (404, 422)
        return str(answer.json()["detail"])

    assert detail({}) == detail(GERMAN) == english
    assert chinese in detail(CHINESE)


def test_refusals_of_both_guards(client: TestClient) -> None:
    lens = TestClient(LocalOnly(FastAPI()), base_url="http://127.0.0.1")
    for one in (client, lens):
        refused = {"Host": "evil.example"}
        assert "does not answer for the host 'evil.example'" in one.get("/ready", headers=refused).json()["detail"]
        assert "主机名" in one.get("/ready", headers=refused | CHINESE).json()["detail"]


@in_own_thread
def test_an_error_that_another_request_caused_is_translated_when_it_is_answered() -> None:
    async def run() -> None:
        queue = BatchQueue(n_workers=1, max_texts=9, max_characters=9, batch_texts=1, batch_seconds=1.0)
        late = QueuedText("key", "a", 1.0, asyncio.get_running_loop().create_future(), "client")
        queue.add([late], 0.0)
        with using("zh"):
            assert queue.take(2.0) == []
        error = late.answer.exception()
        assert isinstance(error, ProblemError)
        with using("en"):
            assert error.detail == "No worker was free before the deadline. Try again later."
        with using("zh"):
            assert json.loads(error.response().body)["detail"].startswith("期限内")

    asyncio.run(run())


def test_the_language_of_a_header() -> None:
    assert [language_of(header) for header in ("", "zh", " ZH-TW, en", "en, zh", "*", "de")] == (
        ["en", "zh", "zh", "en", "en", "en"]
    )
    with using("en"):
        assert str(ProblemError(400, Message("The service is not ready."))) == "The service is not ready."
