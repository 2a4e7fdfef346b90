"""Terms of a glossary in a text."""

import pytest

from manyheads.text.terms.term_search import FoundTerm, find_terms


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
