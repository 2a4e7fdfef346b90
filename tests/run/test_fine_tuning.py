"""Runs that start from an encoder: the output layer first, then the weights that validation rows prefer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.bundle import load
from manyheads.errors import BundleError, RecipeError
from manyheads.model import ModelSettings, Transformer
from manyheads.run import BaselineScored, Event, Finished, Interrupted, WeightsChosen, read_recipe, run
from manyheads.run.scoring import VALID, uses_of
from manyheads.run.warm_start import warm_start

from tasks.small import save_encoder

ROWS = [
    (f"{start} {noun} was {judgement} {end}".strip(), label)
    for label, judgements in (("good", ("lovely", "great")), ("bad", ("awful", "dull")))
    for judgement in judgements
    for noun in ("film", "hotel", "book", "meal")
    for start in ("the", "our")
    for end in ("", "indeed", "on the whole")
]
RECIPE = """
init_from = "encoder"
{top}
[data]
train = ["rows.tsv"]
text_column = "text"
label_column = "label"
{data}
[task]
kind = "classify"
pooling = "mean"
unit_vectors = true
probe = true
[model]
max_length = 64
[train]
steps = {steps}
batch_tokens = 600
learning_rate = 1e-3
layer_decay = 0.5
head_learning_rate = 1e-2
warmup = 2
validate_every = 5
save_every = 5
average_snapshots = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("manyheads.tasks.classify.logistic_probe.PENALTIES", (10.0,))  # others would take seconds
    save_encoder(tmp_path / "encoder", ROWS)
    lines = "".join(f"{text}\t{label}\n" for text, label in ROWS)
    (tmp_path / "rows.tsv").write_text(f"text\tlabel\n{lines}", "utf-8")
    return tmp_path


def events_of(folder: Path, name: str, *, steps: int, top: str = "", data: str = "", **options: Any) -> list[Event]:
    (folder / f"{name}.toml").write_text(RECIPE.format(steps=steps, top=top, data=data), "utf-8")
    return list(run(read_recipe(folder / f"{name}.toml"), folder / name, **options))


def test_without_steps_the_head_is_fitted_on_all_rows_and_scored_by_folds(folder: Path) -> None:
    events = events_of(folder, "few", steps=0, top='freeze = ["source_embedding", "encoder"]')
    assert any(isinstance(event, BaselineScored) and "frozen features" in event.name for event in events)
    (chosen,) = (event for event in events if isinstance(event, WeightsChosen))
    assert (chosen.share, "as it was" in str(chosen.describe())) == (0.0, True)
    assert isinstance(events[-1], Finished)
    bundle, encoder = load(events[-1].bundle), load(folder / "encoder")
    config = json.loads((events[-1].bundle / "bundle.json").read_text("utf-8"))
    assert config["metadata"]["trained_share"] == 0.0
    # The encoder is unchanged; of its positions, the first 64 are kept.
    own, theirs = bundle.task.model.state_dict(), encoder.task.model.state_dict()
    assert all(value.equal(theirs[name][: len(value)]) for name, value in own.items())
    # This run's score is that of folds; another score of the same rows would be of rows that were fitted.
    (score, *_others) = events[-1].cards[VALID].scores
    assert score.used_for == ("calibration",)
    assert uses_of(bundle, VALID)[:2] == ("training", "calibration")
    assert score.value > 80
    assert bundle.predict(["the film was great", "the meal was dull"]) == ["good", "bad"]


def test_validation_rows_of_the_user_are_not_fitted(folder: Path) -> None:
    lines = "".join(f"a {text}\t{label}\n" for text, label in ROWS[::3])
    (folder / "valid.tsv").write_text(f"text\tlabel\n{lines}", "utf-8")
    events = events_of(folder, "few", steps=0, data='valid = ["valid.tsv"]')
    assert isinstance(events[-1], Finished)
    assert "training" not in load(events[-1].bundle).validation_used_for


def test_training_begins_with_the_fitted_head_and_ends_with_the_best_weights(folder: Path) -> None:
    events = events_of(folder, "tuned", steps=10, top='freeze = ["source_embedding"]')
    (chosen,) = (event for event in events if isinstance(event, WeightsChosen))
    assert list(chosen.losses) == ["0%", "25%", "50%", "75%", "100%"]
    assert chosen.losses[f"{chosen.share:.0%}"] == min(chosen.losses.values())
    assert isinstance(events[-1], Finished)
    bundle = load(events[-1].bundle)
    assert bundle.task.metadata()["trained_share"] == chosen.share
    assert "training" not in bundle.validation_used_for


def test_a_run_that_is_resumed_ends_with_the_same_bundle(folder: Path) -> None:
    whole = events_of(folder, "whole", steps=10)[-1]
    counts = iter(range(100))
    stopped = events_of(folder, "parts", steps=10, should_stop=lambda: next(counts) == 6)[-1]
    assert isinstance(stopped, Interrupted)
    resumed = events_of(folder, "parts", steps=10)[-1]
    assert isinstance(whole, Finished) and isinstance(resumed, Finished)
    weights = [(event.bundle / "weights.safetensors").read_bytes() for event in (whole, resumed)]
    assert weights[0] == weights[1]


def test_steps_of_0_need_something_to_fit(folder: Path) -> None:
    text = RECIPE.format(steps=0, top="", data="").replace("probe = true", "probe = false")
    (folder / "none.toml").write_text(text, "utf-8")
    with pytest.raises(RecipeError, match=r"train.steps = 0 trains nothing. Use at least 1; 0 is for a classifier"):
        read_recipe(folder / "none.toml")


def test_a_model_that_reads_less_takes_the_first_positions() -> None:
    sizes = ModelSettings(vocab_size=30, shape="encoder", width=16, n_heads=2, n_encoder_layers=1, positions="learned")
    long, short = (Transformer(replace(sizes, max_length=length)) for length in (20, 12))
    warm_start(short, long, "there")
    weight = short.source_embedding.positions.weight
    assert torch.equal(weight, long.source_embedding.positions.weight[:12])
    with pytest.raises(BundleError, match=r"positions.weight is \(12, 16\) there, \(20, 16\) here"):
        warm_start(long, short, "there")
