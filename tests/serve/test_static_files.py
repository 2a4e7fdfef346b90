import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.language import LANGUAGES, Language
from manyheads.serve import static_files
from manyheads.serve.static_files import Page, file_names, media_type, page_messages, read_page, read_static

FOLDER = Path(static_files.__file__).with_name("static")
PAGES: dict[Page, str] = {"lens": "", "playground": "static/"}  # and where it finds its files


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_files_that_exist(page: Page) -> None:
    names = file_names(page, "shared")
    named = re.findall(rf'(?:href|src)="{PAGES[page]}([\w./]+)"', read_page(page))
    assert {"shared/base.css", f"{page}/{page}.js"} <= set(named) <= set(names)
    for name in names:
        assert read_static(name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_opens_in_a_language(language: Language) -> None:
    assert f'<html lang="{language}" data-language="{language}">' in read_page("lens", language)
    assert "data-language" not in read_page("lens")


@pytest.mark.parametrize("page", PAGES)
def test_a_browser_without_javascript_is_told_so_in_every_language(page: Page) -> None:
    shown = read_page(page)
    assert re.search(r'<p lang="en">This page needs JavaScript.*: <code>.*</code>\.</p>', shown)
    assert re.search(r'<p lang="zh">本页需要 JavaScript.*：<code>.*</code>。</p>', shown)
    assert "data-message" not in shown and "{command}</p>" not in shown


def test_only_scripts_and_stylesheets_are_files_of_a_page() -> None:
    assert {media_type(name) for name in file_names("lens", "playground", "shared")} == {
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
    }
    assert media_type("lens/lens_messages.json") is None
    assert not set(file_names("lens")) & set(file_names("playground"))


@pytest.mark.parametrize("page", PAGES)
def test_every_message_that_a_script_names_exists(page: Page) -> None:
    folders = ("lens", "shared") if page == "lens" else (page,)
    sources = [read_static(name) for name in file_names(*folders) if name.endswith(".js")]
    named = {key for source in sources for key in re.findall(r'\bt\("(\w+)"', source)}
    assert len(named) > 50
    assert named <= set(page_messages(page)["en"])


@pytest.mark.parametrize("page", PAGES)
def test_every_message_is_in_the_page_in_every_language(page: Page) -> None:
    written = re.search(r'<script type="application/json" id="messages">(.*?)</script>', read_page(page))
    assert written is not None
    messages = json.loads(written[1])
    assert messages == page_messages(page)
    assert set(messages) == set(LANGUAGES)
    for texts in messages.values():
        assert texts.keys() == messages["en"].keys()
        for key, text in texts.items():
            assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", messages["en"][key])), key


@pytest.mark.parametrize("page", PAGES)
def test_a_context_tells_texts_apart_that_are_the_same_in_english(page: Page) -> None:
    """A tool that merges catalogs without regard to contexts gives them the same translation."""
    texts = json.loads(read_static(f"{page}/{page}_messages.json"))
    messages = page_messages(page)
    assert not any("\x04" in text for table in messages.values() for text in table.values())
    chinese = {key: messages["zh"][key] for key, text in texts.items() if isinstance(text, dict)}
    expected = {
        "lens": {"comma": "，", "steps_rest": "其他词元", "steps_rest_labels": "其他标签", "tour_layer": "注意力层"},
        "playground": {"play_in_translation": "原文", "play_text": "纯文本", "play_set_n_best": "候选数"},
    }
    assert chinese.items() >= expected[page].items()


def test_reading_a_page_imports_nothing_heavy() -> None:
    code = (
        "import sys; from manyheads.serve.static_files import read_page, read_static; read_static('shared/base.css');"
        "read_page('lens'); print('manyheads.report' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
