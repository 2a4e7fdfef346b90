"""The service's own API: what a request asks of a bundle, its limits, and its answers and streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.predict_api import PredictRequest, predict_router
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service

from own_thread import in_own_thread
from serve.fake_service import FakeService, client_of, translator
from serve.service_process import ServiceProcess

BEAM = translator("zh", "en", "m")  # a beam of 4
GREEDY = translator("zh", "en", "m", decode={"method": "greedy", "beam": 4})
SAMPLE = translator("zh", "en", "m", decode={"method": "sample", "beam": 4})


def asked(bundle: BundleDescription = BEAM, **fields: Any) -> AnswerRequest:
    return PredictRequest(**({"texts": "a"} | fields)).answer_request(bundle)


def test_a_request_without_options_asks_for_the_bundles_own_settings() -> None:
    options = AnswerOptions({}, threshold=None, align=False, format="text", glossary={}, keep=(), prefix="")
    assert asked(texts="a") == AnswerRequest("m", ("a",), options)
    assert asked(texts=["a", "", "b"]).texts == ("a", "", "b")


def test_no_texts_are_refused() -> None:
    with pytest.raises(ProblemError, match="texts is empty") as caught:
        asked(texts=[])
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("bundle", "fields", "decode"),
    [
        (BEAM, {"n_best": 1}, {"n_best": 1}),
        (BEAM, {"n_best": 4}, {"n_best": 4}),
        (BEAM, {"n_best": 5}, {"n_best": 5, "beam": 5}),
        (BEAM, {"n_best": 5, "decode": {"beam": 6}}, {"n_best": 5, "beam": 6}),
        (BEAM, {"n_best": 5, "decode": {"beam": 2}}, {"n_best": 5, "beam": 5}),
        (BEAM, {"n_best": 5, "decode": {"method": "sample"}}, {"n_best": 5, "method": "sample"}),
        (GREEDY, {"n_best": 1}, {"n_best": 1}),
        (GREEDY, {"n_best": 2}, {"n_best": 2, "method": "beam"}),
        (GREEDY, {"n_best": 5}, {"n_best": 5, "method": "beam", "beam": 5}),
        # What the client chose is not changed: the settings say that a greedy search has one candidate.
        (GREEDY, {"n_best": 2, "decode": {"method": "greedy"}}, {"n_best": 2, "method": "greedy"}),
        (SAMPLE, {"n_best": 9}, {"n_best": 9}),
        (translator("zh", "en", "m", decode={}), {"n_best": 5}, {"n_best": 5, "beam": 5}),
        (translator("zh", "en", "m", decode={}), {"n_best": 4}, {"n_best": 4}),
        (BEAM, {"n_best": 5, "decode": {"beam": "wide"}}, {"n_best": 5, "beam": "wide"}),  # refused by the settings
    ],
)
def test_candidates_get_a_search_that_finds_as_many(
    bundle: BundleDescription, fields: dict[str, Any], decode: dict[str, Any]
) -> None:
    assert asked(bundle, **fields).options.decode == decode


def test_fields_reach_the_bundle_and_zero_or_blank_is_not_the_same_as_none() -> None:
    fields = {"glossary": {"猫": "cat"}, "keep": ["x"], "prefix": "", "format": "html"}
    options = asked(align=True, threshold=0.0, abstain=0.0, **fields).options
    assert options == AnswerOptions({"abstain": 0.0}, 0.0, True, "html", {"猫": "cat"}, ("x",), "")
    body = PredictRequest(texts="a", decode={"beam": 2}, n_best=3, abstain=0.5)
    assert body.answer_request(BEAM).options.decode == {"beam": 3, "n_best": 3, "abstain": 0.5}
    assert body.decode == {"beam": 2}


@pytest.mark.parametrize(
    ("field", "allowed", "refused"),
    [
        ("n_best", [1, 256, None], [0, 257, 1.5, "x"]),
        ("threshold", [0, 0.999, None], [-0.001, 1, "nan"]),
        ("abstain", [0, 1, None], [-0.001, 1.001, "nan"]),
        ("glossary", [{}, {f"t{n}": "x" for n in range(1000)}], [{f"t{n}": "x" for n in range(1001)}, {"a": 1}, ["a"]]),
        ("keep", [[], ["x"] * 1000], [["x"] * 1001, [1], "x"]),
        ("prefix", ["", "x"], [1, ["x"]]),
        ("format", ["text", "html", None], ["HTML", "markdown", ""]),
        ("decode", [{}, {"stop": ["a"], "beam": 2, "seed": None, "temperature": 0.5}], [{"a": {}}, {"a": [1]}, []]),
        ("texts", ["", [], ["a"]], [None, [None], [1], [["a"]], {}]),
        ("bundle", ["x", None], [1]),
        ("beam", [], [3]),  # an unknown field
    ],
)
def test_limits_of_fields(field: str, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        assert getattr(PredictRequest(**{"texts": "a", field: value}), field) == value
    for value in refused:
        with pytest.raises(ValidationError):
            PredictRequest(**{"texts": "a", field: value})


class Answering(FakeService):
    """Finds bundles as the service does, and limits the number of texts."""

    find = Service.find

    def __init__(self, *bundles: BundleDescription, **settings: Any) -> None:
        super().__init__(*bundles, **settings)
        self.n_cancelled = 0

    def check(self, request: AnswerRequest) -> None:
        if len(request.texts) > self.settings.max_texts:
            raise ProblemError(413, "too many texts")

    async def predict_json(self, request: AnswerRequest) -> list[str]:
        return [json.dumps(one, ensure_ascii=False) for one in await self.predict(request)]

    async def predict(self, request: AnswerRequest) -> list[dict[str, Any]]:
        try:
            if "slow" in request.texts:
                await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return await super().predict(request)

    async def reload(self, name: str) -> BundleDescription:
        return self.bundles[name]


@pytest.fixture
def answering() -> Answering:
    tagger = BundleDescription("标注", "tag", "0123456789ab", 1_700_000_000, "spans", labels=("A",))
    return Answering(translator("zh", "en", "m"), tagger, max_texts=3)


@pytest.fixture
def client(answering: Answering) -> TestClient:
    return client_of(predict_router(answering.service))


def test_an_answer_names_its_bundle_and_version_and_keeps_the_order(client: TestClient, answering: Answering) -> None:
    answer = client.post("/v1/predict", json={"bundle": "标注", "texts": ["ab", "", "cd"]})
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    assert [one["answer"] for one in content.pop("predictions")] == ["ba", "", "dc"]
    assert content == {"bundle": "标注", "task": "tag", "version": "0123456789ab"}
    assert answering.asked == [AnswerRequest("标注", ("ab", "", "cd"))]


def test_bundles_are_listed_and_loaded_again(client: TestClient) -> None:
    first, second = client.get("/v1/bundles").json()["bundles"]
    assert (first["name"], first["languages"], second["labels"]) == ("m", ["zh", "en"], ["A"])
    assert client.post("/v1/bundles/m/reload").json() == first


def test_each_text_of_a_stream_is_an_event(client: TestClient, answering: Answering) -> None:
    answer = client.post("/v1/predict", json={"bundle": "m", "texts": ["ab", "cd"], "stream": True, "n_best": 2})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *lines, end, _ = answer.text.split("\n\n")
    assert end == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [(one["index"], one["done"]["answer"]) for one in events] == [(0, "ba"), (1, "dc")]
    assert answering.asked == [AnswerRequest("m", (text,), AnswerOptions({"n_best": 2})) for text in ("ab", "cd")]


def test_a_stream_has_the_limits_of_a_request(client: TestClient, answering: Answering) -> None:
    with pytest.raises(ProblemError, match="too many texts") as caught:
        client.post("/v1/predict", json={"bundle": "m", "texts": ["a"] * 4, "stream": True})
    assert caught.value.status == 413
    assert answering.asked == []


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (ProblemError(422, "The text is odd."), 422, "The text is odd."),
        (TimeoutError(), 504, "The stream was not finished in time."),
    ],
)
def test_an_error_after_the_first_event_is_an_event(
    client: TestClient, answering: Answering, error: Exception, status: int, detail: str
) -> None:
    ask = answering.predict

    async def fail(request: AnswerRequest) -> list[dict[str, Any]]:
        if request.texts == ("b",):
            raise error
        return await ask(request)

    answering.predict = fail  # type: ignore[method-assign]
    answer = client.post("/v1/predict", json={"bundle": "m", "texts": ["a", "b", "c"], "stream": True})
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n")[:-1]]
    assert [json.loads(line) for line in lines[1:-1]] == [{"error": {"status": status, "detail": detail}}]


def test_texts_of_a_stream_whose_client_left_are_cancelled(answering: Answering) -> None:
    from manyheads.serve.service.predict_api import _events

    async def leave() -> int:
        request = AnswerRequest("m", ("a", "slow", "slow"))
        events: AsyncIterator[dict[str, Any]] = _events(answering.service, answering.bundles["m"], request)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return answering.n_cancelled

    assert in_own_thread(lambda: asyncio.run(leave()))() == 2


# With the real service and trained bundles.


def test_candidates_alignment_and_decode_settings(service: ServiceProcess) -> None:
    (one,) = service.predict("猫在睡觉。", bundle="seq2seq", n_best=3, align=True)
    assert len(one["candidates"]) == 3
    assert one["source_words"] == ["猫", "在", "睡", "觉", "。"]
    assert all(len(link) == 2 for link in one["alignment"])
    (short,) = service.predict("猫在睡觉。", bundle="seq2seq", decode={"max_new_tokens": 1})
    assert not short["candidates"][0]["finished"]


def test_glossary_keep_and_prefix(service: ServiceProcess) -> None:
    (one,) = service.predict("猫在睡觉。", bundle="seq2seq", glossary={"猫": "tiger"}, keep=["睡觉"], prefix="Look:")
    assert one["answer"].startswith("Look:")
    assert "tiger" in one["answer"]
    assert "睡觉" in one["answer"]
    refused = service.request("/v1/predict", {"bundle": "tag", "texts": "a", "glossary": {"a": "b"}})
    assert (refused.status, refused.json["detail"]) == (
        422,
        "glossary, keep and prefix are for translation; this is a bundle of the task tag.",
    )


def test_tags_of_html_stay(service: ServiceProcess) -> None:
    html = "<p>猫在<b>睡觉</b>。</p><pre>猫</pre>"
    (one,) = service.predict(html, bundle="seq2seq", format="html", glossary={"猫": "tiger"})
    assert one["answer"].startswith("<p>")
    assert one["answer"].endswith("</p><pre>猫</pre>")
    assert one["answer"].count("<b>") == one["answer"].count("</b>") == 1
    assert "tiger" in one["answer"]
    for body in ({"bundle": "tag"}, {"bundle": "seq2seq", "align": True}):
        assert service.request("/v1/predict", {"texts": html, "format": "html", **body}).status == 422


def test_a_translation_with_low_confidence_abstains(service: ServiceProcess) -> None:
    (one,) = service.predict("猫在睡觉。", bundle="seq2seq", abstain=1.0)
    assert (one["abstained"], one["answer"]) == (True, "")
    assert one["candidates"][0]["text"]


def test_a_language_bundle_streams_what_it_would_answer(service: ServiceProcess) -> None:
    answer = service.request("/v1/predict", {"bundle": "language", "texts": "从前", "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in answer.content.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    *deltas, last = [json.loads(line) for line in lines[:-1]]
    (expected,) = service.predict("从前", bundle="language")
    assert "".join(one["delta"] for one in deltas) == last["done"]["answer"] == expected["answer"]
    assert last["done"]["n_new_tokens"] == expected["n_new_tokens"] > 0


def test_other_tasks_stream_text_by_text(service: ServiceProcess) -> None:
    answer = service.request("/v1/predict", {"bundle": "tag", "texts": ["a", "b"], "stream": True})
    events = [json.loads(line[6:]) for line in answer.content.decode().split("\n\n")[:2]]
    assert [(one["index"], one["done"]["source"]) for one in events] == [(0, "a"), (1, "b")]
