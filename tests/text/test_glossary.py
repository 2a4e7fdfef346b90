"""Terms of a glossary in a text."""

import gzip
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.terms.glossary import FoundTerm, find_terms, read_glossary


@pytest.mark.parametrize(
    ("text", "terms", "found"),
    [
        ("The cat and the Cat.", ["cat"], ["cat", "Cat"]),
        ("concatenate cats", ["cat"], []),
        ("Us and the US, us.", ["US"], ["US"]),
        ("new york, New York", ["New York"], ["New York"]),
        ("apple Apple", ["Apple"], ["apple", "Apple"]),
        ("New York City in New York", ["New York", "New York City"], ["New York City", "New York"]),
        ("那只猫和小猫", ["猫", "小猫"], ["猫", "小猫"]),
        ("使用Python编程 pythonic", ["python"], ["Python"]),
        ("an ice  cream, ice\u00a0cream", ["ice cream"], ["ice  cream", "ice\u00a0cream"]),
        ("don’t and don't", ["don't"], ["don’t", "don't"]),
        ("cafe\u0301 café", ["café"], ["cafe\u0301", "café"]),
        ("STRASSE Straße", ["Straße"], ["STRASSE", "Straße"]),
        ("C++ and C", ["C++"], ["C++"]),
        ("(a.b) axb", ["a.b"], ["a.b"]),
        ("well-known cat's", ["known", "cat"], ["known", "cat"]),
        ("", ["cat"], []),
        ("cat", [], []),
    ],
)
def test_occurrences(text: str, terms: list[str], found: list[str]) -> None:
    assert [text[one.start : one.end] for one in find_terms(text, terms)] == found


def test_exact_spelling_is_preferred_and_capitals_may_be_ignored() -> None:
    assert [one.term for one in find_terms("cat Cat CAT", ["cat", "Cat"])][:2] == ["cat", "Cat"]
    assert find_terms("NEW YORK", ["New York"]) == []
    assert find_terms("NEW YORK", ["New York"], ignore_case=True) == [FoundTerm("New York", 0, 8)]


def test_large_glossary_is_fast_enough_to_be_searched_for_each_text() -> None:
    terms = [f"term{number}" for number in range(20_000)]
    assert [one.term for one in find_terms("a term7 and term19999 here", terms)] == ["term7", "term19999"]


def test_terms_comments_and_equal_lines(tmp_path: Path) -> None:
    text = "\ufeff# animals\ncat\t猫\r\n\n  ice   cream \t 冰淇淋\ncat\t猫\n"
    (tmp_path / "terms.tsv").write_text(text, "utf-8", newline="")
    assert read_glossary(tmp_path / "terms.tsv") == {"cat": "猫", "ice cream": "冰淇淋"}
    (tmp_path / "terms.tsv.gz").write_bytes(gzip.compress("cat\t猫\n".encode()))
    assert read_glossary(str(tmp_path / "terms.tsv.gz")) == {"cat": "猫"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("cat\t猫\ndog\n".encode(), "line 2: 'dog' is not a source term, a tab and a target term"),
        (b"cat\t\n", "line 1: 'cat\\t' is not a source term"),
        (b"\tcat\n", "is not a source term"),
        (b"a\tb\tc\n", "is not a source term"),
        ("cat\t猫\n# x\ncat\t狗\n".encode(), "line 3: 'cat' has another target term in line 1"),
        (b"# nothing\n\n", "has no terms"),
        (b"cat\t\xff\n", "line 1"),
        (b"", "empty"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "terms.tsv").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_glossary(tmp_path / "terms.tsv")
    assert message in str(error.value)
    assert "terms.tsv" in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_glossary(tmp_path / "none.tsv")
