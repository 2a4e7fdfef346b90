import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from manyheads.serve.local_only import MAX_BODY, LocalOnly


async def _echo(request: Request) -> Response:
    return JSONResponse({"n": len(await request.body())})


@pytest.fixture(scope="module")
def client() -> TestClient:
    app = Starlette(routes=[Route("/", _echo), Route("/api/echo", _echo, methods=["GET", "POST"])])
    return TestClient(LocalOnly(app, hosts=["lens.example"]), base_url="http://127.0.0.1:8877")


@pytest.mark.parametrize("host", ["127.0.0.1:8877", "localhost:8877", "[::1]:8877", "127.0.0.1", "lens.example"])
def test_own_hosts_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8877", "evil.example:127.0.0.1", ""])
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert "does not answer for the host" in answer.json()["detail"]


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.example:8877", "http://[x"]
)
def test_a_foreign_origin_is_refused(client: TestClient, origin: str) -> None:
    assert client.post("/api/echo", json={}, headers={"Origin": origin}).status_code == 403


def test_own_origin_is_answered(client: TestClient) -> None:
    assert client.post("/api/echo", json={}, headers={"Origin": "http://127.0.0.1:8877"}).status_code == 200
    assert client.post("/api/echo", json={}).status_code == 200  # a program, not a page


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_read_the_api(client: TestClient, site: str) -> None:
    assert client.get("/api/echo", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200  # a link to the page may be followed


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_read_the_api_of_a_mounted_page(site: str) -> None:
    page = LocalOnly(Starlette(routes=[Route("/", _echo), Route("/api/echo", _echo)]))
    client = TestClient(Starlette(routes=[Mount("/lens/en-zh", page)]), base_url="http://127.0.0.1:8877")
    assert client.get("/lens/en-zh/api/echo", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/lens/en-zh/", headers={"Sec-Fetch-Site": site}).status_code == 200
    assert client.get("/lens/en-zh/api/echo", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_form_is_refused(client: TestClient) -> None:
    assert client.post("/api/echo", data={"text": "a"}).status_code == 415
    assert client.post("/api/echo", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415


def test_a_large_body_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/echo", content=b"x" * (MAX_BODY + 1), headers=headers).status_code == 413
    assert client.post("/api/echo", content=b"x" * MAX_BODY, headers=headers).status_code == 200


def test_a_body_of_unknown_length_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/echo", content=iter([b"{}"]), headers=headers).status_code == 411


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for answer in (client.get("/"), client.get("/", headers={"Host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
