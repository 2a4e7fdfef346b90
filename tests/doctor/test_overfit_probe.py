"""Short trainings: a healthy model overfits one batch, and a learning rate that is too high is reported."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from manyheads.doctor import overfit_probe
from manyheads.run import Recipe
from manyheads.training import TrainSettings

from doctor.makers import healthy

Table = Callable[..., dict[str, object]]


@pytest.fixture
def probe(recipe_table: Table, monkeypatch: pytest.MonkeyPatch) -> overfit_probe.Probe:
    monkeypatch.setattr(overfit_probe, "_BATCH_PAIRS", 2)
    monkeypatch.setattr(overfit_probe, "_PEAK_STEPS", 25)
    model = {"width": 32, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "norm_placement": "pre"}
    recipe = Recipe.from_table(recipe_table(model=model, tokenizer={"vocab_size": 500}))
    probe = overfit_probe.make_probe(recipe, healthy("zh", 300))
    assert probe is not None
    return probe


def test_healthy_model_overfits_one_batch(probe: overfit_probe.Probe) -> None:
    finding = overfit_probe.check_one_batch(probe)
    assert finding.verdict == "good", finding.message
    assert "2 sentences" in finding.message


def test_model_that_cannot_learn(probe: overfit_probe.Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overfit_probe, "_safe_rate", lambda width: 1e-9)
    monkeypatch.setattr(overfit_probe, "_STEPS", 5)
    finding = overfit_probe.check_one_batch(probe)
    assert finding.verdict == "bad"
    assert "cannot memorize one batch" in finding.message


def test_learning_rates(probe: overfit_probe.Probe) -> None:
    calm = overfit_probe.check_learning_rate(probe, TrainSettings(learning_rate=2e-2, warmup=100))
    assert calm.verdict == "good", calm.message
    wild = overfit_probe.check_learning_rate(probe, TrainSettings(learning_rate=20.0, warmup=100))
    assert wild.verdict == "bad"
    assert "peak rate of 2.0e+01" in wild.message
    assert "Lower train.learning_rate" in wild.fix


def test_data_without_text_is_not_probed(recipe_table: Table) -> None:
    recipe = Recipe.from_table(recipe_table())
    assert overfit_probe.make_probe(recipe, [("", ""), (" ", "x")]) is None
    short = replace(recipe, model=replace(recipe.model, max_length=4))
    assert overfit_probe.make_probe(short, [("One two three four five six.", "一二三四五六七八九。")]) is not None
