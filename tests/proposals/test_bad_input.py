"""Data that nobody would choose: a sensible plan, or one clear line."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.proposals import survey as survey_module
from manyheads.proposals.cost_estimate import measure_cost
from manyheads.proposals.fitted_recipe import Plan, propose
from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.tasks.proposal import Survey

WORDS = [f"{first}{last}" for first in ("ba", "do", "ki", "lu", "me") for last in ("n", "r", "st", "t", "x")]


def text(number: int, n_words: int = 8) -> str:
    return " ".join([*(WORDS[number * (place + 3) % len(WORDS)] for place in range(n_words)), str(number)])


def init(folder: Path, rows: Sequence[tuple[str, str]]) -> tuple[Survey, Plan]:
    """What `manyheads init` does with a table of texts and labels."""
    path = folder / "a.csv"
    path.write_text("text,label\n" + "".join(f"{words},{label}\n" for words, label in rows), "utf-8")
    sets = recognize([path])
    found = survey(sets.settings, sets.task, sets.clean)
    return found, propose(sets.settings, found, None, measure_cost)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(text(n), f"label {n}") for n in range(60)], "column label has 60 different values in 60 rows, so it does"),
        ([(text(n), "x") for n in range(60)], "column label has only “x”. Give at least two different labels"),
        ([("", "xy"[n % 2]) for n in range(60)], r"there is no usable row \(60 empty\). Give text"),
        ([(text(0), "xy"[n % 2]) for n in range(2)], "column label has 2 different values in 2 rows"),
    ],
)
def test_nothing_to_learn_is_refused_in_one_line(tmp_path: Path, rows: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        init(tmp_path, rows)
    assert len(str(error.value)) < 300


def test_twenty_rows_get_a_short_plan(tmp_path: Path) -> None:
    found, plan = init(tmp_path, [(text(n), "xy"[n % 2]) for n in range(20)])
    assert (found.n_rows, found.n_held_out) == (16, 4)
    assert 100 <= plan.recipe.train.steps <= 1000


def test_a_thousand_classes(tmp_path: Path) -> None:
    found, plan = init(tmp_path, [(f"{text(n)} name{n % 1000}", f"class {n % 1000}") for n in range(3000)])
    assert len(found.counts.labels) == 1000
    assert found.unseen_labels == ()
    assert plan.n_epochs > 5


def test_empty_texts_are_left_out(tmp_path: Path) -> None:
    found, plan = init(tmp_path, [(text(n) if n % 3 else "", "xy"[n % 2]) for n in range(120)])
    assert found.dropped["empty"] == 40
    assert all(words for words, _ in (*found.sample, *found.valid_sample))
    assert plan.recipe.train.steps >= 100


def test_texts_of_a_hundred_thousand_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "_SAMPLE_CHARACTERS", 300_000)
    monkeypatch.setattr(survey_module, "_VALID_CHARACTERS", 100_000)
    found, plan = init(tmp_path, [(text(n, 25_000 if n % 10 == 0 else 8), "xy"[n % 2]) for n in range(100)])
    assert found.length_quantile(1.0) > 90_000 or len(found.sample) < found.n_rows
    assert plan.estimate.n_too_long == 0  # they are read in windows
    assert plan.recipe.model.max_length <= 512


def test_mixed_languages(tmp_path: Path) -> None:
    parts = ["这家饭店的菜很好吃", "привет мир хорошо", "مرحبا العالم جيد", "a fine film 😀"]
    found, plan = init(tmp_path, [(f"{parts[n % 4]} {n}", "xy"[n // 4 % 2]) for n in range(200)])
    assert found.n_rows == 160
    assert plan.recipe.tokenizer.kind
    assert plan.recipe.train.steps >= 100


def test_millions_of_rows_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "_MAX_EXAMINED", 500)
    monkeypatch.setattr(survey_module, "_SAMPLE", 100)
    found, plan = init(tmp_path, [(text(n), "xy"[n % 2]) for n in range(3000)])
    assert (found.n_read, found.n_examined) == (3000, 500)
    assert 80 <= len(found.sample) <= 100
    assert 2700 < found.n_rows < 3000
    assert not plan.estimate.is_exact
