"""Pages of the site that are made from the code: the tour, the references, the diagram, the list of decisions.

mkdocs calls `on_files` at every build; nothing generated is kept in the repository.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from layer_diagram import draw_layers  # noqa: E402
from recipe_reference import recipe_page  # noqa: E402

from manyheads.lab.card_page import render_cards  # noqa: E402
from manyheads.lab.lab_answers import shipped_answers  # noqa: E402
from manyheads.lab.question_page import render_question  # noqa: E402

_LOADED = re.compile(
    r"""<(?:script|img|iframe|link rel="(?:stylesheet|icon|preconnect)")[^>]*(?:src|href)=["']((?:https?:)?//[^"']+)"""
)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "index.md": tour("README.md"),
        "index.zh.md": tour("README.zh-CN.md"),
        "reference/recipe.md": recipe_page(),
        "reference/cli.md": command_line("en"),
        "reference/cli.zh.md": command_line("zh"),
        "reference/api.md": api_page(),
        "decisions/index.md": decisions(),
        "pictures/layers.svg": draw_layers(ROOT / "pyproject.toml"),
        **lab_pages(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def lab_pages() -> dict[str, str]:
    """Return the answer cards, the report of every experiment and a list of them, made from the shipped results."""
    answers = shipped_answers()
    reports = {f"lab/{name}.html": render_question(one) for name, one in answers.items()}
    lines = ["# Reports of the lab · 实验报告", "", "- [Answer cards · 面试答题卡](cards.html)"]
    lines += [f"- [{one.question.title.en} · {one.question.title.zh}]({name}.html)" for name, one in answers.items()]
    return {"lab/reports.md": "\n".join(lines) + "\n", "lab/cards.html": render_cards("en", answers), **reports}


def tour(readme: str) -> str:
    """Return the README as a page: links into docs/ are kept, links to other files become their names."""

    def replace(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        others = {"README.md": "index.md", "README.zh-CN.md": "index.zh.md"}
        if target in others:
            return f"[{text}]({others[target]})"
        path = target.removeprefix("docs/")
        if target.startswith("docs/") and (ROOT / target).is_file() and not path.endswith(".py"):
            return f"{mark}[{text}]({path})"
        if target.rstrip("/") == "docs/decisions":
            return f"[{text}](decisions/index.md)"
        return text if "`" in text else f"`{target}`" if not text else f"{text} (`{target}`)"

    return _LINK.sub(replace, (ROOT / readme).read_text("utf-8"))


def command_line(language: str) -> str:
    """Return every command's help in one language; help texts are chosen when the command line is imported."""
    environment = os.environ | {"MANYHEADS_LANG": language, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = [sys.executable, str(Path(__file__).parent / "cli_reference.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def api_page() -> str:
    """Return the Python API: what `import manyheads` offers, then every package's public names."""
    packages = sorted(path.parent.name for path in (ROOT / "src/manyheads").glob("*/__init__.py"))
    lines = ["# Python API", "", "What `import manyheads as mh` offers comes first; then each package.", ""]
    lines += ["## manyheads", "", "| name | from |", "| --- | --- |"]
    manyheads = importlib.import_module("manyheads")
    homes = {name: getattr(getattr(manyheads, name), "__module__", "manyheads") for name in manyheads.__all__}
    lines += [f"| `{name}` | `{home}` |" for name, home in homes.items()]
    for package in ["api", *packages]:
        if package == "cli":
            continue
        lines += ["", f"::: manyheads.{package}", "    options:", "      show_if_no_docstring: false", ""]
    return "\n".join(lines) + "\n"


def decisions() -> str:
    """Return the list of decision notes."""
    rows = ["# Decisions", "", "Why it is built so, and what was rejected.", ""]
    for path in sorted((ROOT / "docs/decisions").glob("[0-9]*.md")):
        title = path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")
        rows.append(f"- [{title}]({path.name})")
    return "\n".join(rows) + "\n"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """In pages that are files of docs/, name files outside docs/ instead of linking to them."""

    def replace(match: re.Match[str]) -> str:
        _, text, target = match.groups()
        source = ROOT / "docs" / Path(page.file.src_uri).parent
        path = (source / target.split("#")[0]).resolve()
        if path.is_relative_to(ROOT / "docs") or not path.exists():
            return match.group(0)
        return f"{text} (`{path.relative_to(ROOT)}`)"

    return _LINK.sub(replace, markdown)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Fail if a page would load anything from the network."""
    for page in Path(config.site_dir).rglob("*.html"):
        if found := _LOADED.search(page.read_text("utf-8")):
            raise PluginError(f"{page.name} loads {found.group(1)} from the network.")
