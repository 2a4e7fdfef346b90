"""Parts of the site that are made from the code: references, the diagram, lists, the reports of the lab.

A page has a comment such as `<!-- generated: commands -->` where its part goes. mkdocs calls the hooks at every build;
nothing generated is kept in the repository.
"""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from layer_diagram import draw_layers  # noqa: E402
from recipe_reference import recipe_keys  # noqa: E402
from repository_links import benchmark_files  # noqa: E402

from manyheads.lab.card_page import render_cards  # noqa: E402
from manyheads.lab.lab_answers import shipped_answers  # noqa: E402
from manyheads.lab.question_page import render_question  # noqa: E402
from manyheads.language import Language, using  # noqa: E402

_LOADED = re.compile(
    r"""<(?:script|img|iframe|link rel="(?:stylesheet|icon|preconnect)")[^>]*(?:src|href)=["']((?:https?:)?//[^"']+)"""
)
_PART = re.compile(r"<!-- generated: ([a-z ]+) -->")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files that are generated as a whole."""
    answers = shipped_answers()
    made = {f"lab/{name}.html": render_question(one) for name, one in answers.items()}
    made |= {"lab/cards.html": render_cards("en", answers), "pictures/layers.svg": draw_layers(ROOT / "pyproject.toml")}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the generated part into a page."""
    language: Language = "zh" if page.file.src_uri.startswith("zh/") else "en"

    def part(match: re.Match[str]) -> str:
        if match[1] not in PARTS:
            raise PluginError(f"{page.file.src_uri}: there is no generated part {match[1]!r}.")
        return PARTS[match[1]](language)

    return _PART.sub(part, markdown)


def lab_reports(language: Language) -> str:
    """Return the list of the reports, which have a switch of their own."""
    folder = "" if language == "en" else "../../lab/"
    with using(language):
        return "\n".join(f"- [{one.question.title}]({folder}{name}.html)" for name, one in shipped_answers().items())


def command_line(language: Language) -> str:
    """Return every command's help in one language; help texts are chosen when the command line is imported."""
    environment = os.environ | {"MANYHEADS_LANG": language, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = [sys.executable, str(Path(__file__).parent / "cli_reference.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def api(language: Language) -> str:
    """Return the Python API: what `import manyheads` offers, then every package's public names."""
    packages = sorted(path.parent.name for path in (ROOT / "src/manyheads").glob("*/__init__.py"))
    lines = ["## manyheads", "", "| name | from |", "| --- | --- |"]
    manyheads = importlib.import_module("manyheads")
    homes = {name: getattr(getattr(manyheads, name), "__module__", "manyheads") for name in manyheads.__all__}
    lines += [f"| `{name}` | `{home}` |" for name, home in homes.items()]
    for package in ["api", *packages]:
        if package == "cli":
            continue
        lines += ["", f"::: manyheads.{package}", "    options:", "      show_if_no_docstring: false", ""]
    return "\n".join(lines)


def decisions(language: Language) -> str:
    """Return the list of decision notes."""
    paths = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    return "\n".join(f"- [{_title(path)}]({path.name})" for path in paths)


def benchmarks(language: Language) -> str:
    """Return the list of benchmark pages."""
    return "\n".join(f"- [{_title(ROOT / path)}](../../{path})" for path in benchmark_files() if path.endswith(".md"))


def _title(path: Path) -> str:
    return path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")


PARTS: dict[str, Callable[[Language], str]] = {
    "api": api,
    "benchmarks": benchmarks,
    "commands": command_line,
    "decisions": decisions,
    "lab reports": lab_reports,
    "recipe keys": lambda language: recipe_keys(),
}


def on_post_build(*, config: MkDocsConfig) -> None:
    """Fail if a page would load anything from the network."""
    for page in Path(config.site_dir).rglob("*.html"):
        if found := _LOADED.search(page.read_text("utf-8")):
            raise PluginError(f"{page.name} loads {found.group(1)} from the network.")
