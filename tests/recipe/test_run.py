"""A run: from text to bundle, and on from wherever it stopped."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.bundle import load
from manyheads.errors import DataError, RecipeError
from manyheads.recipe import Finished, Interrupted, Prepared, Recipe, Resumed, Saved, Stage, Validated, discard, run
from manyheads.text import grammar
from manyheads.train import Step

Table = Callable[..., dict[str, object]]


def bytes_of(folder: Path) -> bytes:
    return (folder / "bundle" / "weights.safetensors").read_bytes()


def test_a_whole_run_and_its_events(tmp_path: Path, recipe_table: Table) -> None:
    events = list(run(Recipe.from_table(recipe_table()), tmp_path))
    kinds = [type(event) for event in events]
    assert kinds[:3] == [Stage, Stage, Prepared]
    assert kinds.count(Step) == 6
    assert kinds.count(Saved) == 3
    assert kinds.count(Validated) == 2
    last = events[-1]
    assert isinstance(last, Finished)
    assert {name: [score.name for score in row] for name, row in last.scores.items()} == {
        "test": ["BLEU", "chrF"],
        "compositional": ["BLEU", "chrF"],
    }
    assert load(last.bundle).scores == last.scores
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert [entry["event"] for entry in log] == [kind.__name__ for kind in kinds]


def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path, recipe_table: Table) -> None:
    table = recipe_table(tokenizer={"vocabulary": 1500, "sampling": 0.2})
    recipe = Recipe.from_table(table)
    list(run(recipe, tmp_path / "whole"))

    calls = iter([False, False, True])
    first = list(run(recipe, tmp_path / "parts", lambda: next(calls)))
    assert first[-1] == Interrupted(3)
    second = list(run(recipe, tmp_path / "parts"))
    assert Resumed(3, []) in second
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")


def test_a_folder_of_another_recipe_is_refused_but_a_longer_run_goes_on(tmp_path: Path, recipe_table: Table) -> None:
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    with pytest.raises(RecipeError, match=r"holds a run of another recipe \(seed was 1, now 2\).*-o"):
        next(run(Recipe.from_table(recipe_table(seed=2)), tmp_path))
    longer = dict(recipe_table()["train"], steps=8)  # type: ignore[call-overload]
    events = list(run(Recipe.from_table(recipe_table(train=longer)), tmp_path))
    assert Resumed(6, []) in events
    assert [event.step for event in events if isinstance(event, Step)] == [7, 8]


def test_own_files_without_a_valid_set_hold_some_pairs_out(tmp_path: Path, recipe_table: Table) -> None:
    pairs = list(grammar.pairs("en", "de", "train", 600))
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in [*pairs, pairs[0], ("", "")]), "utf-8")
    data = {"train": [str(tmp_path / "a.en"), str(tmp_path / "a.de")]}
    events = list(run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run"))
    (prepared,) = (event for event in events if isinstance(event, Prepared))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert 500 < prepared.n_pairs < 600  # one in twenty is held out
    assert prepared.dropped == {"empty": 1}
    assert list(finished.scores) == ["valid"]


def test_nothing_to_train_on(tmp_path: Path, recipe_table: Table) -> None:
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("\n\n", "utf-8")
    data = {"train": [str(tmp_path / "a.en"), str(tmp_path / "a.de")]}
    with pytest.raises(DataError):
        list(run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run"))


def test_discarding_a_run_touches_only_our_own_files(tmp_path: Path, recipe_table: Table) -> None:
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    (tmp_path / "diary.txt").write_text("mine")
    discard(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]
