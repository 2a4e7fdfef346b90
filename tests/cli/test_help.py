"""--help: at once, with an example, in two languages."""

import pytest

from cli.conftest import Run

COMMANDS = (
    "quickstart",
    "init",
    "doctor",
    "train",
    "evaluate",
    "predict",
    "quantize",
    "shortlist",
    "heads",
    "walk",
    "bench",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_chinese(manyheads: Run, command: str) -> None:
    done = manyheads(command, "--help")
    assert done.returncode == 0
    assert "Example · 例" in done.stdout
    assert f"manyheads {command}" in done.stdout


def test_the_commands_are_listed_in_the_order_one_meets_them(manyheads: Run) -> None:
    text = manyheads("--help").stdout
    order = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert order == sorted(order)
    assert "用你自己的文本" in text


def test_a_mistyped_command_gets_a_suggestion(manyheads: Run) -> None:
    done = manyheads("evalute", "x")
    assert done.returncode == 2
    assert "There is no command 'evalute'. Did you mean evaluate?" in done.stderr


def test_version(manyheads: Run) -> None:
    assert manyheads("--version").stdout == "manyheads, version 0.1.0\n"
