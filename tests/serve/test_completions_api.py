"""OpenAI's completions API with a service that answers at once; the real client is in test_clients.py."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from manyheads.serve.service.completions_api import completions_router
from manyheads.serve.service.problems import ProblemError

from serve.fake_service import FakeService, client_of, translator, writer


@pytest.fixture
def service() -> FakeService:
    return FakeService(translator("en", "zh"), writer("poems"), writer("plays"), max_beam=8, max_texts=5)


@pytest.fixture
def client(service: FakeService) -> TestClient:
    return client_of(completions_router(service.service))


def complete(client: TestClient, status: int = 200, **fields: Any) -> Any:
    answer = client.post("/v1/completions", json={"model": "poems", **fields})
    assert answer.status_code == status, answer.text
    return answer.json()


def events(client: TestClient, **fields: Any) -> list[Any]:
    answer = client.post("/v1/completions", json={"model": "poems", "stream": True, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def test_a_completion_has_the_shape_of_openai(client: TestClient) -> None:
    answer = complete(client, prompt="one two", seed=5)
    assert answer.pop("id").startswith("cmpl-")
    assert answer.pop("created") > 1_700_000_000
    assert answer == {
        "object": "text_completion",
        "model": "poems",
        "system_fingerprint": "fp_ba9876543210",
        "choices": [{"text": "sample 0 end", "index": 0, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5},
    }


def test_parameters_become_decoding_settings(client: TestClient, service: FakeService) -> None:
    complete(client, prompt="a", max_tokens=7, temperature=0.5, top_p=0.9, n=2, stop=["x", "y"], seed=2**31 + 5)
    complete(client, prompt="a", temperature=None, top_p=None, n=None, stop="x", max_tokens=None, seed=-1)
    assert [dict(request.options.decode) for request in service.asked] == [
        {
            "max_new_tokens": 7, "method": "sample", "temperature": 0.5, "top_p": 0.9, "n_best": 2, "stop": ("x", "y"),
            "seed": 5,
        },
        {
            "max_new_tokens": 16, "method": "sample", "temperature": 1.0, "top_p": 1.0, "n_best": 1, "stop": ("x",),
            "seed": 2**31 - 1,
        },
    ]  # fmt: skip


def test_without_a_seed_every_request_has_another(client: TestClient, service: FakeService) -> None:
    for _ in range(3):
        complete(client, prompt="a")
    assert len({request.options.decode["seed"] for request in service.asked}) == 3


@pytest.mark.parametrize("parameter", [{"temperature": 0}, {"top_p": 0}])
def test_temperature_0_is_greedy(client: TestClient, service: FakeService, parameter: dict[str, int]) -> None:
    answer = complete(client, prompt="a", n=2, **parameter)
    assert [one["text"] for one in answer["choices"]] == ["greedy 0 end"] * 2
    assert service.asked[0].options.decode == {"max_new_tokens": 16, "method": "greedy", "n_best": 1, "stop": ()}


def test_choices_of_several_prompts_are_numbered_through(client: TestClient) -> None:
    answer = complete(client, prompt=["one", "two three"], n=2, echo=True)
    assert [(one["index"], one["text"]) for one in answer["choices"]] == [
        (0, "onesample 0 end"),
        (1, "onesample 1 end"),
        (2, "two threesample 0 end"),
        (3, "two threesample 1 end"),
    ]
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 12, "total_tokens": 15}


def test_a_completion_that_reaches_the_limit_says_so(client: TestClient) -> None:
    assert complete(client, prompt="a", max_tokens=3)["choices"][0]["finish_reason"] == "length"
    assert events(client, prompt="a", max_tokens=3)[-1]["choices"][0]["finish_reason"] == "length"


def test_a_prompt_may_be_left_out(client: TestClient, service: FakeService) -> None:
    complete(client)
    assert service.asked[0].texts == ("",)


def test_a_stream_has_the_same_text_in_parts(client: TestClient, service: FakeService) -> None:
    found = events(client, prompt="a", seed=3)
    assert [one["choices"][0]["text"] for one in found] == ["sample", " 0", " end", ""]
    assert [one["choices"][0]["finish_reason"] for one in found] == [None, None, None, "stop"]
    assert len({one["id"] for one in found}) == 1
    assert all(one["object"] == "text_completion" and "usage" not in one for one in found)
    assert service.asked[0].options.decode["seed"] == 3
    assert service.n_open_streams == 0


def test_a_stream_of_several_prompts_and_completions(client: TestClient, service: FakeService) -> None:
    found = events(client, prompt=["p ", "q "], n=2, echo=True, seed=2**31 - 1, stream_options={"include_usage": True})
    texts = dict.fromkeys(range(4), "")
    for one in found[:-1]:
        assert one["usage"] is None
        texts[one["choices"][0]["index"]] += one["choices"][0]["text"]
    assert texts == dict(enumerate(["p sample 0 end", "p sample 0 end", "q sample 0 end", "q sample 0 end"]))
    assert [request.options.decode["seed"] for request in service.asked] == [2**31 - 1, 0, 2**31 - 1, 0]
    assert found[-1]["choices"] == []
    assert found[-1]["usage"] == {"prompt_tokens": 2, "completion_tokens": 12, "total_tokens": 14}


@pytest.mark.parametrize(
    ("error", "kind"), [(ProblemError(503, "No worker."), "server_error"), (TimeoutError(), "server_error")]
)
def test_an_error_in_a_stream_is_an_event(
    client: TestClient, service: FakeService, error: Exception, kind: str
) -> None:
    service.error_in_stream = error
    first, last = events(client, prompt="a")
    assert first["choices"][0]["text"] == "sample"
    assert last["error"]["type"] == kind
    assert service.n_open_streams == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "expected", "kind", "code"),
    [
        (422, 400, "invalid_request_error", None),
        (413, 413, "invalid_request_error", None),
        (429, 429, "rate_limit_error", "rate_limit_exceeded"),
        (503, 503, "server_error", None),
    ],
)
def test_errors_before_the_first_part_have_their_status(
    client: TestClient, service: FakeService, stream: bool, status: int, expected: int, kind: str, code: str | None
) -> None:
    service.error = ProblemError(status, "One line.", {"Retry-After": "2"})
    answer = client.post("/v1/completions", json={"model": "poems", "prompt": "a", "stream": stream})
    assert answer.status_code == expected
    assert answer.headers["retry-after"] == "2"
    assert answer.json() == {"error": {"message": "One line.", "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logprobs": 0}, "logprobs"),
        ({"best_of": 3}, "best_of"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"suffix": "x"}, "suffix"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": -1}, "frequency_penalty"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": ""}, "stop"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": [[1], [2]]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a"] * 6}, "prompt"),
        ({"n": 9}, "n"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(client: TestClient, fields: dict[str, Any], param: str) -> None:
    for stream in (False, True) if param != "stream_options" else (False,):
        error = complete(client, 400, **({"prompt": "a"} | fields), stream=stream)["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert error["message"]


def test_values_that_change_nothing_are_accepted(client: TestClient) -> None:
    neutral = {"suffix": "", "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0, "user": "u", "echo": None}
    assert complete(client, prompt="a", n=2, best_of=2, logprobs=None, stream_options=None, **neutral)["choices"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": -1}, "Invalid request: max_tokens: Input should be greater than or equal to 0"),
        ({"max_tokens": "7"}, "Invalid request: max_tokens: Input should be a valid integer"),
        ({"temperature": 2.5}, "Invalid request: temperature: Input should be less than or equal to 2"),
        ({"n": 0}, "Invalid request: n: Input should be greater than or equal to 1"),
        ({"top_k": 3}, "Invalid request: unknown parameter top_k"),
        ({"model": None}, "Invalid request: model: Input should be a valid string"),
    ],
)
def test_wrong_values_are_one_line(client: TestClient, fields: dict[str, Any], message: str) -> None:
    assert complete(client, 400, prompt="a", **fields)["error"]["message"] == message


def test_forms_and_other_bodies_are_refused(client: TestClient) -> None:
    assert client.post("/v1/completions", content=b"{").status_code == 415
    answer = client.post("/v1/completions", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("The body is not valid JSON")
    assert client.post("/v1/completions").json()["error"]["message"] == "Invalid request: missing model parameter"


def test_models_are_the_language_bundles(client: TestClient) -> None:
    poems = {"id": "poems", "object": "model", "created": 1_700_000_001, "owned_by": "manyheads"}
    assert client.get("/v1/models").json() == {"object": "list", "data": [poems, poems | {"id": "plays"}]}
    assert client.get("/v1/models/poems").json() == poems


@pytest.mark.parametrize("name", ["en-zh", "gpt-4", "a/b", "x" * 500])
def test_another_model_does_not_exist(client: TestClient, name: str) -> None:
    expected = f"The model {name[:80]!r} does not exist. Models: poems, plays."
    for answer in (client.get(f"/v1/models/{name}"), client.post("/v1/completions", json={"model": name})):
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert (error["message"], error["param"], error["code"]) == (expected, "model", "model_not_found")


def test_a_server_without_language_bundles_says_so() -> None:
    client = client_of(completions_router(FakeService(translator("en", "zh")).service))
    assert client.get("/v1/models").json()["data"] == []
    assert "no language bundle" in complete(client, 404)["error"]["message"]


def test_a_stream_has_at_most_as_many_completions_as_streams_are_allowed(service: FakeService) -> None:
    limited = FakeService(writer("poems"), max_streams=6)
    client = client_of(completions_router(limited.service))
    assert len({one["choices"][0]["index"] for one in events(client, prompt=["a", "b"], n=3)}) == 6
    error = complete(client, 400, prompt=["a", "b"], n=4, stream=True)["error"]
    assert error["message"] == "A stream of 8 completions: at most 6 are allowed."
    assert len(complete(client, prompt=["a", "b"], n=4)["choices"]) == 8
