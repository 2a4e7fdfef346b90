"""A tally of every task equals the score on its card."""

from dataclasses import replace

import pytest

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.metrics import Tally, compare_tallies, share_tally
from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Tag,
    TagSettings,
)
from manyheads.tasks.task import Task

from tasks.small import make_task

GREEDY = DecodeSettings(method="greedy", max_new_tokens=3)
KINDS = [(Classify, ClassifySettings()), (Tag, TagSettings()), (Masked, MaskedSettings())]


def check(task: Task, rows: list[tuple[str, ...]]) -> Tally:
    tally, card = task.tally(rows, GREEDY), task.score(rows, GREEDY)
    first = next(score for score in card.scores if score.name == tally.name)
    assert tally.value == pytest.approx(first.value)
    assert tally.score().low <= tally.value <= tally.score().high
    return tally


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_tally_of_encoder_tasks(kind: type[Task], settings: object) -> None:
    rows = list(kind.builtin(settings, ["en"], "train", 60, 1))
    assert len(check(make_task(kind, settings, rows), rows[:40]).counts) == 40


def test_tally_of_several_labels() -> None:
    settings = ClassifySettings(multi_label=True, separator="+")
    rows = [("a cat", "animal+noun"), ("a house", "noun"), ("it runs", ""), ("two cats", "animal+noun")] * 5
    check(make_task(Classify, settings, rows), rows)


def test_tally_of_a_language_model() -> None:
    rows = list(Language.builtin(LanguageSettings(), ["en"], "train", 60, 1))
    task = make_task(Language, LanguageSettings(), rows, shape="decoder")
    tally = check(task, rows[:40])
    assert tally.goodness == -tally.value
    assert len(check(task, rows[:3]).counts) > 3  # blocks of few documents


def test_tally_of_translations(untrained: Bundle) -> None:
    rows = list(corpora.pairs("en", "zh", "train", 20, 1))
    card = untrained.task.score(rows, GREEDY)
    assert untrained.task.tally(rows, GREEDY).value == pytest.approx(card.scores[0].value)


def test_comparison_is_paired() -> None:
    before = share_tally("accuracy", [1, 0] * 50, [1] * 100)
    same = compare_tallies(before, before)
    assert (same.difference, same.low, same.high, same.n_texts) == (0.0, 0.0, 0.0, 100)
    worse = compare_tallies(share_tally("accuracy", [0, 0] + [1, 0] * 49, [1] * 100), before)
    assert worse.difference == pytest.approx(-1.0)
    assert worse.cost == pytest.approx(1.0)
    assert -5 < worse.low < worse.high <= 0  # unpaired, it would reach from -14 to +12
    assert compare_tallies(replace(before, name="loss"), replace(before, name="loss")).cost == 0.0


def test_tallies_of_different_texts_are_refused() -> None:
    one, other = share_tally("accuracy", [1], [1]), share_tally("accuracy", [1, 1], [1, 1])
    with pytest.raises(ValueError, match="both must be the same score of the same texts"):
        compare_tallies(one, other)
