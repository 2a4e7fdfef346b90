"""Links between pages, as the repository has them: relative to the file, so that they also work in the source.

Some pages of the site are files outside docs/: the READMEs, the changelog and the benchmarks. A link to a file that is
no page, such as a module, becomes its path.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
_PAGES = {"index.md": "README.md", "zh/index.md": "README.zh-CN.md", "project/changelog.md": "CHANGELOG.md"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def benchmark_files() -> list[str]:
    """Return the pages of benchmarks/ and their pictures."""
    paths = [path for kind in ("md", "svg") for path in (ROOT / "benchmarks").rglob(f"*.{kind}")]
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def repository_path(uri: str) -> str:
    """Return the file of a page."""
    return _PAGES.get(uri, uri if uri.startswith("benchmarks/") else f"docs/{uri}")


def page_uri(path: str) -> str | None:
    """Return the page of a file or folder, None if there is none."""
    pages = {file: uri for uri, file in _PAGES.items()}
    for file in (path, f"{path}/index.md", f"{path}/README.md"):
        if file in pages:
            return pages[file]
        is_page = file.startswith(("docs/", "benchmarks/")) and (ROOT / file).is_file()
        if is_page and Path(file).suffix in (".md", ".svg", ".png"):
            return file.removeprefix("docs/")
    return "pictures/layers.svg" if path == "docs/pictures/layers.svg" else None


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are files outside docs/."""
    for uri, path in [*_PAGES.items(), *((path, path) for path in benchmark_files())]:
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page."""
    return rewritten(markdown, page.file.src_uri)


def rewritten(markdown: str, uri: str) -> str:
    """Return a page with links to other pages of the site, and paths instead of links to other files."""
    folder = posixpath.dirname(repository_path(uri))

    def replace(match: re.Match[str]) -> str:
        mark, text, target, fragment = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if found := page_uri(path):
            return f"{mark}[{text}]({posixpath.relpath(found, posixpath.dirname(uri) or '.')}{fragment or ''})"
        if not (ROOT / path).exists():
            return match.group(0)  # a link inside docs/ that mkdocs reports if it is broken
        return text if "`" in text else f"{text} (`{path}`)"

    return _LINK.sub(replace, markdown)
