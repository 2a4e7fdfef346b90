"""`BodyRoute` answers every body as FastAPI's own route does."""

from typing import Annotated

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from manyheads.serve.service.body_route import BodyRoute


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    texts: list[str]
    number: Annotated[int, Field(ge=1)] = 1


@pytest.fixture(scope="module")
def client() -> TestClient:
    async def endpoint(given: Given) -> Response:
        return JSONResponse(given.model_dump())

    app = FastAPI()
    app.add_api_route("/fastapi", endpoint, methods=["POST"])
    app.router.add_api_route("/ours", endpoint, methods=["POST"], route_class_override=BodyRoute)
    return TestClient(app)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/x+json"])
@pytest.mark.parametrize("body", [b'{"texts": ["a", "\xc3\xa9"]}', b'{"texts": [], "number": "2"}'])
def test_valid_bodies(client: TestClient, kind: str, body: bytes) -> None:
    ours, theirs = (client.post(path, content=body, headers={"Content-Type": kind}) for path in ("/ours", "/fastapi"))
    assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/json-seq", ""])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{",
        b"[" * 100_000,
        b'{"texts": 3, "number": 0, "other": 1}',
        b'{"texts": [], "number": ' + b"9" * 5000 + b"}",
    ],
    ids=["empty", "null", "open", "deep", "types", "digits"],
)
def test_invalid_bodies(client: TestClient, kind: str, body: bytes) -> None:
    ours, theirs = (client.post(path, content=body, headers={"Content-Type": kind}) for path in ("/ours", "/fastapi"))
    assert ours.status_code == (400 if body == b"{" and kind == "application/json" else theirs.status_code)
    assert ours.status_code in (400, 422)
    if body.startswith(b'{"texts": 3') and kind == "application/json":
        assert [fault["loc"] for fault in ours.json()["detail"]] == [fault["loc"] for fault in theirs.json()["detail"]]


def test_a_body_that_is_not_utf8(client: TestClient) -> None:
    for path in ("/ours", "/fastapi"):
        response = client.post(path, content=b'{"texts": "\xff"}', headers={"Content-Type": "application/json"})
        assert response.status_code == 400


def test_fastapi_documents_it(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert paths["/ours"]["post"]["requestBody"] == paths["/fastapi"]["post"]["requestBody"]
