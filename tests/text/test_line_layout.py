"""The text of each line, without its layout."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.text.markup.line_layout import content_spans


def contents(text: str, language: str = "") -> list[str]:
    return [text[start:end] for start, end in content_spans(text, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One line.", ["One line."]),
        ("  One \t", ["One"]),
        ("One\n\n\tTwo\r\n Three\rFour\u2028Five", ["One", "Two", "Three", "Four", "Five"]),
        ("- a\n* b\n+ c\n• d\n•e\n– f\n> > g\n## h", list("abcdefgh")),
        ("1. a\n12) b\n(c) c\niv) d\n[x] e\n- [ ] f\n3、g", list("abcdefg")),
        ("-5 degrees\n#tag\n3.14 is pi\na.b", ["-5 degrees", "#tag", "3.14 is pi", "a.b"]),
        ("a\n-----\n* * *\nb", ["a", "b"]),
        ("...", []),
        ("```\n123\na) 7\n5 %", []),
        ("- ", []),
        ("", []),
        (" \n ", []),
    ],
)
def test_contents(text: str, expected: list[str]) -> None:
    assert contents(text) == expected


def test_a_german_ordinal_is_not_the_number_of_a_list() -> None:
    assert contents("3. Mai ist schön.", "de") == ["3. Mai ist schön."]
    assert contents("3. Mai ist schön.", "en") == ["Mai ist schön."]
    assert contents("1. Eins\n2. Zwei\n\n5. Mai", "de-AT") == ["Eins", "Zwei", "5. Mai"]


@given(st.text(st.sampled_from("ab1.)-*•>#[x] \t\n\r\u2028。"), max_size=40))
def test_contents_are_in_order_and_have_all_words(text: str) -> None:
    spans = content_spans(text)
    assert all(start < end and not text[start].isspace() for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    left = text
    for start, end in reversed(spans):
        left = left[:start] + left[end:]
    assert "b" not in left.replace("b)", "").replace("b.", "")
