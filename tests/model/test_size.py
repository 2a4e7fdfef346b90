"""The number of parameters computed from settings is the number that the built model has."""

import dataclasses
from typing import Any

import pytest

from manyheads.errors import RecipeError
from manyheads.model import ModelSettings, Transformer
from manyheads.model import size as model_size
from manyheads.model.size import machine_memory, parameters_by_part, refuse_too_large

from model.makers import choices, product_of, small

ONE_LAYER = {"n_encoder_layers": (1,), "n_decoder_layers": (1,)}
VARIANTS = [
    *product_of(scores=choices("scores"), projections=choices("projections"), **ONE_LAYER),
    *product_of(shape=("encoder", "decoder"), scores=choices("scores"), **ONE_LAYER),
    *product_of(positions=("learned", "rotary"), norm=choices("norm"), norm_placement=("post", "pre"), **ONE_LAYER),
    *product_of(activation=choices("activation"), attention_bias=(False, True), **ONE_LAYER),
    *product_of(tie_source_target=(False, True), tie_output=(False, True), **ONE_LAYER),
    *product_of(n_heads=(4,), n_key_heads=(1, 2), head_width=(3,), value_width=(5,), scores=("bilinear", "additive")),
    small(n_heads=4, n_key_heads=2, kept_heads={"encoder.0.self": (), "encoder.1.self": (1,), "decoder.0.cross": (0,)}),
    *product_of(feed_forward_bias=(False, True), embedding_norm=(False, True), **ONE_LAYER),
    *product_of(query_key_norm=(True,), n_key_heads=(1,), output_bias=(False, True), **ONE_LAYER),
    *product_of(distance_buckets=(8,), output_transform=(False, True), activation=("gelu",), **ONE_LAYER),
    small(n_heads=4, distance_buckets=8, query_key_norm=True, kept_heads={"encoder.0.self": (1, 3)}),
    small(n_encoder_layers=1, n_decoder_layers=3, attention_bias=True, kept_heads={"decoder.1.self": ()}),
]


def test_the_count_is_that_of_the_built_model() -> None:
    wrong = [
        settings
        for settings in VARIANTS
        if sum(parameters_by_part(settings).values()) != Transformer(settings).n_parameters
    ]
    assert len(VARIANTS) > 60
    assert wrong == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"width": 65_536}, "model.width = 65536"),
        ({"width": 8192, "feed_forward_width": 262_144}, "model.feed_forward_width = 262144"),
        ({"width": 12_288, "vocab_size": 1_000_000}, "model.vocab_size = 1000000"),
        ({"width": 16_384, "max_length": 1_000_000, "positions": "learned"}, "model.max_length = 1000000"),
        ({"max_length": 1_000_000, "scores": "random-synthesizer"}, "model.max_length = 1000000"),
        ({"n_encoder_layers": 1000, "width": 2048, "feed_forward_width": 8192}, "model.n_encoder_layers = 1000"),
        ({"n_heads": 1024, "head_width": 65_536}, "model.head_width = 65536"),
    ],
    ids=str,
)
def test_a_model_beyond_the_bound_is_refused_with_the_setting_that_makes_it_large(
    changes: dict[str, Any], cause: str
) -> None:
    with pytest.raises(RecipeError, match=rf"^{cause} makes a model of [\d,]+ parameters; at most 10,000,000,000 are"):
        ModelSettings(**{"vocab_size": 8000, **changes})


def test_a_model_larger_than_the_memory_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_size, "machine_memory", lambda: 1_000_000)
    settings = ModelSettings(vocab_size=300, width=1024)
    with pytest.raises(RecipeError) as caught:
        Transformer(settings)
    n_parameters = sum(parameters_by_part(settings).values())
    assert str(caught.value) == (
        f"model.width = 1024 makes a model of {n_parameters:,} parameters, which need {4 * n_parameters / 1e9:.1f} GB "
        "of memory; this machine has 0.0 GB. Use a smaller one."
    )
    Transformer(small())
    with pytest.raises(RecipeError):
        refuse_too_large(small(), bytes_per_parameter=1000)


def test_without_a_known_memory_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_size, "machine_memory", lambda: None)
    refuse_too_large(dataclasses.replace(small(), width=64), bytes_per_parameter=10**12)


def test_this_machine_has_memory() -> None:
    memory = machine_memory()
    assert memory is not None
    assert memory > 100_000_000
