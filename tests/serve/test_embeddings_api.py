"""OpenAI's embeddings API with a service that answers at once, and the real client with a real worker's answers."""

import base64
from typing import Any

import numpy as np
import pytest
from openai import OpenAI
from starlette.testclient import TestClient

from manyheads.answer.request import AnswerRequest
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.completions_api import completions_router
from manyheads.serve.service.embeddings_api import embeddings_router
from manyheads.serve.service.problems import ProblemError

from serve.fake_service import FakeService, app_of, client_of, listening, writer

ENCODER = BundleDescription("minilm", "embed", "0123456789ab", 1_700_000_002, "vector")


class Embedder(FakeService):
    """Answers with the number of words and a constant."""

    async def predict(self, request: AnswerRequest) -> list[dict[str, Any]]:
        self._ask(request)
        vectors = [[float(len(text.split())), 0.5, -0.25] for text in request.texts]
        return [{"source": "", "answer": vector, "n_tokens": 2} for vector in vectors]


@pytest.fixture
def service() -> Embedder:
    return Embedder(ENCODER, writer("poems"))


@pytest.fixture
def client(service: Embedder) -> TestClient:
    return client_of(embeddings_router(service.service), completions_router(service.service))


def embed(client: TestClient, status: int = 200, **fields: Any) -> Any:
    answer = client.post("/v1/embeddings", json={"model": "minilm", **fields})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_vectors_have_the_shape_of_openai(client: TestClient) -> None:
    assert embed(client, input=["one two", "one"]) == {
        "object": "list",
        "model": "minilm",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [2.0, 0.5, -0.25]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 0.5, -0.25]},
        ],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }


def test_base64_has_little_endian_floats(client: TestClient) -> None:
    (entry,) = embed(client, input="one", encoding_format="base64", dimensions=3, user="me")["data"]
    assert np.frombuffer(base64.b64decode(entry["embedding"]), "<f4").tolist() == [1.0, 0.5, -0.25]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"input": []}, "input", "input must be a text or a list of texts"),
        ({"input": [1, 2]}, "input", "Token ids are not supported"),
        ({"input": [[1], [2]]}, "input", "Token ids are not supported"),
        ({"input": ["a", "  "]}, "input", "input[1] is empty"),
        ({"input": "a", "dimensions": 2}, "dimensions", "The vectors of this model have 3 numbers"),
        ({}, None, "input"),
        ({"input": "a", "encoding_format": "int8"}, None, "encoding_format"),
        ({"input": "a", "extra": 1}, None, "extra"),
    ],
)
def test_what_is_wrong_is_said_in_the_shape_of_openai(
    client: TestClient, fields: dict[str, Any], param: str | None, message: str
) -> None:
    error = embed(client, 400, **fields)["error"]
    assert message in error["message"]
    assert error["param"] == param


def test_a_model_without_vectors_is_not_found(client: TestClient) -> None:
    error = client.post("/v1/embeddings", json={"model": "poems", "input": "a"}).json()["error"]
    assert error["message"] == "The model 'poems' does not exist. Models: minilm."
    assert error["code"] == "model_not_found"
    answer = client.post("/v1/completions", json={"model": "minilm", "prompt": "a"})
    assert answer.status_code == 404
    names = [entry["id"] for entry in client.get("/v1/models").json()["data"]]
    assert names == ["minilm", "poems"]


def test_limits_of_the_service_have_the_shape_of_openai(client: TestClient, service: Embedder) -> None:
    service.error = ProblemError(413, "texts: 200 texts; at most 100 are allowed.")
    assert embed(client, 413, input="a")["error"]["message"].startswith("texts: 200")


def test_the_client_of_openai_gets_the_numbers(service: Embedder) -> None:
    with (
        listening(app_of(embeddings_router(service.service))) as address,
        OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        found = client.embeddings.create(model="minilm", input=["one two three"])
        assert found.data[0].embedding == [3.0, 0.5, -0.25]
        assert found.usage.total_tokens == 2
        plain = client.embeddings.create(model="minilm", input="one", encoding_format="float")
        assert plain.data[0].embedding == [1.0, 0.5, -0.25]
