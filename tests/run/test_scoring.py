"""Scores of a set that was used to train, to choose a checkpoint or to calibrate are marked as optimistic."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads import corpora
from manyheads.bundle import Bundle, load
from manyheads.data import CleanSettings
from manyheads.errors import BundleError, DataError
from manyheads.metrics import Baseline, masked_card, read_sections, score_notes
from manyheads.proposals.survey import survey
from manyheads.run import (
    BaselineScored,
    Corpus,
    DataSettings,
    DecodingChosen,
    Finished,
    Prepared,
    Recipe,
    fold_recipes,
    mark,
    run,
    uses_of,
)
from manyheads.tasks import Classify
from manyheads.text.reading.readers import Row
from test_bundle import reseal

Table = Callable[..., dict[str, object]]
WORDS = {"animal": ("cat", "dog", "hen"), "tool": ("saw", "axe", "file")}


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.tsv"
    rows = [f"the {words[i % 3]} number {i}\t{label}\n" for label, words in WORDS.items() for i in range(30)]
    path.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    return path


def recipe_of(table: Table, path: Path, **train: object) -> Recipe:
    steps = {"steps": 4, "batch_tokens": 300, "warmup": 2, "validate_every": 2, "save_every": 2}
    return Recipe.from_table(
        table(
            data={"train": [str(path)]},
            task={"kind": "classify"},
            tokenizer={"kind": "character", "vocab_size": 300},
            model={"width": 16, "feed_forward_width": 24, "n_heads": 2, "n_encoder_layers": 1, "max_length": 40},
            train={**steps, "average_snapshots": 1, **train},
        )
    )


def test_scores_of_the_validation_set_say_what_it_was_used_for(
    recipe_table: Table, rows_file: Path, tmp_path: Path
) -> None:
    list(run(recipe_of(recipe_table, rows_file, patience=1), tmp_path / "run"))
    bundle = load(tmp_path / "run" / "bundle")
    assert {score.used_for for score in bundle.scores["valid"]} == {("stopping", "calibration")}
    assert bundle.validation_used_for == ("stopping", "calibration")
    record = json.loads((tmp_path / "run" / "bundle" / "bundle.json").read_text("utf-8"))
    assert record["scores"]["valid"][0]["used_for"] == ["stopping", "calibration"]
    page = (tmp_path / "run" / "log.jsonl").read_text("utf-8")
    assert '"used_for": ["stopping", "calibration"]' in page
    assert uses_of(bundle, "valid") == ("stopping", "calibration")
    assert uses_of(bundle, "rows.tsv", [rows_file]) == ("training",)
    assert uses_of(bundle, "other.tsv", [tmp_path / "other.tsv"]) == ()


def test_a_linear_baseline_is_scored_before_training_and_beside_the_model(
    recipe_table: Table, rows_file: Path, tmp_path: Path
) -> None:
    events = list(run(recipe_of(recipe_table, rows_file), tmp_path / "run"))
    (scored,) = [event for event in events if isinstance(event, BaselineScored)]
    assert (scored.name, scored.score.name, scored.score.n) == ("n-gram SVM", "accuracy", 12)
    finished = events[-1]
    assert isinstance(finished, Finished)
    baseline = finished.cards["valid"].baseline
    assert baseline is not None
    assert (baseline.name, baseline.change.before) == ("n-gram SVM", scored.score.value)
    assert baseline.is_optimistic  # there is no test set
    bundle = load(tmp_path / "run" / "bundle")
    rows = [(f"the {word} number 99", "") for words in WORDS.values() for word in words]
    tally, again = bundle.task.tally(rows, bundle.decode), bundle.task.baseline_tally(rows)
    assert tally.name == again.name == baseline.change.name
    assert bundle.task.mixture.share > 0  # four steps teach the Transformer little
    record = json.loads((tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()[-1])
    (stored,) = [section for section in read_sections(record["cards"]["valid"]) if isinstance(section, Baseline)]
    assert stored == baseline
    assert stored.speedup == baseline.speedup
    assert baseline.speedup is not None and baseline.speedup > 0


def test_the_baseline_alone_is_the_linear_model(recipe_table: Table, rows_file: Path, tmp_path: Path) -> None:
    list(run(recipe_of(recipe_table, rows_file), tmp_path / "run"))
    bundle = load(tmp_path / "run" / "bundle")
    texts = [f"the {word} number 99" for words in WORDS.values() for word in words]
    logits = bundle.task.linear_logits(texts)
    alone = bundle.baseline_alone()
    with torch.no_grad():
        for parameter in alone.task.module.parameters():
            parameter.fill_(torch.nan)  # which would reach the answers if it were computed
    assert alone.predict(texts) == [bundle.task.labels[index] for index in logits.argmax(1)]
    assert all(0 < one.probability < 1 for one in alone.predictions(texts))
    with pytest.raises(BundleError, match="has no linear baseline"):
        replace(bundle, task=replace(bundle.task, linear=None)).baseline_alone()


def test_bundle_with_a_damaged_baseline_is_refused(recipe_table: Table, rows_file: Path, tmp_path: Path) -> None:
    list(run(recipe_of(recipe_table, rows_file), tmp_path / "run"))
    folder = tmp_path / "run" / "bundle"
    tensors = load_file(folder / "baseline.safetensors")
    save_file({**tensors, "bias": tensors["bias"][:1].contiguous()}, folder / "baseline.safetensors")
    reseal(folder)
    with pytest.raises(BundleError, match=r"baseline\.safetensors .* bias has the shape"):
        load(folder)


def test_length_penalty_is_chosen_on_the_validation_set_unless_the_recipe_sets_it(
    recipe_table: Table, tmp_path: Path
) -> None:
    rows = [f"{source}\t{target}\n" for source, target in corpora.pairs("en", "zh", "train", 160)]
    (tmp_path / "train.tsv").write_text("".join(rows[:130]), "utf-8")
    (tmp_path / "valid.tsv").write_text("".join(rows[130:]), "utf-8")
    table = recipe_table(
        data={"train": [str(tmp_path / "train.tsv")], "valid": [str(tmp_path / "valid.tsv")]},
        decode={"beam": 2, "max_new_tokens": 4},
        tokenizer={"kind": "character", "vocab_size": 400},
    )
    events = list(run(Recipe.from_table(table), tmp_path / "open"))
    (chosen,) = [event.choice for event in events if isinstance(event, DecodingChosen)]
    bundle = load(tmp_path / "open" / "bundle")
    assert bundle.decoding_choice == chosen
    assert bundle.decode.length_penalty == chosen.value
    assert "length_penalty" not in bundle.recipe["decode"]
    assert {score.used_for for score in bundle.scores["valid"]} == {("decoding",)}
    assert uses_of(bundle, "valid.tsv", [tmp_path / "valid.tsv"]) == ("decoding",)
    stored = (tmp_path / "open" / "bundle" / "bundle.json").read_bytes()
    list(run(Recipe.from_table(table), tmp_path / "open"))  # finishes again
    assert (tmp_path / "open" / "bundle" / "bundle.json").read_bytes() == stored

    table["decode"] = {"beam": 2, "max_new_tokens": 4, "length_penalty": 0.7}
    events = list(run(Recipe.from_table(table), tmp_path / "set"))
    assert not any(isinstance(event, DecodingChosen) for event in events)
    bundle = load(tmp_path / "set" / "bundle")
    assert (bundle.decode.length_penalty, bundle.decoding_choice, bundle.validation_used_for) == (0.7, None, ())


def test_test_sets_are_not_marked(untrained: Bundle, tmp_path: Path) -> None:
    marked = replace(untrained, validation_used_for=("stopping",))
    assert uses_of(marked, "test") == ()
    valid = tmp_path / "valid.tsv"
    recipe = {**untrained.recipe, "data": {"train": ["train.tsv"], "valid": [str(valid)]}}
    bundle = replace(marked, recipe=recipe)
    assert uses_of(bundle, "valid.tsv", [valid]) == ("stopping",)
    assert uses_of(bundle, "several", [valid, tmp_path / "other.tsv"]) == ("stopping",)
    assert uses_of(bundle, "several", [Path("train.tsv"), valid]) == ("training", "stopping")


def test_mark_changes_the_scores_and_nothing_else() -> None:
    card = masked_card([3, 4], [5, 5], [4.0, 3.0], n_resamples=5)
    marked = mark(card, ("stopping",))
    assert mark(card, ()) is card
    assert [score.used_for for score in marked.scores] == [("stopping",)] * 2
    assert marked.sections() == card.sections()


def test_notes_in_both_languages() -> None:
    few, used = score_notes(12, ["stopping", "calibration"])
    assert few.by_language() == {
        "en": "n = 12: so few that the interval says little.",
        "zh": "n = 12：样本太少，区间参考价值有限。",
    }
    assert str(used) == (
        "The set was also used to choose the checkpoint and to calibrate the probabilities: its scores are optimistic."
    )
    assert used.by_language()["zh"] == "这个集合还用于选择检查点、校准概率，得分偏乐观。"
    (tuned,) = score_notes(100, ["decoding"])
    assert str(tuned) == "The set was also used to choose the length penalty: its scores are optimistic."
    assert tuned.by_language()["zh"] == "这个集合还用于选择长度惩罚，得分偏乐观。"
    assert list(score_notes(30, [])) == list(score_notes(None, ["unknown"])) == []


@pytest.fixture
def choosing(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """The rows that chose something: the checkpoint, mixture and temperature, or the score of the baseline."""
    chosen: list[Row] = []
    for name in ("validate", "calibrate", "baseline_tally"):
        method = getattr(Classify, name)

        def record(task: Classify, rows: Sequence[Row], *others: object, method: Any = method) -> object:
            if sys._getframe(1).f_code.co_name != "score_rows":  # which compares with the baseline
                chosen.extend(rows)
            return method(task, rows, *others)

        monkeypatch.setattr(Classify, name, record)
    return chosen


def write_rows(path: Path, rows: Sequence[Row]) -> str:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return str(path)


def with_data(table: Table, rows_file: Path, *, drop_leaked: bool = True, **data: object) -> Recipe:
    recipe = recipe_of(table, rows_file, patience=1)
    settings: Any = {"train": (str(rows_file),), **data}
    return replace(recipe, data=DataSettings(**settings), clean=CleanSettings(drop_leaked=drop_leaked))


def rows_of(path: Path) -> list[Row]:
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()[1:]]


def is_common(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    return not {text.lower() for text, _ in rows}.isdisjoint(text.lower() for text, _ in others)


def test_rows_of_the_test_set_do_not_choose_the_model(
    recipe_table: Table, rows_file: Path, tmp_path: Path, choosing: list[Row]
) -> None:
    """The test set is a part of the training file, in other case and with other labels."""
    test = [(text.upper(), "tool") for text, _ in rows_of(rows_file)[::2]]
    recipe = with_data(recipe_table, rows_file, test=(write_rows(tmp_path / "test.tsv", test),))
    events = list(run(recipe, tmp_path / "run"))
    assert choosing and not is_common(choosing, test)
    (prepared,) = [event for event in events if isinstance(event, Prepared)]
    assert prepared.n_valid == len(set(choosing))
    assert prepared.valid_dropped == {"in test": 12 - prepared.n_valid} and 0 < prepared.n_valid < 12
    scores = load(tmp_path / "run" / "bundle").scores
    assert {score.used_for for score in scores["test"]} == {()}


def test_rows_of_a_fold_do_not_choose_its_model(
    recipe_table: Table, rows_file: Path, tmp_path: Path, choosing: list[Row]
) -> None:
    """The validation set is a part of the training file."""
    valid = write_rows(tmp_path / "valid.tsv", rows_of(rows_file)[::3])
    recipe = with_data(recipe_table, rows_file, valid=(valid,))
    tested: list[Row] = []
    for number, fold in enumerate(fold_recipes(recipe, 2), start=1):
        choosing.clear()
        events = list(run(fold, tmp_path / str(number)))
        test = list(Corpus.of(fold).tests()["test"])
        assert choosing and not is_common(choosing, test)
        (prepared,) = [event for event in events if isinstance(event, Prepared)]
        assert sum(prepared.valid_dropped.values()) + (prepared.n_valid or 0) == 20
        tested += test
    assert sorted(tested) == sorted(rows_of(rows_file))  # each fold is another one


@pytest.mark.parametrize("name", ["valid.tsv", "copy.tsv"])
def test_a_test_set_that_is_the_validation_set_is_refused(
    recipe_table: Table, rows_file: Path, tmp_path: Path, name: str
) -> None:
    rows = [(f"the other {number}", "tool") for number in range(20)]
    files = [write_rows(tmp_path / file, rows) for file in ("valid.tsv", name)]
    recipe = with_data(recipe_table, rows_file, valid=(files[0],), test=(files[1],))
    with pytest.raises(
        DataError, match=r"^Each row of the validation set has a text that is in the test set .*texts\.$"
    ):
        list(run(recipe, tmp_path / "run"))
    with pytest.raises(DataError, match=r"^Each row of the validation set has a text that is in the test set"):
        survey(recipe.data, recipe.task)


@pytest.mark.parametrize("n_leaked", [0, 1])
def test_scores_of_rows_that_training_keeps_on_request_are_marked(
    recipe_table: Table, rows_file: Path, tmp_path: Path, n_leaked: int
) -> None:
    test = [(f"the other {number}", "tool") for number in range(20)] + [
        (text.upper(), label) for text, label in rows_of(rows_file)[:n_leaked]
    ]
    path = write_rows(tmp_path / "test.tsv", test)
    recipe = with_data(recipe_table, rows_file, test=(path,), drop_leaked=False)
    list(run(recipe, tmp_path / "run"))
    bundle = load(tmp_path / "run" / "bundle")
    mark = ("training",) if n_leaked else ()
    assert {score.used_for for score in bundle.scores["test"]} == {mark}
    assert uses_of(bundle, "test") == mark
    copy = tmp_path / "copy.tsv"
    copy.write_bytes(rows_file.read_bytes())
    assert uses_of(bundle, copy.name, [copy]) == ("training",)  # by its content
    assert uses_of(bundle, "test.tsv", [Path(path)]) == ()
