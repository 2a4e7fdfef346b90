"""What a request costs: an estimate, which decides how much a client waits for and pays."""

from typing import Any

import pytest

from manyheads.serve.work import ServedBundle, Work


def cost(text: str, task: str = "seq2seq", options: dict[str, Any] | None = None, **decode: Any) -> float:
    bundle = ServedBundle("b", task, "1", 0, decode={"method": "beam", "beam": 4, "n_best": 1, "max_new_tokens": 20})
    return Work("b", (text,), decode, options=options or {}).cost(text, bundle)


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
        ({"text": "abcdef", "task": "language", "method": "sample"}, 23.0),
        ({"text": "abcdef", "task": "language", "method": "sample", "max_new_tokens": 7, "n_best": 2}, 20.0),
        ({"text": "abcdef", "task": "classify"}, 3.0),
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
    work = Work("b", ("a",), {"beam": 2, "n_best": 1}, options={"keep": ["x"], "prefix": "y"})
    same = Work("b", ("c", "d"), {"n_best": 1, "beam": 2}, options={"prefix": "y", "keep": ["x"]})
    assert work.how == same.how
    others = [
        Work("c", ("a",), work.decode, options=work.options),
        Work("b", ("a",), {"beam": 3, "n_best": 1}, options=work.options),
        Work("b", ("a",), work.decode, align=True, options=work.options),
        Work("b", ("a",), work.decode, threshold=0.5, options=work.options),
        Work("b", ("a",), work.decode),
    ]
    assert len({work.how, *(one.how for one in others)}) == 6
