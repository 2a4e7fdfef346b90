import json
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from manyheads.bundle import Bundle
from manyheads.language import Language
from manyheads.lens import Head, heads_of, trace
from manyheads.serve.lens_page import lens_session
from manyheads.serve.lens_page.lens_app import make_app
from manyheads.serve.lens_page.lens_model import MAX_CHARACTERS, LensModel
from manyheads.serve.lens_page.lens_session import LensSession

from lens.makers import KINDS, SHORT, TEXTS, task_of


@cache
def _bundle(kind: str) -> Bundle:
    return Bundle(task=task_of(kind), decode=SHORT, recipe={})


@cache
def _client(*kinds: str) -> TestClient:
    bundles = [LensModel(id, Path(kind), _bundle(kind)) for id, kind in zip("ab", kinds, strict=False)]
    return TestClient(make_app(LensSession(bundles)), base_url="http://127.0.0.1", raise_server_exceptions=True)


def _post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_of_every_head_is_that_of_the_model(kind: str) -> None:
    client, task = _client(kind), task_of(kind)
    traced = _post(client, "trace", text=TEXTS[kind])
    expected = trace(task, TEXTS[kind], search=SHORT)
    for one in traced["attentions"]:
        for number in range(one["n_heads"]):
            answer = client.get(f"/api/traces/{traced['id']}/heads/{one['name']}/{number}/weights")
            values = np.frombuffer(zlib.decompress(answer.content), dtype="<f4") * float(answer.headers["X-Scale"])
            values = values.reshape(one["n_queries"], one["n_keys"])
            assert np.abs(values - expected.weights(Head(one["name"], number)).numpy()).max() < 1e-5
            assert len(traced["sides"][one["queries"]]["tokens"]) == one["n_queries"]
            assert len(traced["sides"][one["keys"]]["tokens"]) == one["n_keys"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_that_of_predict(kind: str) -> None:
    traced = _post(_client(kind), "trace", text=TEXTS[kind])
    (prediction,) = _bundle(kind).predictions([TEXTS[kind]])
    expected = prediction.line() if kind in ("tag", "masked") else prediction.answer
    assert traced["output"]["answer"] == (expected if isinstance(expected, str) else prediction.line())


@pytest.mark.parametrize("kind", KINDS)
def test_ablation_of_all_heads_and_of_none(kind: str) -> None:
    client = _client(kind)
    traced = _post(client, "trace", text=TEXTS[kind])
    none = _post(client, "ablate", trace=traced["id"], heads=[])
    assert none["free"]["answer"] == traced["output"]["answer"]
    names = [str(head) for head in heads_of(task_of(kind).model)]
    everything = _post(client, "ablate", trace=traced["id"], heads=names)
    assert everything["heads"] == names
    assert _post(client, "trace", text=TEXTS[kind]) == traced  # the model is as it was


def test_two_tabs_ablate_at_once() -> None:
    client = _client("seq2seq")
    traced = _post(client, "trace", text=TEXTS["seq2seq"])
    names = [str(head) for head in heads_of(task_of("seq2seq").model)]
    alone = [_post(client, "ablate", trace=traced["id"], heads=[name]) for name in names]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda name: _post(client, "ablate", trace=traced["id"], heads=[name]), names * 3))
    assert together == alone * 3


def test_importance_and_contrast() -> None:
    client = _client("seq2seq")
    traced = _post(client, "trace", text=TEXTS["seq2seq"])
    importance = _post(client, "importance", trace=traced["id"])
    assert [one["head"] for one in importance["heads"]] == [str(head) for head in heads_of(task_of("seq2seq").model)]
    other = traced["output"]["tokens"][0]["alternatives"][1]
    contrast = _post(client, "contrast", trace=traced["id"], position=traced["output"]["first"], instead=other["id"])
    assert len(contrast["heads"]) == len(importance["heads"])


def test_a_row_of_numbers() -> None:
    client = _client("classify")
    traced = _post(client, "trace", text=TEXTS["classify"])
    row = client.get(f"/api/traces/{traced['id']}/walk/encoder.0.self/1/2").json()
    expected = trace(task_of("classify"), TEXTS["classify"]).weights("encoder.0.self/1")[2]
    assert [key["weight"] for key in row["keys"]] == pytest.approx(expected.tolist(), abs=1e-5)
    assert client.get(f"/api/traces/{traced['id']}/walk/encoder.0.self/1/9999").status_code == 422


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
@pytest.mark.parametrize("view", ["matrix", "arcs"])
def test_pictures(form: str, start: bytes, view: str) -> None:
    client = _client("seq2seq")
    traced = _post(client, "trace", text=TEXTS["seq2seq"])
    answer = client.get(f"/api/traces/{traced['id']}/picture/decoder.0.cross/1?format={form}&view={view}&unit=words")
    assert answer.status_code == 200
    assert answer.content.startswith(start)
    assert f"decoder.0.cross.1.{view}.{form}" in answer.headers["content-disposition"]


@pytest.mark.parametrize("language", ["en", "zh", None])
def test_the_page_opens_in_the_language_of_the_command(language: Language | None) -> None:
    session = LensSession([LensModel("a", Path("classify"), _bundle("classify"))])
    client = TestClient(make_app(session, language=language), base_url="http://127.0.0.1")
    traced = _post(client, "trace", text=TEXTS["classify"])
    for path in ("/", f"/api/traces/{traced['id']}/page.html"):
        start = client.get(path).text.partition("<head>")[0]
        assert f'lang="{language or "en"}"' in start
        assert ("data-language" in start) == (language is not None)  # otherwise the browser decides


def test_what_is_asked_of_a_picture_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _client("seq2seq")
    traced = _post(client, "trace", text=TEXTS["seq2seq"])
    drawn: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "manyheads.serve.lens_page.lens_session.draw_head",
        lambda maps, head, **given: (drawn.append(given), b"picture")[1],
    )
    path = f"/api/traces/{traced['id']}/picture/decoder.0.cross/1"
    for query in ("", "?format=png&view=arcs&kind=norms&unit=words&mass=0.25&lang=zh"):
        assert client.get(path + query).content == b"picture"
    for given in drawn:
        assert [len(side.tokens) for side in (given["sides"].source, given["sides"].target)] == [
            len(traced["sides"][name]["tokens"]) for name in ("source", "target")
        ]
        del given["sides"]
    first = {"format": "svg", "view": "matrix", "kind": "weights", "unit": "tokens", "mass": 0.6, "language": "en"}
    assert drawn == [
        first,
        {"format": "png", "view": "arcs", "kind": "norms", "unit": "words", "mass": 0.25, "language": "zh"},
    ]


def test_an_evicted_text_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_session, "_MAX_TEXTS", 1)
    client = TestClient(
        make_app(LensSession([LensModel("a", Path("x"), _bundle("classify"))])), base_url="http://127.0.0.1"
    )
    first = _post(client, "trace", text="first text")
    _post(client, "trace", text="second text")
    assert _post(client, "importance", trace=first["id"])["trace"] == first["id"]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({}, 422, "text must be of type str."),
        ({"text": 3}, 422, "text must be of type str."),
        ({"text": ""}, 422, "The text is empty. Type a sentence."),
        ({"text": " \n"}, 422, "The text is empty. Type a sentence."),
        ({"text": "a" * (MAX_CHARACTERS + 1)}, 422, "20,001 characters; at most 20,000"),
        ({"text": "a " * 5000}, 422, "this model reads at most"),
        ({"text": "a", "bundle": "z"}, 404, "There is no bundle 'z'. Known: a."),
        ({"text": "a", "step": 7}, 422, "There is no snapshot of step 7"),
        ({"text": "a", "step": True}, 422, "step must be of type int."),
        ({"text": "\x00"}, 422, "The text is empty"),
        ({"text": "\ud800"}, 422, "U+D800"),
    ],
)
def test_faulty_texts(body: dict[str, Any], status: int, detail: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = _client("seq2seq").post("/api/trace", content=json.dumps(body), headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert detail in problem["detail"] and "\n" not in problem["detail"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["😀", "مرحبا", "<script>alert(1)</script>", "\"'\\", "a\u2028b"])
def test_odd_texts_are_answered(kind: str, text: str) -> None:
    traced = _post(_client(kind), "trace", text=text)
    assert traced["text"] == text


def test_an_encoder_takes_no_answer() -> None:
    answer = _client("classify").post("/api/trace", json={"text": "a", "answer": "b"})
    assert answer.status_code == 422 and "writes no answer" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("call", "status", "detail"),
    [
        (lambda c, i: c.post("/api/ablate", json={"trace": i, "heads": ["encoder.9.self/0"]}), 422, "There is no head"),
        (lambda c, i: c.post("/api/ablate", json={"trace": i, "heads": [3]}), 422, "heads must be a list of names"),
        (lambda c, i: c.post("/api/ablate", json={"trace": "0", "heads": []}), 404, "no longer in memory"),
        (lambda c, i: c.post("/api/ablate", json=[1]), 422, "must be a JSON object"),
        (lambda c, i: c.get(f"/api/traces/{i}/heads/encoder.0.self/99/weights"), 422, "has heads 0 to"),
        (lambda c, i: c.get(f"/api/traces/{i}/heads/encoder.0.self/0/scores"), 422, "weights or norms"),
        (lambda c, i: c.get(f"/api/traces/{i}/picture/encoder.0.self/0?format=gif"), 422, "format = 'gif' is not"),
        (lambda c, i: c.get(f"/api/traces/{i}/picture/encoder.0.self/0?mass=2"), 422, "is not a number from 0 to 1"),
        (lambda c, i: c.get(f"/api/traces/{i}/picture/encoder.0.self/0?mass=nan"), 422, "is not a number from 0 to 1"),
        (lambda c, i: c.get("/api/heads?bundle=z"), 404, "There is no bundle"),
        (lambda c, i: c.get("/api/heads/encoder.0.self/99/effect"), 422, "has heads 0 to"),
        (lambda c, i: c.get("/lens/nothing.js"), 404, "There is no"),
        (lambda c, i: c.get("/..%2f..%2fbundle.py"), 404, ""),
        (lambda c, i: c.get("/types.d.ts"), 404, ""),
        (lambda c, i: c.put("/api/trace", json={}), 405, ""),
    ],
)
def test_faulty_requests(call: Callable[[TestClient, str], Any], status: int, detail: str) -> None:
    client = _client("seq2seq")
    answer = call(client, _post(client, "trace", text=TEXTS["seq2seq"])["id"])
    assert answer.status_code == status, answer.text
    assert detail in answer.json()["detail"]


def test_a_body_that_is_not_json() -> None:
    headers = {"Content-Type": "application/json"}
    for content in (b"{", b"\xff", b"[" * 100_000):
        assert _client("seq2seq").post("/api/trace", content=content, headers=headers).status_code == 400


def test_two_bundles() -> None:
    client = _client("classify", "seq2seq")
    assert [one["id"] for one in client.get("/api/model").json()["bundles"]] == ["a", "b"]
    first, second = (_post(client, "trace", text="the dog ran", bundle=id) for id in "ab")
    assert first["output"]["task"] == "classify" and second["output"]["task"] == "seq2seq"
