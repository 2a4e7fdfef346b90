"""`run`: events, resumption, run folders, and damaged caches."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.bundle import load
from manyheads.errors import DataError, RecipeError, TrainingError
from manyheads.metrics import card_record
from manyheads.run import (
    Finished,
    Interrupted,
    Prepared,
    Recipe,
    Resumed,
    Saved,
    Stage,
    Validated,
    delete_run,
    run,
)
from manyheads.tasks.seq2seq import seq2seq_task as seq2seq
from manyheads.training import Step

Table = Callable[..., dict[str, object]]


def bytes_of(folder: Path) -> bytes:
    return (folder / "bundle" / "weights.safetensors").read_bytes()


def test_events_of_a_run(tmp_path: Path, cache: Path, recipe_table: Table) -> None:
    events = list(run(Recipe.from_table(recipe_table()), tmp_path))
    kinds = [type(event) for event in events]
    assert kinds[:4] == [Stage, Stage, Stage, Prepared]  # text, tokenizer, ids
    assert kinds.count(Step) == 6
    assert [event.step for event in events if isinstance(event, Saved)] == [2, 4, 6]
    assert [event.step for event in events if isinstance(event, Validated)] == [3, 6]
    last = events[-1]
    assert isinstance(last, Finished)
    assert {name: [score.name for score in card.scores] for name, card in last.cards.items()} == {
        "test": ["BLEU", "chrF", "TER"],
        "compositional": ["BLEU", "chrF", "TER"],
    }
    loaded = load(last.bundle)
    assert loaded.scores == {name: card.scores for name, card in last.cards.items()}
    # Of the sources only: 猫 is a word of the targets.
    assert loaded.unseen_words("The cat reads a 猫 and xylophones.") == ["猫", "xylophones"]
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert [entry["event"] for entry in log] == [kind.__name__ for kind in kinds]
    for name, card in last.cards.items():
        record = log[-1]["cards"][name]
        assert record == json.loads(json.dumps(card_record(card)))
        examples = [section["rows"] for section in record["sections"] if section["section"] == "Examples"]
        assert [len(rows) for rows in examples] == [10, 10]  # worst and random, not the whole test set


def test_interrupted_run_resumes_bit_identically(tmp_path: Path, recipe_table: Table) -> None:
    table = recipe_table(tokenizer={"vocab_size": 1500, "sampling": 0.2})
    recipe = Recipe.from_table(table)
    list(run(recipe, tmp_path / "whole"))

    calls = iter([False, False, True])
    first = list(run(recipe, tmp_path / "parts", lambda: next(calls)))
    assert first[-1] == Interrupted(3)
    second = list(run(recipe, tmp_path / "parts"))
    assert Resumed(3, []) in second
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")


def test_folder_of_another_recipe_is_refused_but_more_steps_are_allowed(tmp_path: Path, recipe_table: Table) -> None:
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    with pytest.raises(RecipeError, match=r"contains a run of another recipe \(seed was 1, now 2\).*-o"):
        next(run(Recipe.from_table(recipe_table(seed=2)), tmp_path))
    longer = dict(recipe_table()["train"], steps=8)  # type: ignore[call-overload]
    events = list(run(Recipe.from_table(recipe_table(train=longer)), tmp_path))
    assert Resumed(6, []) in events
    assert [event.step for event in events if isinstance(event, Step)] == [7, 8]


def test_rows_are_held_out_without_a_validation_set(tmp_path: Path, recipe_table: Table) -> None:
    pairs = list(corpora.pairs("en", "de", "train", 600))
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in [*pairs, pairs[0], ("", "")]), "utf-8")
    data = {"train": [str(tmp_path / "a.en"), str(tmp_path / "a.de")]}
    events = list(run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run"))
    (prepared,) = (event for event in events if isinstance(event, Prepared))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert 500 < prepared.n_rows < 600  # one in twenty is held out
    assert prepared.dropped == {"empty": 1, "duplicate": 1, "held out for validation": 600 - prepared.n_rows}
    assert list(finished.cards) == ["valid"]


@pytest.mark.parametrize(
    ("english", "message"),
    [
        ("\n\n\n", "nothing to train on: 3 empty"),
        ("a b\nc d\ne f\n", "nothing to train on: 3 empty"),
    ],
)
def test_nothing_to_train_on(tmp_path: Path, recipe_table: Table, english: str, message: str) -> None:
    (tmp_path / "a.en").write_text(english, "utf-8")
    (tmp_path / "a.de").write_text("\n\n\n", "utf-8")
    data = {"train": [str(tmp_path / "a.en"), str(tmp_path / "a.de")]}
    with pytest.raises(DataError, match=message):
        list(run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run"))


def test_model_too_large_to_train_is_refused_before_the_text_is_read(
    tmp_path: Path, recipe_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.model.size.machine_memory", lambda: 100_000)
    recipe = Recipe.from_table(recipe_table())
    with pytest.raises(RecipeError, match=r"makes a model of [\d,]+ parameters, which need .* GB of memory"):
        list(run(recipe, tmp_path / "run"))
    assert not (tmp_path / "run" / "tokenizer.model").exists()


def test_delete_run_keeps_files_of_the_user(tmp_path: Path, recipe_table: Table) -> None:
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    others = [tmp_path / "diary.txt", tmp_path / "checkpoints" / "other.txt"]
    for file in others:
        file.write_text("mine")
    delete_run(tmp_path)
    ours = [tmp_path / "log.jsonl", tmp_path / "lock"]  # it remains a run folder
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted([*others, *ours])
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    assert all(file.read_text() == "mine" for file in others)


def test_folder_with_other_files_is_refused(tmp_path: Path, recipe_table: Table) -> None:
    (tmp_path / "recipe.toml").write_text("# my own")
    for attempt in (lambda: delete_run(tmp_path), lambda: next(run(Recipe.from_table(recipe_table()), tmp_path))):
        with pytest.raises(RecipeError, match="contains other files and is not a run folder"):
            attempt()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("recipe.toml", "# my own")]


def test_second_run_in_the_same_folder_is_refused(tmp_path: Path, recipe_table: Table) -> None:
    first = run(Recipe.from_table(recipe_table()), tmp_path)
    next(first)
    with pytest.raises(TrainingError, match="is in use by another run"):
        next(run(Recipe.from_table(recipe_table()), tmp_path))
    first.close()
    next(run(Recipe.from_table(recipe_table()), tmp_path))


def test_recipe_and_files_may_change_before_the_first_checkpoint(tmp_path: Path, recipe_table: Table) -> None:
    data = {"train": [str(tmp_path / "a.en"), str(tmp_path / "typo.de")]}
    (tmp_path / "a.en").write_text("one\n")
    with pytest.raises(DataError, match=r"typo\.de"):
        list(run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run"))
    pairs = list(corpora.pairs("en", "de", "train", 300))
    data["train"][1] = str(tmp_path / "a.de")
    for lines in (1, 300):  # too little text at first, then more
        for side, file in enumerate(data["train"]):
            Path(file).write_text("".join(pair[side] + "\n" for pair in pairs[:lines]), "utf-8")
        events = run(Recipe.from_table(recipe_table(data=data)), tmp_path / "run")
        if lines == 1:
            with pytest.raises(DataError, match=r"There is nothing to train on|The validation set is empty"):
                list(events)
        else:
            assert isinstance(list(events)[-1], Finished)


def test_run_folder_that_is_a_file_is_refused(tmp_path: Path, recipe_table: Table) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RecipeError, match="is a file; a run needs a folder"):
        next(run(Recipe.from_table(recipe_table()), tmp_path / "run"))


def stop_at(recipe: Recipe, folder: Path, step: int) -> None:
    for event in run(recipe, folder, lambda: True):
        if isinstance(event, Interrupted):
            assert event.step == step


def test_steps_below_the_current_step_are_refused(tmp_path: Path, recipe_table: Table) -> None:
    list(run(Recipe.from_table(recipe_table()), tmp_path))
    shorter = dict(recipe_table()["train"], steps=2)  # type: ignore[call-overload]
    with pytest.raises(RecipeError, match=r"train\.steps = 2, but .* is at step 6 already"):
        list(run(Recipe.from_table(recipe_table(train=shorter)), tmp_path))


def test_run_interrupted_before_its_first_snapshot_can_finish_there(tmp_path: Path, recipe_table: Table) -> None:
    stop_at(Recipe.from_table(recipe_table()), tmp_path, 1)
    shorter = dict(recipe_table()["train"], steps=1)  # type: ignore[call-overload]
    assert isinstance(list(run(Recipe.from_table(recipe_table(train=shorter)), tmp_path))[-1], Finished)


def test_changed_text_is_refused(tmp_path: Path, recipe_table: Table) -> None:
    pairs = list(corpora.pairs("en", "de", "train", 400))
    files = [tmp_path / "a.en", tmp_path / "a.de"]
    for side, file in enumerate(files):
        file.write_text("".join(pair[side] + "\n" for pair in pairs), "utf-8")
    recipe = Recipe.from_table(recipe_table(data={"train": [str(file) for file in files]}))
    stop_at(recipe, tmp_path / "run", 1)
    files[0].write_text(files[0].read_text("utf-8").replace("the", "The"), "utf-8")
    with pytest.raises(DataError, match=r"a\.en changed since this run started"):
        list(run(recipe, tmp_path / "run"))


@pytest.mark.parametrize("kind", ["text", "ids"])
def test_damaged_cache_is_replaced_with_a_warning(tmp_path: Path, cache: Path, recipe_table: Table, kind: str) -> None:
    recipe = Recipe.from_table(recipe_table())
    list(run(recipe, tmp_path / "whole"))
    stop_at(recipe, tmp_path / "parts", 1)
    (entry,) = cache.glob(f"{kind}-*")
    values = entry / f"{kind}-0.values"
    values.write_bytes(values.read_bytes()[:-8])
    events = list(run(recipe, tmp_path / "parts"))
    (warning,) = next(event.warnings for event in events if isinstance(event, Prepared))
    assert f"{kind}-0.values is damaged" in warning
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")


def test_best_score_is_of_all_validations(tmp_path: Path, recipe_table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations before an interruption count too."""
    scores = iter([60.0, 40.0, 50.0, 70.0])
    monkeypatch.setattr(seq2seq, "quick_score", lambda *_: next(scores))
    settings = dict(recipe_table()["train"], steps=2, validate_every=1, save_every=1)  # type: ignore[call-overload]
    events = list(run(Recipe.from_table(recipe_table(train=settings)), tmp_path))
    events += run(Recipe.from_table(recipe_table(train=settings | {"steps": 4})), tmp_path)
    scores_and_bests = [(event.score, event.best) for event in events if isinstance(event, Validated)]
    assert scores_and_bests == [(60.0, 60.0), (40.0, 60.0), (50.0, 60.0), (70.0, 70.0)]
