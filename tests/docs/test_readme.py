"""What the READMEs say is what the program does: their code runs, their commands and files exist."""

import ast
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click import Context

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.cli.root import commands
from manyheads.model import Transformer
from manyheads.run import read_recipe
from manyheads.text.tokens.seen_words import SeenWords

from model.makers import shaken

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.zh-CN.md"]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


@pytest.fixture
def with_quickstart(untrained: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the READMEs expect a trained model there is one, with large weights, so that its heads matter."""
    torch.manual_seed(3)
    task: Any = replace(untrained.task, model=shaken(Transformer(untrained.task.model.settings)).eval())  # type: ignore[type-var]
    replace(untrained, task=task).save(tmp_path / "runs" / "quickstart" / "bundle")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.usefixtures("with_quickstart")
def test_python_blocks_run(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, *others = (blocks(name, "python")[number] for name in READMES)
    for other in others:  # the same but for comments
        assert ast.dump(ast.parse(other)) == ast.dump(ast.parse(code))
    names: dict[str, Any] = {}
    exec(compile(code, f"block {number}", "exec"), names)
    printed = capsys.readouterr().out
    if "visible_ablation" in code:
        example = names["example"]
        assert example.answer != example.without
        assert printed.startswith(f"{[example.answer]} {[example.without]}\n")
        n_queries, n_keys = names["trace"].weights(example.head).shape
        assert f"torch.Size([{n_queries}, {n_keys}])" in printed
        assert Path("head.pdf").read_bytes().startswith(b"%PDF")
        assert example.text in Path("lens.html").read_text("utf-8")
    if "attention_weights" in code:
        assert "[ 50., 194., 122.]" in printed
        assert "63,045,632" in printed


@pytest.mark.parametrize("name", READMES)
def test_there_are_no_other_python_blocks(name: str) -> None:
    assert len(blocks(name, "python")) == 3


@pytest.mark.parametrize("name", READMES)
def test_the_recipe_is_one(name: str, tmp_path: Path) -> None:
    (text,) = blocks(name, "toml")
    (tmp_path / "recipe.toml").write_text(text, "utf-8")
    assert read_recipe(tmp_path / "recipe.toml").model.width == 128


@pytest.mark.parametrize("name", READMES)
def test_every_command_parses(name: str) -> None:
    lines = [line for block in blocks(name, "console") for line in block.splitlines()]
    found = [re.sub(r"\s{2,}#.*", "", line).partition("manyheads ")[2] for line in lines if "manyheads " in line]
    assert len(found) == 42
    for line in found:
        command, *words = shlex.split(line)
        commands.commands[command].make_context(command, words, parent=Context(commands))


@pytest.fixture(scope="module")
def corpus_words() -> SeenWords:
    words = SeenWords.of(source for source, _ in corpora.pairs("en", "zh", "train", 8000))
    assert words is not None
    return words


@pytest.mark.parametrize("name", READMES)
def test_examples_consist_of_words_of_the_built_in_corpus(name: str, corpus_words: SeenWords) -> None:
    code = [
        line for language in ("console", "python") for block in blocks(name, language) for line in block.split("\n")
    ]
    sentences = [text for line in code if "unseen" not in line for text in re.findall(r'"([A-Z][^"]*[.?!])"', line)]
    assert len(sentences) == 10
    sentences = [re.sub("<[^>]*>", "", sentence) for sentence in sentences]
    assert [word for sentence in sentences for word in corpus_words.unseen(sentence)] == []
    (unseen,) = re.findall(r'unseen_words\("([^"]+)"\)\)  # (\[.+\])', "\n".join(code))
    assert corpus_words.unseen(unseen[0]) == ast.literal_eval(unseen[1])
    assert 800 < len(corpus_words) < 900  # "about 850"


@pytest.mark.parametrize("name", READMES)
def test_every_link_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text("utf-8"))
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_both_readmes_have_the_same_code() -> None:
    english, chinese = ([re.sub(r"\s*#.*", "", block) for block in blocks(name, "python")] for name in READMES)
    assert english == chinese
