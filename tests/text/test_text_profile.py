"""What training texts looked like, and how other texts are written alike."""

import json

import pytest

from manyheads.text.tokens.text_profile import TextProfile, is_upper

STRAIGHT = [
    'He said "yes" to Tom\'s sister in Boston.',
    "He and I saw Tom in Boston. It isn't far.",
    "The TV is on.",
] * 20
CURLY = ["He said “yes” to Tom’s sister.", "It isn’t far."] * 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s “so”", 'It\'s "so"'),
        ("  two\u00a0 \u200bcats\t\u3000sleep  ", "two cats sleep"),
        ("Ｔｏｍ １２", "Tom 12"),
        ("cafe\u0301", "café"),
        ("a \u00a0 b\nc", "a b\nc"),
        ("plain – text…", "plain – text…"),
    ],
)
def test_unseen_variants_are_replaced_by_seen_ones(text: str, expected: str) -> None:
    assert TextProfile.of(STRAIGHT).normalize(text) == expected


def test_seen_variants_are_kept() -> None:
    profile = TextProfile.of(CURLY)
    assert profile.normalize("It’s “so”") == "It’s “so”"
    assert profile.normalize("It's \"so\" ('x')") == "It’s “so” (’x’)"
    both = TextProfile.of([*CURLY, *STRAIGHT, "Ａ  b\u00a0cafe\u0301"] * 2 + ["Ａ  b\u00a0cafe\u0301"] * 20)
    for text in ("It’s “so”", 'It\'s "so"', "Ａ  b\u00a0c", "cafe\u0301"):
        assert both.normalize(text) == text
    german = TextProfile.of(["Er sagte „ja“."] * 20)
    assert german.normalize('Er "geht".') == "Er „geht“."


def test_texts_of_training_are_not_changed() -> None:
    for texts in (STRAIGHT, CURLY):
        profile = TextProfile.of(texts)
        assert [profile.normalize(text) for text in texts] == texts
        assert not any(map(profile.needs_lower, texts))


def test_capitals_become_sentence_case() -> None:
    profile = TextProfile.of(STRAIGHT)
    assert profile.needs_lower("IS TOM IN BOSTON?")
    assert (
        profile.sentence_case("IS “TOM” IN BOSTON WITH A TV? SO DO I! YES.")
        == "Is “Tom” in Boston with a TV? So do I! Yes."
    )
    assert not TextProfile.of([*STRAIGHT, "ALL CAPS"]).needs_lower("IS TOM IN BOSTON?")  # more than 1 % of texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STOP NOW!", True),
        ("NASA", False),
        ("OK", False),
        ("I AGREE", True),
        ("Stop NOW", False),
        ("今天", False),
        ("A B", False),
    ],
)
def test_capitals_are_told_from_abbreviations(text: str, expected: bool) -> None:
    assert is_upper(text) == expected


def test_common_number_of_sentences() -> None:
    assert TextProfile.of(["One.", "One. Two."] + ["One."] * 30).max_sentences == 1  # 3 % of texts
    assert TextProfile.of(["One.", "One. Two."] + ["One."] * 10).max_sentences == 2
    assert TextProfile.of([]).max_sentences == 1


def test_table_is_json() -> None:
    profile = TextProfile.of(STRAIGHT)
    table = json.loads(json.dumps(profile.to_table()))
    assert TextProfile.from_table(table) == profile
    for name, value in (("n_texts", "x"), ("variants", {"'": -1}), ("capitalized", "Tom"), ("capitalized", [""])):
        with pytest.raises((TypeError, ValueError)):
            TextProfile.from_table({**table, name: value})
