"""What a learner reads: the sentence, small tables, hints; and the file to start from."""

import ast
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from manyheads import language
from manyheads.learn.child_process import run_here
from manyheads.learn.examiner import examine
from manyheads.learn.exercise import all_exercises
from manyheads.learn.starting_file import make_file, make_notebook
from manyheads.learn.submission import make_submission
from manyheads.learn.verdict_text import show_verdict, table

WRONG = """# manyheads learn: softmax
import numpy as np
def softmax(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)
"""


def lines(source: str, hints: int = 0) -> list[str]:
    submission = make_submission(Path("softmax.py"), source, all_exercises())
    return show_verdict(examine(submission, run=run_here), submission, hints=hints)


def test_a_named_mistake_with_its_smallest_input() -> None:
    assert lines(WRONG) == [
        "softmax · Softmax that does not overflow",
        "",
        "Your softmax runs down the columns; it must run along each row.",
        "",
        "The smallest input on which it shows:",
        "  x 1×2",
        "  1.0 2.0",
        "",
        "Its result:",
        "  expected 1×2   yours 1×2",
        "  0.269 0.731    1.0 1.0",
        "",
        "For a hint, add --hint 1, 2 or 3: where to look, what has to hold, the line.",
    ]


def test_hints_go_up_to_the_line() -> None:
    assert lines(WRONG, hints=1)[-1] == "Hint 1: Look at the axis."
    assert lines(WRONG, hints=3)[-1] == "Hint 3: the line is axis=-1, keepdims=True"
    count = (
        "# manyheads learn: softmax\nimport numpy as np\ndef softmax(x):\n    x = np.exp(x - x.max(1, keepdims=True))\n"
    )
    count += "    return x / x.shape[1]\n"
    assert lines(count, hints=3)[-1] == "Your line: softmax.py:5: return x / x.shape[1]"


def test_the_same_in_chinese() -> None:
    with language.using("zh"):
        found = lines(WRONG, hints=2)
    assert found[2] == "你的 softmax 沿列向下计算；它应当在每一行之内计算。"
    assert "能看出错误的最小输入：" in found
    assert found[-2] == "提示 1：看一看轴。"


def test_an_error_on_some_inputs_names_the_line() -> None:
    found = lines(WRONG.replace("    e =", "    if x.max() > 1.5: x.none\n    e ="))
    assert found[2].startswith("softmax.py:4: AttributeError: ")


@pytest.mark.parametrize("name", all_exercises())
@pytest.mark.parametrize("code", ["en", "zh"])
def test_the_file_to_start_from_is_python_without_a_solution(name: str, code: str) -> None:
    with language.using(code):
        source = make_file(all_exercises()[name])
    ast.parse(source)
    submission = make_submission(Path("a.py"), source, all_exercises())
    assert submission.exercise == name
    assert source.endswith("raise NotImplementedError\n")
    assert max(map(cell_len, source.splitlines())) <= 120


def test_the_notebook_has_the_same_code() -> None:
    exercise = all_exercises()["attention"]
    cells = json.loads(make_notebook(exercise))["cells"]
    assert "".join(cells[2]["source"]) == "%%learn attention\n" + make_file(exercise)


def test_tables() -> None:
    import numpy as np

    assert table("x", np.array([[1.0, -0.25], [np.nan, np.inf]])) == ["x 2×2", "   1.0 -0.250", "   NaN      ∞"]
    assert table("m", np.array([True, False])) == ["m 2", "1 0"]
    assert table("n", 3) == ["n", "3"]
    assert table("t", np.arange(4).reshape(2, 1, 2)) == ["t 2×1×2", "[0]", "0 1", "[1]", "2 3"]


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_shows_what_the_examiner_says(code: str) -> None:
    docs = Path(__file__).parents[2] / "docs" / ("" if code == "en" else code)
    page = (docs / "tutorials" / "write-attention.md").read_text("utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    answers = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert (len(programs), len(answers)) == (2, 3)
    right = programs[1].replace("return weights @ v", "return np.nan_to_num(weights) @ v")
    for program, answer in zip([*programs, right], answers, strict=True):
        submission = make_submission(Path("attention.py"), program, all_exercises())
        with language.using(code):
            said = show_verdict(examine(submission, run=run_here), submission)
        shown = "".join(answer.split())
        if program is right:
            assert shown.startswith("".join(said[2].split()))
        else:
            assert "".join("".join(said[2:-2]).split()) == shown
