"""Two trees of pages, English at the top and Chinese below zh/: each page has the navigation of its own language, and a
switch to the same page in the other one.
"""

import re
from pathlib import PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

_CHINESE = "zh/"
# A line break between Chinese characters would become a space. Fenced blocks keep theirs.
_BREAK = re.compile(
    r"^```.*?^```|(?<=[\u4e00-\u9fff])\n(?=[\u4e00-\u9fff（“])|(?<=[，。；：、！？）”])\n(?![\n|#>-])",
    re.DOTALL | re.MULTILINE,
)


def counterpart(uri: str) -> str:
    """Return where the page is in the other language, if it is there."""
    return uri.removeprefix(_CHINESE) if uri.startswith(_CHINESE) else _CHINESE + uri


def nearest_counterpart(uri: str, existing: set[str]) -> str:
    """Return the page in the other language: the same one, the overview of its section, or the home page."""
    other = PurePosixPath(counterpart(uri))
    home = "index.md" if uri.startswith(_CHINESE) else f"{_CHINESE}index.md"
    return next(one for one in (str(other), str(other.parent / "index.md"), home) if one in existing)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Join the lines of Chinese paragraphs."""
    return joined(markdown) if page.file.src_uri.startswith(_CHINESE) else markdown


def joined(markdown: str) -> str:
    """Return a page without the line breaks inside Chinese sentences."""
    return _BREAK.sub(lambda found: found[0].removeprefix("\n"), markdown)


def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
    """Fail if a Chinese page has no English one: the trees must not drift apart."""
    pages = {file.src_uri for file in files.documentation_pages()}
    alone = [uri for uri in pages if uri.startswith(_CHINESE) and counterpart(uri) not in pages]
    if alone:
        raise PluginError(f"Pages without an English counterpart: {', '.join(sorted(alone))}.")


def on_page_context(context: TemplateContext, *, page: Page, config: MkDocsConfig, nav: Navigation) -> TemplateContext:
    """Give a page the navigation, the theme's words and the switch of its language."""
    uri = page.file.src_uri
    is_chinese = uri.startswith(_CHINESE)
    config.theme["language"] = "zh" if is_chinese else "en"
    pages = {one.file.src_uri: one for one in nav.pages}
    other = nearest_counterpart(uri, set(pages))
    context["nav"] = _of_language(nav, pages, is_chinese=is_chinese)
    context["other_language"] = {
        "url": pages[other].url,
        "name": "English" if is_chinese else "中文",
        "code": "en" if is_chinese else "zh",
        "is_same_page": other == counterpart(uri),
    }  # type: ignore[typeddict-unknown-key]
    return context


def _of_language(nav: Navigation, pages: dict[str, Page], *, is_chinese: bool) -> Navigation:
    chinese = next(item for item in nav.items if isinstance(item, Section) and item.title == "中文")
    items = chinese.children if is_chinese else [item for item in nav.items if item is not chinese]
    found = Navigation(items, nav.pages)
    found.homepage = pages["zh/index.md" if is_chinese else "index.md"]
    return found
