"""docs/project/promises.md quotes every promise of the README and of the pages that continue it; its tests exist, and
those of docs/concepts/threat-model.md.
"""

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "project" / "promises.md").read_text("utf-8")
THREATS = (DOCS / "concepts" / "threat-model.md").read_text("utf-8").partition("## What is promised")[2]
README = (ROOT / "README.md").read_text("utf-8")
OTHERS = ("how-to/index.md", "how-to/predict-fast.md", "concepts/scores.md", "reference/bundle.md", "project/tests.md")
PROMISING = [README, *(path.read_text("utf-8") for path in sorted((DOCS / "tutorials").glob("*.md")))]
PROMISING += [(DOCS / name).read_text("utf-8") for name in OTHERS]

# How sentences begin that introduce, name a file or give an instruction, and promise nothing.
NOT_PROMISES = (
    "Train your own Transformer",
    "It implements the Transformer of 2017",
    "The lens page of a model",
    "One head is switched off",
    "From a clone",
    "Both commands create",  # tests run inside that .venv
    "Without make",
    "Apache-2.0",
    "With your own text or translation memory:",
    "`manyheads init mail.en mail.de`, then",
    "Translate, train on your own text, documents.",
    "Write attention in 20 minutes.",
    "Look inside; every number",
    "All questions, predicted and measured.",
    "Serve bundles.",
    "`make docs` builds the site",
    "Each takes a few minutes.",
    "The first one trains the model",
    "`make quickstart` trains the model of this page",
    "Next:",
    "Divide by the width of a query, and hide scores",
    "Return `np.nan_to_num(weights) @ v`",
    "Results.",
    "Reasons:",
    "For millions of lines",
    "Speed against CTranslate2",
    "A native engine written in C",
    "Quality on public data sets",
    "Results of `init` and `train`",
    "Several GPUs have not been tested.",
    "The recipe reference lists",
    "The lens page explains",
    "The Transformer of 2017, formula by formula has",
)


def plain(text: str) -> str:
    """Return Markdown text on one line, without emphasis and link targets."""
    text = re.sub(r"(?<!\bmanyheads)\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"\*+", "", text)).strip()


def sentences(markdown: str) -> list[str]:
    """Return the sentences of all paragraphs; code blocks, tables, headings and pictures are left out."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"```.*?```", "\n\n", markdown, flags=re.DOTALL))
    prose = [plain(one) for one in paragraphs if one.strip() and not one.lstrip().startswith(("#", "|", "!["))]
    return [sentence for one in prose for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", one)]


def comments(markdown: str) -> list[str]:
    """Return the comments beside console commands, as "`command`: comment"."""
    found = re.findall(r"^\$ (\w+ \w+)[^\n]*?\s{2,}# ([^\n]+)$", markdown, re.MULTILINE)
    return [f"`{command}`: {comment}" for command, comment in found]


def promises(page: str = PAGE) -> dict[str, list[str]]:
    """Return the tests of each promise of a page."""
    rows = [re.fullmatch(r"\| (.+) \| (.+) \|", line) for line in page.splitlines()]
    cells = [row.groups() for row in rows if row and row[1] not in ("promise", "---")]
    return {plain(text.replace("\\|", "|")): re.findall(r"`(tests/[^`]+)`", tests) for text, tests in cells}


@cache
def functions(file: str) -> set[str]:
    """Return the names of a test file's functions."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def said() -> list[str]:
    """Return everything that the pages say."""
    return [one for page in PROMISING for one in [*sentences(page), *comments(page)]]


def test_every_sentence_is_a_promise_with_tests_or_listed_as_none() -> None:
    quoted = promises()
    missing = [one for one in said() if one not in quoted and not one.split("`: ")[-1].startswith(NOT_PROMISES)]
    assert missing == []


def test_every_quoted_promise_is_in_a_page() -> None:
    assert set(promises()) <= set(said())


def test_no_exception_is_left_over() -> None:
    parts = [one.split("`: ")[-1] for one in said()]
    assert [start for start in NOT_PROMISES if not any(part.startswith(start) for part in parts)] == []


@pytest.mark.parametrize("promise", promises() | promises(THREATS))
def test_every_promise_names_tests_that_exist(promise: str) -> None:
    tests = (promises() | promises(THREATS))[promise]
    assert tests
    for file, _, name in (test.partition("::") for test in tests):
        assert (ROOT / file).is_file(), file
        assert name in functions(file), f"{file} has no test {name}"


def test_oldest_python_is_the_one_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = package["requires-python"].removeprefix(">=")
    assert f"You need Python {oldest} or newer and pip." in README


def test_make_test_runs_every_check() -> None:
    shown = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checks = ("ruff check", "ruff format --check", "mypy", "lint-imports", "mkdocs build --strict", "pytest")
    assert all(f"/{check}" in shown or f"-m {check}" in shown for check in checks)


@pytest.mark.parametrize("failing", ["ruff", "mypy", "lint-imports", "mkdocs", "python", ""])
def test_make_test_fails_with_each_check_and_names_it(tmp_path: Path, failing: str) -> None:
    """With tools that do nothing but end, one of them with an error."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for tool in ("ruff", "mypy", "lint-imports", "mkdocs", "python"):
        script = tmp_path / ".venv" / "bin" / tool
        script.write_text(f"#!/bin/sh\necho {tool} ran\nexit {int(tool == failing)}\n")
        script.chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt", ".venv/installed", ".venv/installed-dev"):  # in order of age
        (tmp_path / name).touch()
    command = ["make", "-f", str(ROOT / "Makefile"), "test"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    part = {"python": "tests", "mkdocs": "docs", "": ""}.get(failing, "lint")
    assert (done.returncode != 0) == bool(failing)
    assert (f"make test failed: {part}\n" in done.stdout) == bool(failing)
    assert f"{failing} ran" in done.stdout
