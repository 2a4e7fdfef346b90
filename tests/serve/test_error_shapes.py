import json

import pytest
from fastapi import APIRouter

from manyheads.serve.service.error_shapes import ShapedRoute, error_response
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import multipart_field

from serve.fake_service import client_of


@pytest.mark.parametrize("path", ["/translate", "/detect", "/languages", "/frontend/settings", "/health"])
def test_paths_of_libretranslate(path: str) -> None:
    answer = error_response(path, ProblemError(429, "One line.", {"Retry-After": "3"}))
    assert json.loads(bytes(answer.body)) == {"error": "One line."}
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert error_response(path, ProblemError(422, "One line.")).status_code == 400


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models", "/v1/models/a/b"])
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "authentication_error", "invalid_api_key"),
        (403, "permission_error", None),
        (404, "invalid_request_error", "model_not_found"),
        (405, "invalid_request_error", None),
        (429, "rate_limit_error", "rate_limit_exceeded"),
        (500, "server_error", None),
        (504, "server_error", None),
    ],
)
def test_paths_of_openai(path: str, status: int, kind: str, code: str | None) -> None:
    answer = error_response(path, ProblemError(status, "One line."))
    assert answer.status_code == status
    assert json.loads(bytes(answer.body)) == {
        "error": {"message": "One line.", "type": kind, "param": None, "code": code}
    }


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/modelsx", "/", "/translate/x"])
def test_other_paths_are_problems(path: str) -> None:
    answer = error_response(path, ProblemError(422, "One line.", {"Retry-After": "3"}))
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, json.loads(bytes(answer.body))["detail"]) == (422, "One line.")
    assert answer.headers["retry-after"] == "3"


BODY = (
    b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nhi\r\n'
    b'--x\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n%s\r\n--x--\r\n'
)


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (BODY % b"secret", "multipart/form-data; boundary=x", "secret"),
        (BODY % "密".encode(), "multipart/form-data; boundary=x", "密"),
        (BODY % b"\xff", "multipart/form-data; boundary=x", "\ufffd"),
        (BODY % b"secret", "multipart/form-data; boundary=y", None),
        (BODY % b"secret", "multipart/form-data", None),
        (BODY.replace(b"api_key", b"other") % b"secret", "multipart/form-data; boundary=x", None),
        (b"", "multipart/form-data; boundary=x", None),
        (BODY % b"secret", "multipart/form-data; boundary=\xff", None),
    ],
)
def test_one_field_of_a_multipart_form(body: bytes, kind: str, expected: str | None) -> None:
    assert multipart_field(body, kind, "api_key") == expected


def test_a_field_beyond_the_thousandth_is_not_searched_for() -> None:
    """The key is looked for before anybody is known: a hostile form must not take long."""
    other = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nhi\r\n'
    for n_others, expected in ((900, "secret"), (1100, None)):
        body = other * n_others + BODY.removeprefix(other) % b"secret"
        assert multipart_field(body, "multipart/form-data; boundary=x", "api_key") == expected


def test_a_parameter_of_the_address_that_is_not_valid_has_the_shape_of_the_path() -> None:
    router = APIRouter(route_class=ShapedRoute)

    @router.get("/health")
    async def health(number: int) -> int:
        return number

    client = client_of(router)
    assert client.get("/health?number=3").json() == 3
    answer = client.get("/health?number=three")
    assert (answer.status_code, answer.json()) == (400, {"error": "The parameters of the address are not valid."})
