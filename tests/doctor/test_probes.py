"""Short trainings: a healthy model learns a handful by heart, and a wild rate is told."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from manyheads.doctor import probes
from manyheads.recipe import Recipe
from manyheads.train import TrainSettings

from doctor.makers import healthy

Table = Callable[..., dict[str, object]]


@pytest.fixture
def patient(recipe_table: Table, monkeypatch: pytest.MonkeyPatch) -> probes.Patient:
    monkeypatch.setattr(probes, "_BY_HEART", 2)
    monkeypatch.setattr(probes, "_PEAK_STEPS", 25)
    model = {"width": 32, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "norm_place": "pre"}
    recipe = Recipe.from_table(recipe_table(model=model, tokenizer={"vocabulary": 500}))
    admitted = probes.admit(recipe, healthy("zh", 300))
    assert admitted is not None
    return admitted


def test_a_healthy_model_learns_by_heart(patient: probes.Patient) -> None:
    finding = probes.check_one_batch(patient)
    assert finding.verdict == "good", finding.told
    assert "2 sentences" in finding.told


def test_a_model_that_cannot_learn(patient: probes.Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_sane_rate", lambda width: 1e-9)
    monkeypatch.setattr(probes, "_STEPS", 5)
    finding = probes.check_one_batch(patient)
    assert finding.verdict == "bad"
    assert "cannot even learn one batch by heart" in finding.told


def test_rates(patient: probes.Patient) -> None:
    calm = probes.check_rate(patient, TrainSettings(learning_rate=2e-2, warmup=100))
    assert calm.verdict == "good", calm.told
    wild = probes.check_rate(patient, TrainSettings(learning_rate=20.0, warmup=100))
    assert wild.verdict == "bad"
    assert "peak rate of 2.0e+01" in wild.told
    assert "Lower train.learning_rate" in wild.remedy


def test_no_text_no_patient(recipe_table: Table) -> None:
    recipe = Recipe.from_table(recipe_table())
    assert probes.admit(recipe, [("", ""), (" ", "x")]) is None
    short = replace(recipe, model=replace(recipe.model, max_length=4))
    assert probes.admit(short, [("One two three four five six.", "一二三四五六七八九。")]) is not None
