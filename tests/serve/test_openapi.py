"""schemathesis on the OpenAPI document of a real server: requests that fit the document, and requests that do not.

The examples are the same in every run. A longer run is a benchmark.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from own_thread import in_own_thread
from serve.service_process import ServiceProcess

OPERATIONS = [
    ("POST", "/translate"),
    ("POST", "/detect"),
    ("GET", "/languages"),
    ("GET", "/frontend/settings"),
    ("GET", "/health"),
    ("POST", "/v1/completions"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("POST", "/v1/predict"),
    ("GET", "/v1/bundles"),
    ("POST", "/v1/bundles/{name}/reload"),
    ("GET", "/live"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# Names that a generated text never hits, so that requests that fit the document are answered.
VALID: dict[str, dict[str, Any]] = {
    "/translate": {"source": "zh", "target": "en"},
    "/v1/completions": {"model": "language", "max_tokens": 5},
    "/v1/predict": {"bundle": "seq2seq", "decode": {}},
}
WITH_BODY = ("/translate", "/detect", "/v1/completions", "/v1/predict")
CASES = [(method, path, GenerationMode.POSITIVE) for method, path in OPERATIONS]
CASES += [("POST", path, GenerationMode.NEGATIVE) for path in WITH_BODY]
N_EXAMPLES = 40


@pytest.fixture(scope="module")
@in_own_thread
def document(service: ServiceProcess) -> Any:
    return schemathesis.openapi.from_url(f"{service.address}openapi.json")


@in_own_thread
def test_every_operation_of_the_document_is_tried(document: Any) -> None:
    found = [operation.ok() for operation in document.get_all_operations()]
    assert {(one.method.upper(), one.path) for one in found} == {*OPERATIONS}


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
@in_own_thread
def test_answers_are_those_of_the_document(document: Any, method: str, path: str, mode: GenerationMode) -> None:
    operation = document[path][method]
    is_positive, has_input = mode == GenerationMode.POSITIVE, "{" in path or path in WITH_BODY
    checks = CHECKS if is_positive else [*CHECKS, negative_data_rejection]
    statuses = set()

    @settings(
        max_examples=N_EXAMPLES if has_input else 1,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Case) -> None:
        if is_positive and isinstance(case.body, dict):
            case.body |= VALID.get(path, {})
        statuses.add(case.call_and_validate(checks=checks, timeout=60).status_code)

    send()
    assert (404 if "{" in path else 200 if is_positive else 400) in statuses  # no bundle has a generated name


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_wrong_method_is_refused_in_the_shape_of_the_path(service: ServiceProcess, method: str, path: str) -> None:
    answer = service.request(path.replace("{", "").replace("}", ""), method="DELETE")
    assert answer.status == 405
    shown = answer.json.get("error") or answer.json["detail"]
    assert "Method Not Allowed" in (shown["message"] if isinstance(shown, dict) else shown)
