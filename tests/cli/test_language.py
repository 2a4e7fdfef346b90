"""Help and messages are in one language at a time."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import manyheads as package
from manyheads.cli.root import commands

from cli.conftest import Run

CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
ENGLISH_WORD = re.compile(r"[A-Za-z]{2,}")
SOURCE = Path(package.__file__).parent


def command_words(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield what to type for a command and for each of its subcommands."""
    yield words
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from command_words(inner, *words, name)


ALL_COMMANDS = list(command_words(commands))


def without_examples(page: str) -> str:
    """Return a help page without its blocks of examples, whose texts may be in any language."""
    return "\n\n".join(block for block in page.split("\n\n") if not re.match(r"\s*(Examples?:|例：|示例：)", block))


def test_subcommands_are_walked() -> None:
    assert {("predict",), ("heads", "prune"), ("heads", "timeline")} < set(ALL_COMMANDS)


@pytest.mark.parametrize("words", ALL_COMMANDS, ids=" ".join)
def test_help_is_in_one_language(manyheads: Run, words: tuple[str, ...]) -> None:
    english, chinese = (manyheads(*words, "--help", "--lang", language) for language in ("en", "zh"))
    assert english.returncode == chinese.returncode == 0
    assert not CHINESE.search(without_examples(english.stdout))
    usage, first, *_ = chinese.stdout.split("\n\n")
    assert usage.startswith("用法：")
    assert CHINESE.search(first)
    for line in without_examples(chinese.stdout).splitlines():
        prose = re.sub(r"manyheads( [a-z]+)*", "", line)  # commands are the same in both languages
        assert not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", prose), line


def literals(path: Path) -> Iterator[str]:
    """Yield every string of a Python file; values inside an f-string become a space."""
    tree = ast.parse(path.read_text("utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else " " for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def is_mixed(text: str) -> bool:
    """Return whether a text joins English and Chinese by a dot or a slash, as in "loss · 损失"."""
    text = re.sub(r"\{\{.*?\}\}", "0", text)  # figures of the lab, which become numbers
    for line in text.splitlines():
        for left, right in zip(parts := re.split(r" [·/|] ", line), parts[1:], strict=False):
            for one, other in ((left, right), (right, left)):
                if ENGLISH_WORD.search(one) and not CHINESE.search(one) and CHINESE.match(other.strip()):
                    return True
    return False


def test_mixed_lines_are_recognized() -> None:
    assert is_mixed("loss · 损失")
    assert is_mixed("损失 · loss")
    assert not is_mixed("第 3 步 · 损失 2.1 · BLEU 最佳")
    assert not is_mixed("step 3 · loss 2.1")


def test_no_string_of_the_source_mixes_languages() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.parent.name not in ("corpora", "text")]
    mixed = {path.name: text for path in files for text in literals(path) if is_mixed(text)}
    assert len(files) > 100
    assert mixed == {}
