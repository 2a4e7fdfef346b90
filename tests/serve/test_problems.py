"""Errors over HTTP."""

import json

from manyheads.serve.service.problems import ProblemError, problem


def test_a_problem_is_one_json_object_with_its_status() -> None:
    answer = ProblemError(429, "Try again in 1 s.", {"Retry-After": "1"}).response()
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    assert json.loads(bytes(answer.body)) == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "Try again in 1 s.",
    }


def test_half_of_a_surrogate_pair_in_a_value_is_replaced() -> None:
    answer = problem(422, 'decode.length_penalty = "\ud800" should be a number.')
    assert json.loads(bytes(answer.body))["detail"] == 'decode.length_penalty = "?" should be a number.'
