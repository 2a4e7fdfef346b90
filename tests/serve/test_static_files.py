import re

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
