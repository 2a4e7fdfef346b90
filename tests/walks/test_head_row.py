"""One row of a walk: JSON numbers that follow from one another and equal the trace."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from manyheads.errors import LensError
from manyheads.lens import Head, trace_input
from manyheads.walks.head_row import walk_row, walk_rows

from lens.makers import ANSWER, KINDS, MODELS, TEXTS, WRITERS, task_of

CLOSE = {"rtol": 0, "atol": 1e-12}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["seq2seq", "language"])
def test_each_number_follows_from_the_previous_ones(kind: str, model: str) -> None:
    task = task_of(kind, model)
    model_input = task.model_input("the cat", " mat")
    recorded = trace_input(task.model, model_input)
    for name, traced in recorded.attentions.items():
        for query in (0, 2):
            row = walk_row(task, model_input, Head(name, 1), query)
            json.dumps(asdict(row), allow_nan=False)
            assert len(row.keys) == len(traced.keys)
            scores = []
            for key in row.keys:
                assert math.fsum(key.terms) == pytest.approx(key.product, abs=1e-12)
                score = key.product / row.scale + (key.bias or 0.0)
                assert key.score == (pytest.approx(score, abs=1e-12) if key.visible else None)
                scores.append(-math.inf if key.score is None else key.score)
                assert key.exponential / row.exponential_sum == pytest.approx(key.weight, abs=1e-12)
            expected = [math.exp(score - max(scores)) for score in scores]
            np.testing.assert_allclose([key.exponential for key in row.keys], expected, **CLOSE)
            mixed = sum(key.weight * np.array(key.v) for key in row.keys)
            np.testing.assert_allclose(row.weighted_sum, mixed, **CLOSE)
            assert row.contribution_norm == pytest.approx(float(np.linalg.norm(row.contribution)), abs=1e-12)
            assert row.shares[row.head] == pytest.approx(row.contribution_norm, abs=1e-12)
            # The same as the trace, which is in single precision.
            np.testing.assert_allclose([key.weight for key in row.keys], traced.weights[1, query], atol=1e-5)
            norms = [float(traced.head_output(head)[query].norm()) for head in range(traced.n_heads)]
            np.testing.assert_allclose(row.shares, norms, rtol=1e-4, atol=1e-5)


def test_row_without_the_scale_is_beside_the_row() -> None:
    task = task_of("seq2seq")
    row = walk_row(task, task.model_input("the cat", "mat"), "encoder.0.self/2", 1)
    assert row.scale == math.sqrt(row.head_width) == 2.0
    plain = np.exp([key.product for key in row.keys])
    np.testing.assert_allclose([key.weight_unscaled for key in row.keys], plain / plain.sum(), **CLOSE)
    cosine = task_of("seq2seq", "cosine, shared")
    assert walk_row(cosine, cosine.model_input("no", "mat"), "encoder.0.self/0", 0).keys[0].weight_unscaled is None


def test_masked_keys_have_no_score() -> None:
    task = task_of("language")
    row = walk_row(task, task.model_input("the dog ran"), "decoder.1.self/3", 1)
    assert [key.visible for key in row.keys] == [True, True, False, False]
    assert [key.score is None for key in row.keys] == [False, False, True, True]
    assert [key.weight for key in row.keys][2:] == [0.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_and_readable_names(kind: str) -> None:
    task = task_of(kind)
    attention = task.model.attentions()[-1].name
    row = walk_row(task, task.model_input(TEXTS[kind], "no" if kind in WRITERS else None), Head(attention, 0), 0)
    assert row.query_name == (" no" if kind == "seq2seq" else "BOS")  # what cross-attention writes
    assert (row.attention, row.head, row.query) == (attention, 0, 0)
    if kind == "seq2seq":
        assert [key.name for key in row.keys][-2:] == [".", "EOS"]
        assert row.keys[0].name == " the"


@pytest.mark.parametrize(
    ("head", "query", "message"),
    [
        ("decoder.0.cross/1", 3, r"^There is no query at position 3 of decoder\.0\.cross\. Allowed: 0 to 1\.$"),
        ("encoder.0.self/1", -1, r"^There is no query at position -1 of encoder\.0\.self\. Allowed: 0 to 2\.$"),
        ("encoder.0.self/7", 0, r"^There is no head encoder\.0\.self/7: encoder\.0\.self has heads 0 to 3\.$"),
        ("encoder.7.self/0", 0, r"^There is no layer 'encoder\.7\.self'\. Known: encoder\.0\.self, "),
        ("7", 0, r"^'7' is not a head\. "),
    ],
)
def test_bad_input_is_refused(head: str, query: int, message: str) -> None:
    task = task_of("seq2seq")
    with pytest.raises(LensError, match=message):
        walk_row(task, task.model_input("the cat", "mat"), head, query)


def test_rows_together_equal_rows_one_by_one() -> None:
    task = task_of("seq2seq")
    model_input = task.model_input(TEXTS["seq2seq"], ANSWER)
    together = list(walk_rows(task, model_input, "decoder.1.cross"))
    n_queries = len(model_input.target)
    assert len(together) == n_queries * task.model.settings.heads.n_heads
    assert together[n_queries + 1] == walk_row(task, model_input, "decoder.1.cross/1", 1)
