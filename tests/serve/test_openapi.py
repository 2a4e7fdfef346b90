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

from manyheads.serve.service.service_app import ROUTERS

from own_thread import in_own_thread
from serve.fake_service import FakeService, app_of, translator, writer
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
    ("POST", "/v1/embeddings"),
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
WITH_BODY = ("/translate", "/detect", "/v1/completions", "/v1/predict", "/v1/embeddings")
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
    # No bundle has a generated name, and none gives vectors: tests/serve/test_embeddings_api.py has one.
    found = 404 if "{" in path or path == "/v1/embeddings" else 200
    assert (found if "{" in path or is_positive else 400) in statuses


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_wrong_method_is_refused_in_the_shape_of_the_path(service: ServiceProcess, method: str, path: str) -> None:
    answer = service.request(path.replace("{", "").replace("}", ""), method="DELETE")
    assert answer.status == 405
    shown = answer.json.get("error") or answer.json["detail"]
    assert "Method Not Allowed" in (shown["message"] if isinstance(shown, dict) else shown)


@in_own_thread
def test_the_document_describes_every_parameter_and_every_refusal() -> None:
    service = FakeService(translator("en", "zh"), writer()).service
    found = app_of(*(make(service) for make in ROUTERS)).openapi()
    schemas = found["components"]["schemas"]
    for path in WITH_BODY:
        operation = found["paths"][path]["post"]
        # The guard before all handlers refuses with these; 413 and 415 are those of a body.
        assert {"200", "400", "401", "403", "408", "413", "415", "429", "503", "504"} <= {*operation["responses"]}
        assert all(response["description"] for response in operation["responses"].values())
        for content in operation["requestBody"]["content"].values():
            schema = content["schema"]
            fields = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            assert _without_description(fields) == []
    assert schemas["PredictRequest"]["examples"][0]["texts"]
    for name in ("400", "503"):
        problem = found["paths"]["/v1/predict"]["post"]["responses"][name]["content"]["application/problem+json"]
        assert problem["schema"]["properties"]["detail"]["description"]
    assert schemas["LibreTranslateError"]["properties"]["error"]["description"]


def _without_description(schema: Any) -> list[str]:
    """The fields of an object, and of objects inside of it, that are not described."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
    found = [name for name, field in fields.items() if not field.get("description")]
    return [*found, *(name for one in inner for name in _without_description(one))]
