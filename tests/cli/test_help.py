"""--help: immediate, with an example, in English or in Chinese."""

import pytest

from manyheads.cli import requested_language
from manyheads.cli.rendering.output import cell_width, wrap_cells

from cli.conftest import Run

COMMANDS = (
    "quickstart",
    "init",
    "doctor",
    "plan",
    "train",
    "evaluate",
    "predict",
    "quantize",
    "shortlist",
    "lens",
    "heads",
    "walk",
    "learn",
    "bench",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_both_languages(manyheads: Run, command: str) -> None:
    for language, title in (("en", "Example"), ("zh", "例")):
        done = manyheads(command, "--help", "--lang", language)
        assert done.returncode == 0
        assert title in done.stdout
        assert f"manyheads {command}" in done.stdout


def test_commands_are_listed_in_the_order_a_newcomer_meets_them(manyheads: Run) -> None:
    text = manyheads("--help").stdout
    order = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert order == sorted(order)


def test_language_comes_from_the_option_then_the_variable_then_the_locale(
    manyheads: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "MANYHEADS_LANG"):
        monkeypatch.delenv(name, raising=False)
    assert "Usage:" in manyheads("--help").stdout
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "用法：" in manyheads("--help").stdout
    monkeypatch.setenv("MANYHEADS_LANG", "en")
    assert "Usage:" in manyheads("--help").stdout
    assert "用法：" in manyheads("--lang", "zh", "--help").stdout
    assert "用法：" in manyheads("predict", "--help", "--lang=zh").stdout


def test_unknown_language_is_an_error(manyheads: Run) -> None:
    done = manyheads("doctor", "x", "--lang", "fr")
    assert done.returncode == 2
    assert "'fr' is not one of 'en', 'zh'" in done.stderr


def test_language_option_after_a_double_dash_is_text() -> None:
    assert requested_language(["walk", "--", "--lang", "zh"]) is None
    assert requested_language(["walk", "--lang", "zh"]) == "zh"
    assert requested_language(["walk", "--lang"]) is None


def test_chinese_help_is_wrapped_by_its_width_on_the_screen(manyheads: Run) -> None:
    for line in manyheads("--lang", "zh", "--help").stdout.splitlines():
        assert cell_width(line) <= 110, line  # COLUMNS in conftest


def test_wrapping_keeps_words_whole_and_closing_punctuation_with_its_character() -> None:
    assert wrap_cells("训练 Transformer，看清每个头。", 13) == ["训练", "Transformer，", "看清每个头。"]


def test_mistyped_command_gets_a_suggestion(manyheads: Run) -> None:
    done = manyheads("evalute", "x")
    assert done.returncode == 2
    assert "There is no command 'evalute'. Did you mean evaluate?" in done.stderr


def test_version(manyheads: Run) -> None:
    assert manyheads("--version").stdout == "manyheads, version 0.2.0\n"
