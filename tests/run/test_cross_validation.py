"""Cross-validation: every row is tested once, by a model that was not trained on it."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from manyheads.bundle import load
from manyheads.cli.root import commands
from manyheads.errors import DataError, RecipeError
from manyheads.run import Corpus, DataSettings, Recipe, fold_recipes, read_recipe, score_folds
from manyheads.run.held_out import assign_folds
from manyheads.settings import to_toml
from manyheads.tasks import ClassifySettings

Table = Callable[..., dict[str, object]]
ROWS = [(f"the {noun} number {i}", label) for label, noun in (("animal", "cat"), ("tool", "saw")) for i in range(20)]


@pytest.fixture
def recipe_file(recipe_table: Table, tmp_path: Path) -> Path:
    text = "".join(f"{text}\t{label}\n" for text, label in ROWS)
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + text, encoding="utf-8")
    table = recipe_table(
        data={"train": [str(tmp_path / "rows.tsv")]},
        task={"kind": "classify"},
        tokenizer={"kind": "character", "vocab_size": 300},
        model={"width": 16, "feed_forward_width": 24, "n_heads": 2, "n_encoder_layers": 1, "max_length": 40},
        train={"steps": 2, "batch_tokens": 300, "warmup": 1, "validate_every": 2, "save_every": 2},
    )
    path = tmp_path / "small.toml"
    path.write_text(to_toml(table), encoding="utf-8")
    return path


def test_folds_are_equal_in_size_and_labels_whatever_the_order() -> None:
    folds = assign_folds(ROWS, lambda row: (row[1],), 4)
    assert Counter(folds.values()) == dict.fromkeys((1, 2, 3, 4), 10)
    assert Counter((fold, row[1]) for row, fold in folds.items())[(1, "animal")] == 5
    assert assign_folds(ROWS[::-1], lambda row: (row[1],), 4) == folds


def test_each_row_is_tested_once_and_never_trained_on(recipe_file: Path) -> None:
    data = str(recipe_file.parent / "rows.tsv")
    tested = []
    for recipe in fold_recipes(read_recipe(recipe_file), 3):
        assert recipe.data.train == (data,)
        corpus = Corpus.of(recipe)
        train, valid, test = set(corpus.train()), set(corpus.valid()), list(corpus.tests()["test"])
        assert train | valid | set(test) == set(ROWS)
        assert not (train & valid or train & set(test) or valid & set(test))
        tested += test
    assert sorted(tested) == sorted(ROWS)


def test_pooled_score_through_the_command_and_again_without_training(recipe_file: Path, tmp_path: Path) -> None:
    command = ["train", str(recipe_file), "--folds", "2", "--plain", "-o", str(tmp_path / "folds")]
    first = CliRunner().invoke(commands, command, catch_exceptions=False)
    assert first.exit_code == 0
    assert "small.toml · fold 2 of 2" in first.output
    assert "cross-validation  n = 40" in first.output
    result = json.loads((tmp_path / "folds" / "folds.json").read_text("utf-8"))
    assert result["score"]["n"] == 40 and [fold["n"] for fold in result["folds"]] == [20, 20]
    assert result["score"]["value"] == pytest.approx(np.mean([fold["value"] for fold in result["folds"]]))
    assert result["score"]["signature"] == "n:40|resamples:1000|folds:2"
    again = CliRunner().invoke(commands, command, catch_exceptions=False)
    assert "step" not in again.output and "cross-validation  n = 40" in again.output
    bundles = [tmp_path / "folds" / f"fold-{fold}" / "bundle" for fold in (1, 2)]
    assert load(bundles[0]).scores["test"][0].n == 20
    assert [load(bundle).recipe["data"]["fold"] for bundle in bundles] == [1, 2]
    assert score_folds(bundles).score.value == result["score"]["value"]
    changed = CliRunner().invoke(commands, [*command, "model.dropout=0.4"])
    assert isinstance(changed.exception, RecipeError) and "another recipe" in str(changed.exception)


def test_bad_input(recipe_table: Table) -> None:
    with pytest.raises(RecipeError, match=r"data.fold = 3 must be at least 1 and at most data.folds = 2. Set both."):
        DataSettings(train=("a.tsv",), folds=2, fold=3)
    with pytest.raises(RecipeError, match="Set both"):
        DataSettings(train=("a.tsv",), folds=2)
    with pytest.raises(RecipeError, match=r"data.fold and data.test are both given. Choose one"):
        DataSettings(train=("a.tsv",), folds=2, fold=1, test=("b.tsv",))
    with pytest.raises(RecipeError, match="Set both"):
        DataSettings(train=("a.tsv",), fold=1)
    with pytest.raises(RecipeError, match=r"data.fold and data.builtin are both given. Choose one"):
        DataSettings(builtin="en", folds=2, fold=1)
    documents = {"data": {"train": ["a.txt"]}, "task": {"kind": "language"}}
    for table in (recipe_table(), documents):
        with pytest.raises(RecipeError, match="Cross-validation needs rows of your own"):
            fold_recipes(Recipe.from_table(table), 5)


def test_a_fold_takes_the_place_of_the_test_set() -> None:
    recipe = Recipe.from_table({"data": {"train": ["a.tsv"], "test": ["b.tsv"]}, "task": {"kind": "classify"}})
    data = [one.data for one in fold_recipes(recipe, 3)]
    assert [(one.train, one.test, one.folds, one.fold) for one in data] == [
        (("a.tsv",), (), 3, fold) for fold in (1, 2, 3)
    ]


def test_more_folds_than_rows_are_refused_by_the_first_fold(recipe_file: Path) -> None:
    data = DataSettings(train=(str(recipe_file.parent / "rows.tsv"),), folds=50, fold=1)
    with pytest.raises(DataError, match="There are 40 different rows, too few for 50 folds"):
        list(Corpus(data, 1, task=ClassifySettings()).train())
