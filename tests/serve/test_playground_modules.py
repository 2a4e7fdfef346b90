"""The parts of the playground that compute: requests, command lines, glossaries, streams. They run on Node.js."""

import json
import shlex
from typing import Any

import pytest

from serve.test_page_modules import run

DECODE = {"method": "beam", "beam": 4, "n_best": 1, "temperature": 1.0, "top_p": 1.0, "seed": 1}


def body_of(task: str, text: str = "x", *, terms: Any = (), decode: Any = None, **values: Any) -> dict[str, Any]:
    """Return the body that is sent for a session."""
    bundle = {"name": "b", "task": task, "decode": {**DECODE, **(decode or {})}}
    session = {"bundle": bundle, "text": text, "values": values, "terms": list(terms)}
    body: dict[str, Any] = run(
        "return (await load('playground_request.js')).bodyOf(values.session);",
        session=session,
    )
    return body


def test_only_what_differs_from_the_bundle_is_sent() -> None:
    usual = body_of("seq2seq")
    assert usual == {"bundle": "b", "texts": ["x"], "n_best": 3, "align": True}
    assert body_of("seq2seq", n_best=1, align=False) == {"bundle": "b", "texts": ["x"]}
    assert body_of("seq2seq", n_best=6)["decode"] == {"beam": 6}
    assert body_of("seq2seq", method="greedy") == {
        "bundle": "b",
        "texts": ["x"],
        "align": True,
        "decode": {"method": "greedy"},
    }
    assert body_of("seq2seq", length_penalty=1.5)["decode"] == {"length_penalty": 1.5}
    assert body_of("tag") == {"bundle": "b", "texts": ["x"]}
    assert body_of("classify", threshold=0.5)["threshold"] == 0.5


def test_a_continuation_is_sampled_since_a_beam_search_does_not_stream() -> None:
    assert body_of("language")["decode"] == {"method": "sample"}
    assert "decode" not in body_of("language", decode={"method": "greedy"})
    assert body_of("language", decode={"method": "sample"}, top_p=0.9)["decode"] == {"top_p": 0.9}


def test_incomplete_rows_of_the_glossary_are_left_out() -> None:
    terms = [{"source": " cat ", "target": "猫"}, {"source": "dog", "target": " "}, {"source": "", "target": "鸟"}]
    assert body_of("seq2seq", terms=terms)["glossary"] == {"cat": "猫"}
    assert "glossary" not in body_of("seq2seq", terms=terms, glossary=False)
    html = body_of("seq2seq", format="html", keep="a\n\n b \na")
    assert html["format"] == "html" and html["keep"] == ["a", "b"] and "align" not in html


@pytest.mark.parametrize("text", ["it's", '$HOME `id` \\ "', "一行\n两行\t🙂", "'; rm -rf / #"])
def test_the_command_line_sends_the_same_body(text: str) -> None:
    command = run(
        "const {curlOf} = await load('playground_request.js');"
        "return curlOf('http://h/v1/predict', {bundle: 'b', texts: [values.text]}, true);",
        text=text,
    )
    words = shlex.split(command)
    assert words[:2] == ["curl", "http://h/v1/predict"]
    assert json.loads(words[words.index("-d") + 1]) == {"bundle": "b", "texts": [text]}
    assert "Authorization: Bearer $MANYHEADS_KEY" in words


def test_a_glossary_survives_its_file() -> None:
    found = run(
        "const {parseTsv, writeTsv} = await load('playground_glossary.js');"
        "return [writeTsv(values.terms), '\\ufeffa\\tb\\tc\\r\\n\\r\\nd\\te', 'a\\tb\\nc'].map(parseTsv);",
        terms=[{"source": "a\tb", "target": " 猫 "}, {"source": "x", "target": ""}],
    )
    assert found[0] == {"terms": [{"source": "a b", "target": "猫"}], "wrongLine": 0}
    assert found[1] == {"terms": [{"source": "a", "target": "b"}, {"source": "d", "target": "e"}], "wrongLine": 0}
    assert found[2]["wrongLine"] == 2


def test_events_are_split_wherever_the_stream_is_cut() -> None:
    text = 'data: {"a": 1}\n\n: a comment\n\ndata: two\ndata: lines\r\n\r\ndata: [DONE]\n\n'
    found = run(
        "const {splitEvents} = await load('playground_api.js');"
        "return Array.from({length: values.text.length}, (_, cut) => {"
        "  const [first, rest] = splitEvents(values.text.slice(0, cut));"
        "  const [second, left] = splitEvents(rest + values.text.slice(cut));"
        "  return [...first, ...second, left];"
        "});",
        text=text,
    )
    assert all(one == ['{"a": 1}', "two\nlines", "[DONE]", ""] for one in found), found


def test_words_are_found_one_after_the_other() -> None:
    found = run(
        "return (await load('playground_alignment.js')).placesOf(values.text, values.words);",
        text="the 🙂 cat the",
        words=["the", "🙂", "dog", "the"],
    )
    assert found == [{"start": 0, "end": 3}, {"start": 4, "end": 6}, None, {"start": 11, "end": 14}]


def test_examples_are_in_the_source_language() -> None:
    code = "const {examplesOf} = await load('playground_examples.js'); return values.bundles.map(examplesOf);"
    bundles = [
        {"task": "seq2seq", "languages": ["zh-CN", "en"]},
        {"task": "tag", "languages": ["en"], "examples": ["own"]},
        {"task": "tag", "languages": ["xx"]},
        {"task": "tag", "languages": []},
    ]
    chinese, own, unknown, both = run(code, bundles=bundles)
    assert chinese and all("一" <= text[0] <= "鿿" for text in chinese)
    assert own == ["own"] and unknown == [] and len(both) == 2


def test_bad_fields_of_an_address_are_ignored() -> None:
    code = "const {readAddress} = await load('playground_address.js'); return readAddress(values.hash);"
    assert run(code, hash="#bundle=a%26b&lang=zh&theme=dark&text=secret") == {
        "bundle": "a&b",
        "lang": "zh",
        "theme": "dark",
    }
    assert run(code, hash=f"#bundle={'x' * 300}&lang=fr&theme=<b>") == {}
