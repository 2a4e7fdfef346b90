import re
import subprocess
import sys

import pytest

from manyheads.language import LANGUAGES, Language
from manyheads.serve.static_files import PAGE, file_names, read_page, read_static


def test_the_page_names_only_files_that_exist() -> None:
    named = re.findall(r'(?:href|src)="([\w.]+)"', read_page())
    assert "base.css" in named and "lens.js" in named
    assert set(named) <= set(file_names())
    for name in file_names():
        assert read_static(name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_opens_in_a_language(language: Language) -> None:
    assert f'<html lang="{language}" data-language="{language}">' in read_page(language)
    assert "data-language" not in read_page()
    assert PAGE in file_names()


def test_the_playground_names_only_files_that_exist() -> None:
    named = re.findall(r'(?:href|src)="static/([\w.]+)"', read_static("playground.html"))
    assert "base.css" in named and "playground.js" in named
    assert set(named) <= set(file_names())


def test_reading_a_file_imports_nothing_heavy() -> None:
    code = (
        "import sys; from manyheads.serve.static_files import read_static; read_static('base.css');"
        "print('manyheads.report' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
