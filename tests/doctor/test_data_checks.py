"""Checks of data: each reports its fault, and healthy data is good."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from manyheads.data import Cleaner, CleanSettings
from manyheads.doctor import data_checks
from manyheads.doctor.corpus_stats import Source, collect_stats
from manyheads.doctor.diagnosis import check_data
from manyheads.doctor.misalignment import check_alignment
from manyheads.errors import DataError
from manyheads.language import using
from manyheads.run import Recipe

from doctor.makers import healthy, make_stats

CLEAN = CleanSettings()
KEEP = CleanSettings(drop_duplicates=False, drop_leaked=False)


@pytest.mark.parametrize("target", ["de", "zh"])
def test_healthy_data_is_good(target: str) -> None:
    pairs = healthy(target)
    valid = [pair for pair in healthy(target, 1700)[1500:] if pair not in set(pairs)]
    known = {text.casefold() for text, _ in pairs}
    valid = [pair for pair in valid if pair[0].casefold() not in known]
    recipe = Recipe.from_table(
        {"data": {"train": ["a.en", "a.xx"]}, "task": {"source_language": "en", "target_language": target}}
    )
    findings = list(check_data([make_stats(pairs), make_stats(valid, "valid")], recipe))
    assert [finding for finding in findings if finding.verdict != "good"] == []
    assert len(findings) > 12


def test_duplicates_agree_with_what_training_drops() -> None:
    pairs = healthy()
    sick = pairs + pairs[:200]
    finding = data_checks.check_duplicates(make_stats(sick), CLEAN)
    assert finding.verdict == "warning"
    assert "200 of 1,700" in finding.message
    assert "Training drops them." in finding.message
    assert "by itself" not in data_checks.check_duplicates(make_stats(sick), KEEP).message
    counts: Counter[str] = Counter()
    list(Cleaner(CLEAN).clean(sick, counts))
    assert counts["duplicate"] == 200
    assert finding.examples[0].startswith("train.en:1501: ")


def test_many_targets() -> None:
    sick = healthy() + [("The same.", f"Etwas anderes {number}.") for number in range(900)]
    finding = data_checks.check_many_targets(make_stats(sick))
    assert finding.verdict == "warning"
    assert "at most 900" in finding.message
    assert "The same." in finding.examples[0]


def test_leakage_ignores_case_and_spacing() -> None:
    pairs = healthy()
    held = make_stats(
        [(pairs[3][0].upper() + "  ", "Etwas ganz anderes."), pairs[4], ("Unheard-of words.", "Neu.")], "test"
    )
    finding = data_checks.check_leakage(make_stats(pairs), held, KEEP)
    assert finding.verdict == "bad"
    assert "2 of 3 (66.7 %) pairs of test have a side that also occurs in train" in finding.message
    assert "(sources: 2, targets: 1, whole pairs: 1)" in finding.message
    assert finding.examples[0].startswith("test.en:1: ")
    assert "drop_leaked" in finding.fix


def test_length_ratio() -> None:
    long = " ".join(["und noch ein Wort"] * 20)
    finding = data_checks.check_ratio(make_stats(healthy() + [("A short one for it.", long)] * 30))
    assert finding.verdict == "warning"
    assert "30 of 1,530" in finding.message
    assert "Training drops 30 of them" in finding.message
    assert "A short one" in finding.examples[0]


@pytest.mark.parametrize("bad", ["Ein \ufffd Haus.", "Ein\0 Haus.", "MÃ¤nner schlafen.", "Itâ€™s", "锟斤拷"])
def test_garbled_text(bad: str) -> None:
    finding = data_checks.check_encoding(make_stats([*healthy(), ("A house.", bad)]), CLEAN)
    assert finding.verdict == "warning"
    assert finding.examples[0].startswith("train.xx:1501: ")
    assert data_checks.check_encoding(make_stats([("A house.", bad)] * 50), CLEAN).verdict == "bad"


def test_accents_are_not_garbled() -> None:
    text = [("The café of São Paulo, naïve.", "Das Café in São Paulo, naïv: Âge, Ångström, Übung.")] * 3
    assert data_checks.check_encoding(make_stats(text), CLEAN).verdict == "good"


def test_invisible_characters() -> None:
    odd = [("No.\xa01", "Nr. 1"), ("A\u200b b", "A b"), ("end ", "Ende")]
    finding = data_checks.check_invisible(make_stats(healthy() + odd * 3))
    assert finding.verdict == "warning"
    assert "unusual spaces: 3, with zero-width characters: 3, with a space at an end: 3" in finding.message
    assert any("<U+200B>" in example for example in finding.examples)


def test_legitimate_joiners_are_good() -> None:
    pictures = [("A family \U0001f468\u200d\U0001f469.", "Eine Familie \U0001f468\u200d\U0001f469.")]
    persian = [("I want it.", "می\u200cخواهم آن را.")]
    assert data_checks.check_invisible(make_stats(pictures * 20)).verdict == "good"
    assert data_checks.check_invisible(make_stats(persian * 20)).verdict == "good"


def test_mixed_widths() -> None:
    pairs = healthy("zh")
    narrow = [(source, target.replace("，", ",").replace("？", "?") + "!") for source, target in pairs[:300]]
    wide = [(source, target + "！") for source, target in pairs[300:]]
    finding = data_checks.check_full_width(make_stats(narrow + wide))
    assert finding.verdict == "warning"
    assert "of the target side" in finding.message


def test_blank_and_long_lines() -> None:
    found = make_stats([*healthy(), ("Only one side.", " "), ("word " * 3000, "Wort"), ("word " * 3000, "Worte")])
    blank = data_checks.check_blank(found)
    assert blank.verdict == "warning"
    assert blank.examples == ("train.en:1501: Only one side. → ␣",)
    long = data_checks.check_long_lines(found)
    assert long.verdict == "warning"
    assert "the longest line has 15,000" in long.message


@pytest.mark.parametrize("where", [0, 700])
def test_misalignment_is_located_to_the_line(where: int) -> None:
    pairs = healthy()
    targets = [target for _, target in pairs]
    slipped = [
        (source, target) for (source, _), target in zip(pairs, targets[:where] + targets[where + 1 :], strict=False)
    ]
    finding = check_alignment(make_stats(slipped))
    assert finding.verdict == "bad"
    assert "1 line too early" in finding.message
    line = int(finding.message.split("from about line ")[1].split()[0].replace(",", ""))
    assert abs(line - 1 - where) <= 6
    assert "missing in the target" in finding.fix


def test_end_of_a_misalignment_is_located() -> None:
    pairs = healthy()
    targets = [target for _, target in pairs]
    moved = [*targets[:400], "Eine Zeile zu viel steht hier.", *targets[400:900], *targets[901:]]
    finding = check_alignment(make_stats([(source, target) for (source, _), target in zip(pairs, moved, strict=True)]))
    assert "1 line too late" in finding.message
    end = int(finding.message.split(" to ")[1].split()[0].replace(",", ""))
    assert abs(end - 901) <= 6


def test_shuffled_lines_are_found() -> None:
    pairs = healthy()
    others = random.Random(3).sample(pairs, len(pairs))
    finding = check_alignment(make_stats([(a, d) for (a, _), (_, d) in zip(pairs, others, strict=True)]))
    assert finding.verdict == "bad"
    assert "are unrelated" in finding.message


def test_read_error_is_reported_and_the_rows_before_it_are_checked() -> None:
    def broken() -> Iterator[tuple[str, str]]:
        yield from healthy()
        raise DataError("a.en has 9 lines, but a.de has 8.")

    found = collect_stats(Source("train", broken, ("a.en", "a.de")), CLEAN)
    assert len(found) == 1500
    assert data_checks.check_complete(found).verdict == "bad"
    assert "9 lines" in data_checks.check_complete(found).message


def test_empty_set_and_truncated_set() -> None:
    assert data_checks.check_complete(make_stats([])).verdict == "bad"
    part = collect_stats(Source("train", lambda: healthy()), CLEAN, max_rows=100)
    assert "the first 100 pairs were checked" in data_checks.check_complete(part).message


def test_punctuation_inside_numbers_has_no_width() -> None:
    pairs = [(source, f"{target}，9:30有1,000人") for source, target in healthy("zh", 300)]
    assert data_checks.check_full_width(make_stats(pairs)).verdict == "good"


def test_leakage_counts_the_training_pairs_it_costs() -> None:
    pairs = [*healthy(), ("Quite so.", "Ja."), ("Yes!", "Ja."), ("Indeed.", "ja.")]
    held = [("Certainly.", "Ja."), ("Unheard-of words.", "Neu.")]
    finding = data_checks.check_leakage(make_stats(pairs), make_stats(held, "valid"), CLEAN)
    assert finding.verdict == "warning"  # training drops these pairs
    assert "That is 3 of 1,503" in finding.message
    assert "remove these texts from valid" in finding.fix
    counts: Counter[str] = Counter()
    list(Cleaner(CLEAN, held).clean(pairs, counts))
    assert counts["in valid or test"] == 3


def test_rows_that_training_drops_are_at_most_a_warning() -> None:
    finding = data_checks.check_duplicates(make_stats(healthy(count=100) * 3), CLEAN)
    assert (finding.verdict, "Training drops them" in finding.fix) == ("warning", True)
    assert data_checks.check_duplicates(make_stats(healthy(count=100) * 3), KEEP).verdict == "bad"
    lost = [*healthy(count=400), *[("A house.", "Ein\0 Haus.")] * 30]
    finding = data_checks.check_encoding(make_stats(lost), CLEAN)
    assert finding.verdict == "warning"
    assert "Training drops those with U+FFFD or NUL" in finding.message
    assert data_checks.check_encoding(make_stats(lost, "valid"), CLEAN).verdict == "bad"


def test_only_training_drops_blank_lines() -> None:
    assert "Training drops them." in data_checks.check_blank(make_stats([("a", "")])).message
    assert "by itself" not in data_checks.check_blank(make_stats([("a", "")], "valid")).message


def test_too_few_pairs_to_check_alignment() -> None:
    finding = check_alignment(make_stats([("a", "bbbb"), ("aaaa", "b"), ("aa", "bb")]))
    assert (finding.verdict, "too few to be sure" in finding.message) == ("good", True)


def test_validation_rows_of_the_test_set_are_reported() -> None:
    pairs = healthy()
    test = make_stats([(pairs[3][0].upper() + "  ", "Etwas ganz anderes."), ("", "Leer.")], "test")
    found = [
        data_checks.check_validation_leakage(make_stats(valid, "valid"), test)
        for valid in ([pairs[1], ("", "Nichts.")], pairs[:10], [pairs[3]])
    ]
    assert [finding.verdict for finding in found] == ["good", "warning", "bad"]
    assert "1 of 10 (10.0 %) pairs of valid have a text of test" in found[1].message
    assert "Validation drops them." in found[1].message and "leave out test" in found[2].fix
    with using("zh"):
        finding = data_checks.check_validation_leakage(make_stats(pairs[:10], "valid"), test)
        assert "valid 的 1 / 10 (10.0 %)" in finding.message
