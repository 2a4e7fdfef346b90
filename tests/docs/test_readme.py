"""What the READMEs and the pages that continue them say is what the program does: their code runs, their commands and
files exist.
"""

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
TUTORIALS = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs/tutorials").glob("*.md"))
# The pages with examples in both languages.
PAGES = [
    (READMES[0], READMES[1]),
    *((f"docs/{page}", f"docs/zh/{page}") for page in [*TUTORIALS, "how-to/index.md", "how-to/predict-fast.md"]),
]
ENGLISH, CHINESE = ([pages[index] for pages in PAGES] for index in (0, 1))
MARKDOWN = [*READMES, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


def console_commands(name: str) -> list[str]:
    """Return the commands of manyheads in a page, without the word itself and without comments."""
    lines = [line for block in blocks(name, "console") for line in block.splitlines()]
    return [re.sub(r"\s{2,}#.*", "", line).partition("manyheads ")[2] for line in lines if "manyheads " in line]


PROGRAMS = [(pages, number) for pages in PAGES for number in range(len(blocks(pages[0], "python")))]


@pytest.fixture
def with_quickstart(untrained: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the pages expect a trained model there is one, with large weights, so that its heads matter."""
    torch.manual_seed(3)
    task: Any = replace(untrained.task, model=shaken(Transformer(untrained.task.model.settings)).eval())  # type: ignore[type-var]
    replace(untrained, task=task).save(tmp_path / "runs" / "quickstart" / "bundle")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("pages", "number"), PROGRAMS, ids=[f"{pages[0]}-{number}" for pages, number in PROGRAMS])
@pytest.mark.usefixtures("with_quickstart")
def test_python_blocks_run(pages: tuple[str, str], number: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, chinese = (blocks(name, "python")[number] for name in pages)
    assert ast.dump(ast.parse(chinese)) == ast.dump(ast.parse(code))  # the same but for comments
    names: dict[str, Any] = {}
    exec(compile(code, f"{pages[0]}, block {number}", "exec"), names)
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


def test_all_python_blocks_are_run() -> None:
    assert len(PROGRAMS) == 6
    for english, chinese in PAGES:
        assert len(blocks(english, "python")) == len(blocks(chinese, "python"))


@pytest.mark.parametrize("name", ["docs/tutorials/own-text.md", "docs/zh/tutorials/own-text.md"])
def test_the_recipe_is_one(name: str, tmp_path: Path) -> None:
    (text,) = blocks(name, "toml")
    (tmp_path / "recipe.toml").write_text(text, "utf-8")
    assert read_recipe(tmp_path / "recipe.toml").model.width == 128


@pytest.mark.parametrize("name", [*ENGLISH, *CHINESE])
def test_every_command_parses(name: str) -> None:
    for line in console_commands(name):
        command, *words = shlex.split(line)
        commands.commands[command].make_context(command, words, parent=Context(commands))


def test_pages_in_both_languages_have_the_same_commands() -> None:
    for pages in PAGES:
        english, chinese = ([shlex.split(line)[0] for line in console_commands(name)] for name in pages)
        assert english == chinese
    assert sum(len(console_commands(name)) for name in ENGLISH) == 61


@pytest.fixture(scope="module")
def corpus_words() -> SeenWords:
    words = SeenWords.of(source for source, _ in corpora.pairs("en", "zh", "train", 8000))
    assert words is not None
    return words


@pytest.mark.parametrize("names", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_examples_consist_of_words_of_the_built_in_corpus(names: list[str], corpus_words: SeenWords) -> None:
    code = [
        line
        for name in names
        for language in ("console", "python")
        for block in blocks(name, language)
        for line in block.split("\n")
    ]
    sentences = [text for line in code if "unseen" not in line for text in re.findall(r'"([A-Z][^"]*[.?!])"', line)]
    assert len(sentences) == 13
    sentences = [re.sub("<[^>]*>", "", sentence) for sentence in sentences]
    assert [word for sentence in sentences for word in corpus_words.unseen(sentence)] == []
    (unseen,) = re.findall(r'unseen_words\("([^"]+)"\)\)  # (\[.+\])', "\n".join(code))
    assert corpus_words.unseen(unseen[0]) == ast.literal_eval(unseen[1])
    assert 800 < len(corpus_words) < 900  # "about 850"


@pytest.mark.parametrize("name", MARKDOWN)
def test_every_link_leads_somewhere(name: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / name).read_text("utf-8"), flags=re.DOTALL)
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith(("http", "#"))]
    generated = ("cards.html", "pictures/layers.svg", "decisions/index.md")
    missing = [link for link in links if not (ROOT / name).parent.joinpath(link).exists()]
    assert [link for link in missing if not link.endswith(generated)] == []


def test_the_readmes_are_one_page() -> None:
    english, chinese = ((ROOT / name).read_text("utf-8") for name in READMES)
    assert len(english.split()) <= 1000
    # A Chinese word has 1.6 characters on average.
    n_words = len(re.findall(r"[\u4e00-\u9fff]", chinese)) / 1.6 + len(re.findall(r"[A-Za-z0-9_./:-]+", chinese))
    assert n_words <= 1000


@pytest.mark.parametrize("name", ["docs/concepts/architecture.md", "docs/zh/concepts/architecture.md"])
def test_every_module_that_is_named_exists(name: str) -> None:
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", (ROOT / name).read_text("utf-8"))
    assert len(named) > 40
    folders = (
        ROOT / "src/manyheads",
        ROOT,
        ROOT / "src/manyheads/text",
        ROOT / "src/manyheads/lens",
        ROOT / "src/manyheads/serve",
    )
    assert [path for path in named if not any((folder / path).exists() for folder in folders)] == []
