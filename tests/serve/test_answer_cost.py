"""What a request costs: an estimate, which decides how much a client waits for and pays."""

from typing import Any

import pytest

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.language import Language
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.service import answer_cost


def cost(text: str, form: str = "text", options: dict[str, Any] | None = None, **decode: Any) -> float:
    defaults = {"method": "beam", "beam": 4, "n_best": 1, "max_new_tokens": 20}
    bundle = BundleDescription("b", "seq2seq", "1", 0, form, decode=defaults)
    return answer_cost(AnswerRequest("b", (text,), AnswerOptions(decode, **(options or {}))), text, bundle)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 4.0),  # an empty text, too, has a token for each hypothesis
        ({"text": "abcdef"}, 12.0),
        ({"text": "中文"}, 12.0),
        ({"text": "abcdef", "beam": 2}, 6.0),
        ({"text": "abcdef", "method": "greedy"}, 3.0),
        ({"text": "abcdef", "method": "sample", "n_best": 5}, 15.0),
        ({"text": "abcdef", "options": {"glossary": {"a": "b"}}}, 48.0),
        ({"text": "abcdef", "options": {"keep": ["a"]}}, 48.0),
        ({"text": "abcdef", "options": {"keep": []}}, 12.0),
        ({"text": "abcdef", "form": "continuation", "method": "sample"}, 23.0),
        ({"text": "abcdef", "form": "continuation", "method": "sample", "max_new_tokens": 7, "n_best": 2}, 20.0),
        ({"text": "abcdef", "form": "labels"}, 3.0),
    ],
)
def test_cost_is_tokens_times_hypotheses(given: dict[str, Any], expected: float) -> None:
    assert cost(**({"text": ""} | given)) == expected


@pytest.mark.parametrize("beam", ["wide", None, 0, -3, 1.5])
def test_a_setting_that_a_worker_will_refuse_counts_as_one(beam: object) -> None:
    assert cost("abcdef", beam=beam) == 3.0


def test_a_surrogate_can_be_counted() -> None:
    assert cost("\ud800", method="greedy") == 2.0


def test_texts_are_answered_together_if_all_else_is_the_same() -> None:
    def key(bundle: str = "b", beam: int = 2, language: Language = "en", **options: Any) -> str:
        given = {"keep": ("x",), "prefix": "y"} | options
        return AnswerRequest(bundle, ("a",), AnswerOptions({"beam": beam, "n_best": 1}, **given), language).key

    same = AnswerRequest("b", ("c", "d"), AnswerOptions({"n_best": 1, "beam": 2}, prefix="y", keep=("x",)), "en")
    assert key() == same.key
    others = [key("c"), key(beam=3), key(language="zh"), key(align=True), key(threshold=0.5), key(keep=())]
    assert len({key(), *others}) == 7
