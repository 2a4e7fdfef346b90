"""`manyheads learn`: the map, a file to start from, and the examiner's answer."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.cli import main

Here = Callable[..., tuple[int, str, str]]
RIGHT = """# manyheads learn: softmax
import numpy as np
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """Run the command in this process, in an empty folder, with progress of its own."""
    monkeypatch.setenv("MANYHEADS_LEARN", str(tmp_path / "progress" / "learn.json"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["manyheads", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capsys.readouterr()
        return int(done.value.code or 0), out, err

    return run


def test_from_the_map_to_a_solution(here: Here, tmp_path: Path) -> None:
    code, out, _err = here("learn")
    assert code == 0
    assert "0 of 33 solved.\nNext: manyheads learn start softmax\n" in out
    code, out, _err = here("learn", "start", "softmax")
    assert (code, out.splitlines()[:2]) == (0, ["Wrote softmax.py", "About 10 minutes."])
    code, out, _err = here("learn", "check", "softmax.py")
    assert code == 1
    assert "not written yet." in out
    (tmp_path / "softmax.py").write_text(RIGHT.replace("axis=1", "axis=0"), "utf-8")
    code, out, _err = here("learn", "check", "softmax.py", "--hint", "1")
    assert code == 1
    assert "Your softmax runs down the columns; it must run along each row." in out
    assert "Hint 1: Look at the axis." in out
    (tmp_path / "softmax.py").write_text(RIGHT, "utf-8")
    code, out, _err = here("learn", "check", "softmax.py")
    assert code == 0
    assert "\nCorrect.\n" in out
    _code, out, _err = here("learn")
    assert "  ✓ softmax " in out
    assert "1 of 33 solved.\nNext: manyheads learn start padding-mask\n" in out
    progress = json.loads((tmp_path / "progress" / "learn.json").read_text("utf-8"))
    assert progress["softmax"]["n_checks"] == 3


def test_in_chinese(here: Here, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(RIGHT.replace("axis=1", "axis=0"), "utf-8")
    code, out, _err = here("learn", "check", "a.py", "--lang", "zh")
    assert code == 1
    assert "你的 softmax 沿列向下计算；它应当在每一行之内计算。" in out
    assert "能看出错误的最小输入：" in out


def test_json(here: Here, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(RIGHT.replace("- x.max(axis=1, keepdims=True)", ""), "utf-8")
    code, out, _err = here("learn", "check", "a.py", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["outcome"], found["mistakes"]) == ("named", ["no-shift"])


def test_a_notebook_is_written_and_checked(here: Here, tmp_path: Path) -> None:
    assert here("learn", "start", "softmax", "--notebook")[0] == 0
    path = tmp_path / "softmax.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"][2]["source"] = ["%%learn softmax\n", *RIGHT.splitlines(keepends=True)]
    path.write_text(json.dumps(notebook), "utf-8")
    assert here("learn", "check", "softmax.ipynb")[0] == 0


def test_a_file_is_not_overwritten(here: Here, tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text("mine", "utf-8")
    code, _out, err = here("learn", "start", "softmax")
    assert code == 1
    assert err == "Error: softmax.py exists already. Choose another file with -o, or add --overwrite.\n"
    assert (tmp_path / "softmax.py").read_text("utf-8") == "mine"
    assert here("learn", "start", "softmax", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["start", "sofmax"], "There is no exercise 'sofmax'. Did you mean softmax?"),
        (["chekc", "a.py"], "There is no command 'chekc'. Did you mean check?"),
        (["check", "missing.py"], "missing.py cannot be read (No such file or directory)."),
        (["check", "a.py", "--hint", "4"], "4 is not in the range 0<=x<=3."),
    ],
)
def test_bad_input_is_one_line(here: Here, words: list[str], message: str) -> None:
    code, _out, err = here("learn", *words)
    assert code != 0
    assert message in err
    assert "Traceback" not in err


def test_a_damaged_progress_file_is_one_line(here: Here, tmp_path: Path) -> None:
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "learn.json").write_text("{", "utf-8")
    code, _out, err = here("learn")
    assert code == 1
    assert "learn.json: not valid JSON" in err


def test_a_file_is_checked_again_when_it_is_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Here, tmp_path: Path
) -> None:
    path = tmp_path / "a.py"
    path.write_text("def softmax(:\n", "utf-8")
    contents = iter([RIGHT.replace("axis=1", "axis=0"), None, RIGHT])

    def save(_seconds: float) -> None:
        try:
            content = next(contents)
        except StopIteration:
            raise KeyboardInterrupt from None
        if content is not None:
            path.write_text(content, "utf-8")

    monkeypatch.setattr("time.sleep", save)
    code, out, err = here("learn", "check", "a.py", "--watch")
    assert code == 0
    assert err.splitlines() == ["a.py:1: the syntax is wrong: invalid syntax."]
    assert out.count("waiting for a.py to change") == 3
    assert out.index("it must run along each row") < out.index("Correct.")
