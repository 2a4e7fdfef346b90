"""Bodies of LibreTranslate's /translate in every encoding."""

import json
from typing import Annotated, Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from manyheads.serve.service.libretranslate_api import libretranslate_router
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import BodyRoute, read_json

from serve.fake_service import FakeService, client_of, translator

FIELDS = {"q": "你好 & a+b=c\r\n", "source": "en", "target": "zh"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}


@pytest.fixture
def service() -> FakeService:
    return FakeService(translator("en", "zh"))


@pytest.fixture
def client(service: FakeService) -> TestClient:
    return client_of(libretranslate_router(service.service))


def refusal(client: TestClient, status: int = 400, path: str = "/translate", **request: Any) -> str:
    answer = client.post(path, **request)
    assert answer.status_code == status
    assert [*answer.json()] == ["error"]
    return str(answer.json()["error"])


@pytest.mark.parametrize(
    "request_",
    [
        {"json": FIELDS},
        {"data": FIELDS},
        {"files": {name: (None, value) for name, value in FIELDS.items()}},
        {"params": FIELDS},
        {"params": {"source": "en", "target": "xx"}, "data": {"q": FIELDS["q"], "target": "zh"}},
        {"content": urlencode(FIELDS), "headers": {"content-type": FORM["content-type"] + "; charset=utf-8"}},
        {"content": "q=你好 %26 a%2Bb=c\r\n&source=en&target=zh".encode(), "headers": FORM},
    ],
    ids=["json", "form", "multipart", "query", "form and query", "charset", "as curl sends it"],
)
def test_every_encoding_gives_the_same_text(client: TestClient, service: FakeService, request_: dict[str, Any]) -> None:
    answer = client.post("/translate", **request_)
    assert answer.status_code == 200, answer.text
    assert service.asked[0].texts == (FIELDS["q"],)


@pytest.mark.parametrize("encoding", ["data", "files"])
def test_a_field_that_is_there_twice_is_a_list(client: TestClient, service: FakeService, encoding: str) -> None:
    fields = [("q", "ab"), ("q", "cd"), ("q", "ef"), ("source", "en"), ("target", "zh"), ("alternatives", "1")]
    if encoding == "data":
        answer = client.post("/translate", content=urlencode(fields), headers=FORM)
    else:
        answer = client.post("/translate", files=[(name, (None, value)) for name, value in fields])
    assert answer.json() == {"translatedText": ["ba", "dc", "fe"], "alternatives": [["ba 1"], ["dc 1"], ["fe 1"]]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "The body is not valid JSON"),
        (b"", "The body is not valid JSON"),
        (b"\xff\xfe", "The body is not valid JSON"),
        (b'{"q": "\\ud800"}', "The body is not valid JSON"),
        (b"[" * 100_000, "The body is not valid JSON"),
        (b'["q"]', 'The body is not a JSON object such as {"q": "…"}.'),
        (b"null", 'The body is not a JSON object such as {"q": "…"}.'),
    ],
)
def test_bodies_that_are_not_json_objects(client: TestClient, content: bytes, message: str) -> None:
    assert refusal(client, content=content, headers={"content-type": "application/json"}).startswith(message)


@pytest.mark.parametrize(
    "charset", ["undefined", "punycode", "idna", "unicode_escape", "utf-7", "utf-16", "nonsense", '"x']
)
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", FORM["content-type"], "application/json"])
def test_charsets_but_utf8_are_refused(client: TestClient, charset: str, kind: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n\\ud800+2AA-\r\n--b--\r\n'
    headers = {"content-type": f"{kind}; charset={charset}"}
    assert "is not supported. Send UTF-8." in refusal(client, 415, content=body, headers=headers)


@pytest.mark.parametrize("value", [1, "a", [1], {}, None, "\\", '"'])
def test_bodies_with_many_values_are_refused_before_any_is_made(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    made: list[bytes] = []
    monkeypatch.setattr("manyheads.serve.service.request_bodies.from_json", made.append)
    body = json.dumps({"q": [value] * 40_000, "source": "en", "target": "zh"}).encode()
    assert "values; at most 5,000 are allowed." in refusal(client, 413, content=body, headers=JSON)
    assert "values; at most 5,000" in refusal(client, 413, json={f"x{n}": n for n in range(10_000)})
    assert not made


@pytest.mark.parametrize("text", ["a,b" * 5000, '"' * 5001, "\\" * 5001, '[{"' * 5001, '\\"' * 5001])
def test_what_a_text_contains_is_not_counted(client: TestClient, service: FakeService, text: str) -> None:
    assert client.post("/translate", json={"q": f"a{text}", "source": "en", "target": "zh"}).status_code == 200
    assert service.asked[0].texts == (f"a{text}",)


def test_exactly_as_many_values_as_allowed_are_read() -> None:
    assert read_json(b"[" + b"1," * 5000 + b"1]") == [1] * 5001
    with pytest.raises(ProblemError, match="The body has 5,001 values"):
        read_json(b"[" + b"1," * 5001 + b"1]")
    assert read_json(b"[" + b'"",' * 4999 + b'""]') == [""] * 5000
    with pytest.raises(ProblemError, match="The body has 5,001 values"):
        read_json(b"[" + b'"",' * 5000 + b'""]')
    with pytest.raises(ProblemError, match="The body has 7,000 values"):  # texts and numbers
        read_json(b"[" + b'"",' * 5000 + b"1," * 2000 + b"1]")


def test_of_many_wrong_entries_the_first_is_named(client: TestClient) -> None:
    message = refusal(client, json={"q": [1] * 2000, "source": "en", "target": "zh"})
    assert "q.0: Input should be a valid string" in message
    assert "q.1" not in message


def test_forms_that_cannot_be_read(client: TestClient) -> None:
    assert refusal(client, content=b"q=%ff", headers=FORM) == "The form is not valid UTF-8."
    assert refusal(client, content=b"q=\xff", headers=FORM) == "The form is not valid UTF-8."
    assert refusal(client, content=b"&".join([b"a=1"] * 1001), headers=FORM) == "The form has more than 1000 fields."
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    assert refusal(client, content=b"broken", headers=multipart).startswith("The form cannot be read")
    no_boundary = {"content-type": "multipart/form-data"}
    assert refusal(client, content=b"--x--", headers=no_boundary).startswith("The form cannot be read")
    assert refusal(client, files={"q": ("a.txt", b"abc")}) == "q is a file. Send its text as a field."


def test_another_type_of_body_is_refused(client: TestClient) -> None:
    message = "A body of type text/plain is not supported. Send application/json or application/x-www-form-urlencoded."
    assert refusal(client, 415, content=b"hello", headers={"content-type": "text/plain"}) == message
    assert refusal(client, 415, content=b"hello").startswith("A body of type (none) is not supported.")


def test_an_empty_request_lacks_everything(client: TestClient) -> None:
    assert refusal(client) == (
        "Invalid request: missing q parameter; missing source parameter; missing target parameter"
    )


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    texts: list[str]
    number: Annotated[int, Field(ge=1)] = 1


@pytest.fixture(scope="module")
def client_body_route() -> TestClient:
    async def endpoint(given: Given) -> Response:
        return JSONResponse(given.model_dump())

    app = FastAPI()
    app.add_api_route("/fastapi", endpoint, methods=["POST"])
    app.router.add_api_route("/ours", endpoint, methods=["POST"], route_class_override=BodyRoute)
    return TestClient(app)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/x+json"])
@pytest.mark.parametrize("body", [b'{"texts": ["a", "\xc3\xa9"]}', b'{"texts": [], "number": "2"}'])
def test_valid_bodies(client_body_route: TestClient, kind: str, body: bytes) -> None:
    ours, theirs = (
        client_body_route.post(path, content=body, headers={"Content-Type": kind}) for path in ("/ours", "/fastapi")
    )
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
def test_invalid_bodies(client_body_route: TestClient, kind: str, body: bytes) -> None:
    ours, theirs = (
        client_body_route.post(path, content=body, headers={"Content-Type": kind}) for path in ("/ours", "/fastapi")
    )
    assert ours.status_code == (400 if body == b"{" and kind == "application/json" else theirs.status_code)
    assert ours.status_code in (400, 422)
    if body.startswith(b'{"texts": 3') and kind == "application/json":
        assert [fault["loc"] for fault in ours.json()["detail"]] == [fault["loc"] for fault in theirs.json()["detail"]]


def test_a_body_that_is_not_utf8(client_body_route: TestClient) -> None:
    for path in ("/ours", "/fastapi"):
        response = client_body_route.post(
            path, content=b'{"texts": "\xff"}', headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400


def test_fastapi_documents_it(client_body_route: TestClient) -> None:
    paths = client_body_route.get("/openapi.json").json()["paths"]
    assert paths["/ours"]["post"]["requestBody"] == paths["/fastapi"]["post"]["requestBody"]
