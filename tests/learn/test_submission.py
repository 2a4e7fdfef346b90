"""A learner's file: what is wrong with it is one line with its place."""

import json
from pathlib import Path

import pytest

from manyheads.errors import LearnError
from manyheads.learn.child_process import run_here
from manyheads.learn.examiner import Verdict, examine
from manyheads.learn.exercise import all_exercises
from manyheads.learn.submission import make_submission, read_submission

NUMPY = "# manyheads learn: attention\nimport numpy as np\n"
TORCH = "# manyheads learn: attention\nimport torch\n"
SIGNATURE = "def attention(q, k, v, visible):\n"


def check(source: str) -> Verdict:
    return examine(make_submission(Path("a.py"), source, all_exercises()), run=run_here)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (NUMPY + "def attention(q, k, v, visible)\n    return q\n", "a.py:3: the syntax is wrong: expected ':'."),
        (
            NUMPY + "def atention(q, k, v, visible): pass\n",
            "a.py: there is no function attention. It defines atention.",
        ),
        (NUMPY, "a.py: there is no function attention. It defines no function."),
        (NUMPY + "class attention: pass\n", "a.py:3: attention is a class; expected a function."),
        (
            NUMPY + "def attention(q, k, v): pass\n",
            "a.py:3: attention takes (q, k, v); expected (q, k, v, visible).",
        ),
        (
            NUMPY + "def attention(q, k, v, *, visible): pass\n",
            "a.py:3: attention takes (q, k, v); expected (q, k, v, visible).",
        ),
        ("# manyheads learn: atention\n", "There is no exercise 'atention'. Did you mean attention?"),
        ("x = 1\n", "a.py does not say which exercise it is for. Begin it with: # manyheads learn: NAME"),
        (
            NUMPY + 'MASK = "shown"\n' + SIGNATURE + "    return q\n",
            'a.py: MASK is \'shown\'; expected one of "visible", "hidden", "additive".',
        ),
    ],
)
def test_a_file_that_cannot_be_checked(source: str, message: str) -> None:
    with pytest.raises(LearnError) as error:
        make_submission(Path("a.py"), source, all_exercises())
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (NUMPY + SIGNATURE + "    pass\n", "a.py:3: attention returns None; expected an array of shape (2, 2)."),
        (
            NUMPY + SIGNATURE + "    yield q\n",
            "a.py:3: attention returns generator; expected an array of shape (2, 2).",
        ),
        (
            NUMPY + SIGNATURE + "    w = q @ k.T\n    return w @ v, w, v\n",
            "a.py:5: attention returns a tuple of 3; expected an array of shape (2, 2).",
        ),
        (NUMPY + SIGNATURE + "    raise NotImplementedError\n", "a.py:4: not written yet."),
        (NUMPY + SIGNATURE + "    x = 1\n    return q @ nothing\n", "a.py:5: NameError: name 'nothing' is not defined"),
        (NUMPY + "1 / 0\n" + SIGNATURE + "    return q\n", "a.py:3: ZeroDivisionError: division by zero"),
        (
            NUMPY + SIGNATURE + "    q *= 2\n    return q @ k.T @ v\n",
            "a.py:3: attention changes its input q in place. Work on a copy.",
        ),
        (
            NUMPY + SIGNATURE + "    return np.zeros((len(q), v.shape[1]), np.float16)\n",
            "a.py:4: the result has the dtype float16; expected float32 or float64.",
        ),
        (
            NUMPY + SIGNATURE + "    return np.ones((len(q), v.shape[1]), np.int64)\n",
            "a.py:4: the result has the dtype int64; expected float32 or float64.",
        ),
        (
            NUMPY + SIGNATURE + "    return np.ones((len(q), v.shape[1]), complex)\n",
            "a.py:4: the result has the dtype complex128; expected float32 or float64.",
        ),
        (
            TORCH + SIGNATURE + "    return (q @ k.T @ v).to('meta')\n",
            "a.py:4: the result is on the device meta; expected cpu.",
        ),
        (NUMPY + "attention = 3\n", "a.py:3: attention is a int; expected a function."),
    ],
)
def test_a_result_that_cannot_be_compared(source: str, reason: str) -> None:
    verdict = check(source)
    assert verdict.outcome == "refused"
    assert verdict.reason == reason


def test_nan_is_reported_as_such() -> None:
    verdict = check(NUMPY + SIGNATURE + "    return np.full((len(q), v.shape[1]), np.nan)\n")
    assert verdict.sentences() == ["The result contains NaN or an infinite number."]


def test_an_error_on_some_inputs_is_shown_with_its_line() -> None:
    source = NUMPY + SIGNATURE + "    if len(q) != 2: raise ValueError('two')\n    return np.zeros((2, v.shape[1]))\n"
    verdict = check(source)
    assert verdict.outcome == "failed"


def test_a_number_called_mask_is_no_declaration() -> None:
    source = NUMPY + "MASK = -1e9\n" + SIGNATURE + "    return q\n"
    assert make_submission(Path("a.py"), source, all_exercises()).mask == "visible"


def test_a_file_without_a_mark_is_recognized_by_its_function() -> None:
    source = "import numpy as np\n" + SIGNATURE + "    return q\n"
    assert make_submission(Path("a.py"), source, all_exercises()).exercise == "attention"


def test_a_notebook_is_read_cell_by_cell(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["text"]},
        {
            "cell_type": "code",
            "source": ["# manyheads learn: attention\n", "%matplotlib inline\n", "import numpy as np"],
        },
        {"cell_type": "code", "source": "def attention(q, k, v, visible):\n    return q @ nothing"},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf-8")
    submission = read_submission(path, all_exercises())
    verdict = examine(submission, run=run_here)
    assert verdict.reason == f"{path}, cell 3, line 2: NameError: name 'nothing' is not defined"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ipynb", b"[]", "is not a notebook: it has no cells."),
        ("a.ipynb", b"{", "not valid JSON"),
        ("a.py", b"\xff\xfe", "is not UTF-8 text."),
        ("a.py", b"x = 1\x00", "(cannot be read|syntax is wrong): source code string cannot contain null bytes."),
        ("a.py", b"#" * 2_000_000, "more than 1,000,000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LearnError, match=message):
        read_submission(path, all_exercises())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(LearnError, match="cannot be read"):
        read_submission(tmp_path / "a.py", all_exercises())
