"""The application of the service without workers: health, metrics, and one line about each faulty request."""

import pytest
from starlette.testclient import TestClient

from manyheads.serve.service.access import Access
from manyheads.serve.service.service import Service
from manyheads.serve.service.service_app import DirectRoutes, make_service_app
from manyheads.serve.service.settings import ServeSettings

from own_thread import in_own_thread


@pytest.fixture
def client() -> TestClient:
    app = in_own_thread(lambda: make_service_app(Service({"b": "folder"}, ServeSettings(workers=2)), Access({})))()
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def test_it_is_live_and_not_ready_before_its_workers(client: TestClient) -> None:
    assert client.get("/live").json() == {"status": "live"}
    ready = client.get("/ready")
    assert (ready.status_code, ready.json()["detail"]) == (503, "0 of 2 workers are ready.")


def test_metrics_name_routes_and_not_what_somebody_asked_for(client: TestClient) -> None:
    client.get("/live")
    client.get("/secret-of-somebody")
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'manyheads_requests_total{path="/live",status="200"} 1.0' in answer.text
    assert 'manyheads_requests_total{path="other",status="404"} 1.0' in answer.text
    assert "manyheads_workers 2.0" in answer.text
    assert "somebody" not in answer.text


@pytest.mark.parametrize(
    ("path", "content", "kind", "status", "detail"),
    [
        ("/v1/predict", b'{"texts": 5}', "application/json", 422, "texts.str: Input should be a valid string"),
        ("/v1/predict", b'{"texts": "a", "x": 1}', "application/json", 422, "x: Extra inputs are not permitted"),
        ("/v1/predict", b'{"texts": "a"', "application/json", 400, "The body is not valid: send JSON in UTF-8"),
        ("/v1/predict", b'{"texts": "a"}', "text/plain", 415, "The body must be JSON."),
        ("/v1/predict", b'{"texts": "a"}', "application/json", 404, "No bundle is served."),
        ("/nothing", b"", "application/json", 404, "POST /nothing: Not Found."),
        ("/live", b"", "application/json", 405, "POST /live: Method Not Allowed."),
    ],
)
def test_a_faulty_request_gets_one_line(
    client: TestClient, path: str, content: bytes, kind: str, status: int, detail: str
) -> None:
    answer = client.post(path, content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.json()["detail"].startswith(detail)
    assert "\n" not in answer.json()["detail"] and len(answer.json()["detail"]) <= 300


@in_own_thread
def test_a_direct_route_answers_as_the_application_would() -> None:
    answers = []
    for is_direct in (True, False):
        guard = make_service_app(Service({}, ServeSettings(workers=1)), Access({}))
        assert isinstance(guard.app, DirectRoutes)
        assert list(guard.app.routes) == [("/v1/predict", "POST")]
        (route,) = guard.app.routes.values()
        if not is_direct:
            guard.app = guard.app.app
        client = TestClient(guard, base_url="http://127.0.0.1", raise_server_exceptions=False)
        own = []
        for content, kind in (
            (b'{"texts": "a"}', "application/json"),
            (b'{"texts": "a"}', "application/problem+json; charset=utf-8"),
            (b'{"texts": "a"}', "text/plain"),
            (b'{"texts": 5, "x": 1}', "application/json"),
            (b'{"texts": "a"', "application/json"),
            (b'{"texts": []}', "application/json"),
            (b"", "application/json"),
        ):
            answer = client.post("/v1/predict", content=content, headers={"content-type": kind})
            own.append((answer.status_code, answer.headers, answer.content))
        own += [(client.request(method, "/v1/predict").status_code, None, b"") for method in ("GET", "PUT", "HEAD")]
        own.append((client.post("/v1/predict/", content=b"{}").status_code, None, b""))

        async def fail(body: object) -> None:
            raise RuntimeError("secret")

        route.endpoint = fail
        answer = client.post("/v1/predict", json={"texts": "a"})
        own.append((answer.status_code, answer.headers, answer.content))
        own.append((0, None, client.get("/metrics").text.partition("manyheads_requests_created")[0].encode()))
        answers.append(own)
    direct, usual = answers
    assert direct[-2][0] == 500
    assert b"secret" not in direct[-2][2]
    assert direct == usual
