"""Checks of languages, by script and by letters."""

import pytest

from manyheads.doctor.character_classes import script_of_language
from manyheads.doctor.language_checks import check_declared_languages, check_mixed_languages, check_untranslated

from doctor.makers import healthy, make_stats


@pytest.mark.parametrize("target", ["de", "zh"])
def test_exchanged_lines_are_counted(target: str) -> None:
    pairs = healthy(target)
    sick = [(b, a) if index % 30 == 0 else (a, b) for index, (a, b) in enumerate(pairs)]
    found = make_stats(sick)
    finding = check_mixed_languages(found, found)
    assert finding.verdict == "bad"
    count = int(finding.message.split()[1])
    assert 45 <= count <= 50
    assert finding.examples[0].startswith("train.en:1: ")


@pytest.mark.parametrize("target", ["de", "zh"])
def test_one_side_in_the_wrong_language(target: str) -> None:
    pairs = healthy(target)
    sick = [(a, pairs[index - 1][0]) if index % 20 == 0 else (a, b) for index, (a, b) in enumerate(pairs)]
    found = make_stats(sick)
    finding = check_mixed_languages(found, found)
    assert finding.verdict == "warning"
    assert "0 of 1,500 pairs have their sides exchanged" in finding.message


def test_set_with_sides_exchanged_against_the_training_set() -> None:
    pairs = healthy()
    finding = check_mixed_languages(make_stats([(b, a) for a, b in pairs[:100]], "valid"), make_stats(pairs))
    assert finding.verdict == "bad"
    assert int(finding.message.split()[1]) >= 95


def test_untranslated_lines() -> None:
    pairs = healthy()
    finding = check_untranslated(make_stats([*pairs, *((a, a.upper()) for a, _ in pairs[:50])]))
    assert finding.verdict == "warning"
    assert "50 of 1,550" in finding.message
    assert check_untranslated(make_stats([("OK", "OK"), ("1984", "1984")] * 50)).verdict == "good"


def test_declared_languages_by_script_and_by_file_name() -> None:
    found = make_stats(healthy("zh"))
    assert check_declared_languages(found, ("en", "zh")).verdict == "good"
    assert check_declared_languages(found, ("", "")).verdict == "good"
    assert check_declared_languages(found, ("zh", "en")).verdict == "bad"
    assert check_declared_languages(found, ("xx", "en")).verdict == "bad"  # the files are train.en and train.xx


def test_scripts_of_languages() -> None:
    assert [script_of_language(code) for code in ("zh-CN", "en", "pt_BR", "ja", "qq", "")] == [
        "Han", "Latin", "Latin", "Kana", None, None,
    ]  # fmt: skip


def test_one_very_long_line_does_not_affect_the_others() -> None:
    found = make_stats([*healthy(count=300), ("x " * 500_000, "Ein Haus.")])
    assert check_mixed_languages(found, found).verdict == "good"
