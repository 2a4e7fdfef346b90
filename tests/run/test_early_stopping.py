"""Early stopping, and changes of the recipe between interruption and resumption."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.errors import RecipeError
from manyheads.run import Event, Finished, Interrupted, Recipe, RecipeChanged, StoppedEarly, Validated, run
from manyheads.tasks.seq2seq import seq2seq_task as seq2seq
from manyheads.training import Step

Table = Callable[..., dict[str, object]]
TRAIN = {
    "steps": 8,
    "validate_every": 1,
    "save_every": 2,
    "warmup": 2,
    "batch_tokens": 200,
    "learning_rate": 0.01,
    "patience": 2,
}
SCORES = (10.0, 30.0, 20.0, 30.0, 99.0)  # the second is the best; an equal score is not better


def weights_of(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


@pytest.fixture
def recipe(recipe_table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recipe]:
    scores = iter(SCORES)
    monkeypatch.setattr(seq2seq, "quick_score", lambda *_: next(scores))
    yield Recipe.from_table(recipe_table(train=TRAIN))


def check(events: list[Event], folder: Path) -> None:
    assert [event.step for event in events if isinstance(event, Step)] == [1, 2, 3, 4]
    assert StoppedEarly(step=4, best_step=2) in events
    assert isinstance(events[-1], Finished)
    assert weights_of(folder / "bundle") == weights_of(folder / "best")
    assert weights_of(folder / "bundle") != weights_of(folder / "snapshots" / "step-00000004")


def test_run_stops_when_out_of_patience_and_keeps_the_best_weights(recipe: Recipe, tmp_path: Path) -> None:
    check(list(run(recipe, tmp_path)), tmp_path)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_resumed_run_remembers_its_best_score(recipe: Recipe, tmp_path: Path, n_steps: int) -> None:
    calls = iter([False] * (n_steps - 1) + [True])
    first = list(run(recipe, tmp_path, lambda: next(calls)))
    assert first[-1] == Interrupted(n_steps)
    check([*first, *run(recipe, tmp_path)], tmp_path)


def test_stopped_run_does_not_train_again(recipe: Recipe, tmp_path: Path) -> None:
    list(run(recipe, tmp_path))
    again = list(run(recipe, tmp_path))
    assert not any(isinstance(event, Step) for event in again)
    assert isinstance(again[-1], Finished)


def test_validation_metric_chrf(recipe_table: Table, tmp_path: Path) -> None:
    train = TRAIN | {"steps": 1, "validation_metric": "chrF"}
    events = list(run(Recipe.from_table(recipe_table(train=train)), tmp_path))
    (validated,) = (event for event in events if isinstance(event, Validated))
    assert validated.metric == "chrF"
    assert 0.0 <= validated.score <= 100.0


def test_steps_and_decoding_may_change(recipe_table: Table, tmp_path: Path) -> None:
    train = TRAIN | {"steps": 2}
    del train["patience"]
    list(run(Recipe.from_table(recipe_table(train=train)), tmp_path))
    edited = Recipe.from_table(
        recipe_table(train=train | {"steps": 3}, decode={"method": "greedy", "max_new_tokens": 4})
    )
    events = list(run(edited, tmp_path))
    assert events[0] == RecipeChanged(["decode.max_new_tokens was 3, now 4", "train.steps was 2, now 3"])
    assert [event.step for event in events if isinstance(event, Step)] == [3]


def test_settings_that_affect_training_may_not_change(recipe_table: Table, tmp_path: Path) -> None:
    train = TRAIN | {"steps": 2}
    del train["patience"]
    table = recipe_table(train=train)
    list(run(Recipe.from_table(table), tmp_path))
    edits: dict[str, dict[str, dict[str, object]]] = {
        "task.smoothing was 0.1, now 0.2": {"task": {"smoothing": 0.2}},
        "model.dropout was 0.1, now 0.3": {"model": {**table["model"], "dropout": 0.3}},  # type: ignore[dict-item]
        "tokenizer.sampling was 0.0, now 0.5": {"tokenizer": {"vocab_size": 1500, "sampling": 0.5}},
        "train.warmup was 2, now 3": {"train": train | {"warmup": 3}},
        "train.ema_decay was not set, now 0.9": {"train": train | {"ema_decay": 0.9}},
        "train.patience was not set, now 4": {"train": train | {"patience": 4}},
    }
    for change, edit in edits.items():
        with pytest.raises(RecipeError, match=rf"{change}.*Only train.steps, train.keep_all_snapshots, .*decode"):
            list(run(Recipe.from_table(table | edit), tmp_path))
