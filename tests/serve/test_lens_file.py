import base64
import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from manyheads.bundle import Bundle
from manyheads.lens import heads_of
from manyheads.serve.lens_page import lens_file
from manyheads.serve.lens_page.lens_file import lens_page, page_of
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest

from lens.makers import KINDS, SHORT, TEXTS, task_of

EVIL = "</script><script>alert(1)</script><!--\u2028\"'"


def _bundle(kind: str) -> Bundle:
    return Bundle(task=task_of(kind), decode=SHORT, recipe={})


def _script(page: str, start: str) -> Any:
    (content,) = re.findall(f"{re.escape(start)}(.*?)</script>", page, re.DOTALL)
    return json.loads(content)


def _data(page: str) -> Any:
    return _script(page, '<script type="application/json" id="lens-data">')


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_everything_of_its_text(kind: str) -> None:
    data = _data(lens_page(_bundle(kind), [TEXTS[kind]], path=Path("runs/mail/bundle")))
    (traced,) = data["traces"]
    names = [str(head) for head in heads_of(task_of(kind).model)]
    assert [one["name"] for one in data["model"]["bundles"]] == ["mail"]
    assert not data["model"]["bundles"][0]["is_live"]
    assert list(data["maps"][traced["id"]]) == names
    assert set(names) <= set(data["ablations"][traced["id"]])
    assert [one["head"] for one in data["importance"][traced["id"]]["heads"]] == names
    n_rows = sum(one["n_heads"] * one["n_queries"] for one in traced["attentions"])
    assert len(data["walks"][traced["id"]]) == n_rows


def test_the_page_loads_nothing() -> None:
    page = lens_page(_bundle("classify"), [TEXTS["classify"]])
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "default-src 'none'" in page
    modules = _script(page, '<script type="importmap">')["imports"]
    assert {"lens/lens.js", "shared/dom.js"} <= set(modules)
    for url in modules.values():
        source = base64.b64decode(url.removeprefix("data:text/javascript;base64,")).decode()
        specifiers = re.findall(r"""["'](\.\.?/[^"']+|(?:lens|shared)/[^"']+)["']""", source)
        # Types are imported in comments.
        assert [name for name in specifiers if name not in modules and not name.endswith("types.js")] == []


def test_text_cannot_end_a_script() -> None:
    page = lens_page(_bundle("classify"), [EVIL], path=Path(f"{EVIL.replace('/', '')}/bundle"))
    assert "alert(1)</script>" not in page
    assert _data(page)["traces"][0]["text"] == EVIL


def test_ablations_end_with_the_time() -> None:
    session = LensSession([LensModel("a", Path("x"), _bundle("seq2seq"))])
    traced = session.trace(TraceRequest("a", TEXTS["seq2seq"]))
    data = _data(page_of(session, [traced], seconds=0.0))
    assert len(data["ablations"][traced.view["id"]]) <= 1


def test_numbers_are_left_out_of_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_file, "_MAX_WALK_NUMBERS", 100)
    data = _data(lens_page(_bundle("classify"), [TEXTS["classify"]]))
    assert list(data["walks"].values()) == [{}]


def test_two_texts_and_a_survey() -> None:
    data = _data(lens_page(_bundle("classify"), ["no dog", "the red mat"], survey={"state": "ready"}))
    assert [one["text"] for one in data["traces"]] == ["no dog", "the red mat"]
    assert data["model"]["bundles"][0]["examples"] == ["no dog", "the red mat"]
    assert data["survey"] == {"a": {"state": "ready"}}


def test_a_saved_page_opens_in_its_state() -> None:
    session = LensSession([LensModel("a", Path("x"), _bundle("classify"))])
    traced = session.trace(TraceRequest("a", TEXTS["classify"]))
    heads = ["encoder.1.self/0", "encoder.0.self/1"]
    state = urlencode({"text": TEXTS["classify"], "off": ",".join(heads), "find": '"><script>'})
    page = page_of(session, [traced], seconds=0.0, state=state)
    (stored,) = re.findall(r'<html lang="en" data-state="([^"]*)">', page)
    assert html.unescape(stored) == state
    assert ",".join(sorted(heads)) in _data(page)["ablations"][traced.view["id"]]


def test_unknown_heads_of_a_state_are_ignored() -> None:
    session = LensSession([LensModel("a", Path("x"), _bundle("classify"))])
    traced = session.trace(TraceRequest("a", TEXTS["classify"]))
    assert _data(page_of(session, [traced], state="off=encoder.9.self/0"))["traces"]
