"""The magic of a notebook: what it registers, runs and shows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manyheads.learn
from manyheads.learn.child_process import run_here
from manyheads.learn.notebook_cell import check_cell

WRONG = "import numpy as np\ndef softmax(x):\n    return np.exp(x) / np.exp(x).sum(0)\n"


@pytest.fixture(autouse=True)
def _own_progress(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MANYHEADS_LEARN", str(tmp_path / "learn.json"))


class FakeShell:
    def __init__(self) -> None:
        self.magics: dict[tuple[str, str], Callable[..., Any]] = {}
        self.cells: list[str] = []

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, code: str) -> None:
        self.cells.append(code)


def test_a_cell_is_checked_in_a_child_and_run_in_the_notebook() -> None:
    shell = FakeShell()
    manyheads.learn.load_ipython_extension(shell)
    answer = shell.magics["cell", "learn"]("softmax", WRONG)
    assert "it must run along each row." in repr(answer)
    assert shell.cells == [WRONG]


def test_hints_and_bad_input() -> None:
    answer = check_cell("softmax 1", WRONG, run=run_here)
    assert answer.lines[-2:] == ["Hint 1: Look at the axis.", "Hint 1: Look at what happens before the exponential."]
    assert check_cell("sofmax", WRONG).lines == ["There is no exercise 'sofmax'. Did you mean softmax?"]
    assert check_cell("softmax 4", WRONG).lines == ["The hint is '4'; expected 1, 2 or 3."]
    assert check_cell("softmax", "def softmax(:").lines == ["cell:1: the syntax is wrong: invalid syntax."]
