"""Sentence splitting, and the division of sentences that are too long."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.text.tokens.sentence_splitting import split_long, split_sentences


def parts(text: str, language: str = "") -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, language)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Hello there.", "How are you?", "I'm fine!"],
        ["Mr. Smith paid $3.50 to Dr. J. R. Brown.", "He left."],
        ["See https://example.com/a.b?c=D!", "Then write to a.b@c.de."],
        ['He said: "Stop. Go away."', "Then he left (I think. Maybe.) and came back."],
        ["So do I.", "They don't.", "She knows me.", "The answer is no.", "See no. 5 and fig. 3 in vol. 2."],
        ["The U.S. Army is here.", "What is e.g. Paris?", "A city.", "Apples, pears, etc.", "The end."],
        ["Wait... what?", "Yes…", "“Stop!” he said.", "“Go!” – she said."],
        ["Er kommt z. B. morgen, bzw. heute.", "Hr. Müller auch."],
        ["Le puits est à sec.", "M. Dupont et Mme. Curie arrivent.", "«Oui. Non.» dit-il."],
        ["3.14 is pi.", "2.71 is e.", "Use ``a. B`` and :ref:`x. Y <z>` here.", "Done."],
        ["1. Introduction.", "We start here."],
    ],
)
def test_sentences_of_a_line(sentences: list[str]) -> None:
    assert parts("  ".join(sentences)) == sentences


def test_chinese_sentences_have_no_space_between_them() -> None:
    assert parts("你好。今天天气很好！他说：“走吧。”然后走了？是的。Hi!好?好。") == [
        "你好。",
        "今天天气很好！",
        "他说：“走吧。”",
        "然后走了？",
        "是的。",
        "Hi!",
        "好?",
        "好。",
    ]  # fmt: skip


def test_german_ordinals_do_not_end_a_sentence() -> None:
    assert parts("Am 3. Mai kam er. Gut.", "de") == ["Am 3. Mai kam er.", "Gut."]
    assert parts("He won 3. Then he left.", "en") == ["He won 3.", "Then he left."]


def test_line_breaks_end_a_sentence_and_bare_punctuation_does_not() -> None:
    assert parts("A title\nand text\n\nMore. ???") == ["A title", "and text", "More. ???"]
    assert parts(" \n ") == []
    assert parts("...") == ["..."]


def test_long_sentence_is_divided_at_clauses_then_at_spaces() -> None:
    text = (
        "When the rain had stopped, the children, who had been waiting inside, ran out; their mother watched them from "
        "the window"
    )

    def divided(limit: int) -> list[str]:
        return [text[start:end] for start, end in split_long(text, lambda part: len(part) <= limit)]

    assert divided(200) == [text]
    assert divided(80) == [text[: text.index(";") + 1], "their mother watched them from the window"]
    assert divided(42) == [
        "When the rain had stopped, the children,",
        "who had been waiting inside, ran out;",
        "their mother watched them from the window",
    ]
    assert max(map(len, divided(12))) <= 12
    assert " ".join(divided(12)) == text


def test_url_is_not_divided_unless_it_is_too_long_itself() -> None:
    text = "go to https://example.org/a,b;c now"
    assert "https://example.org/a,b;c" in [text[a:b] for a, b in split_long(text, lambda part: len(part) <= 26)]
    assert split_long("x" * 9, lambda part: len(part) <= 5) == [(0, 4), (4, 9)]


@given(st.text(alphabet='ab. ,;!?。，“”"()\n中A1\u00a0', max_size=60), st.integers(1, 20))
@settings(max_examples=200, deadline=None)
def test_no_character_is_lost(text: str, limit: int) -> None:
    for spans in (split_sentences(text), split_long(text, lambda part: len(part) <= limit)):
        assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all(end - start <= max(1, limit) for start, end in split_long(text, lambda part: len(part) <= limit))


def test_large_texts_end() -> None:
    """A quadratic rule would not end."""
    for text in (" " * 10**6 + "a", "a." * 10**5, "A. b " * 10**5, "((((" * 10**5, '"a. ' * 10**5, "`:a:" * 10**5):
        assert split_sentences(text)[-1][1] == len(text.rstrip())
