import dataclasses
import math
import tomllib
from typing import Any

import pytest

from manyheads.errors import RecipeError
from manyheads.model import PRESETS, ModelSettings
from manyheads.settings import build, to_table, to_toml

from model.makers import choices, small


def faults_of(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        ModelSettings(**{"vocab_size": 100, **changes})
    return caught.value.faults


LARGEST = {
    **dict.fromkeys(["vocab_size", "max_length"], 1_000_000),
    **dict.fromkeys(["width", "head_width", "value_width"], 65_536),
    **dict.fromkeys(["n_heads", "n_key_heads"], 1024),
    "feed_forward_width": 262_144,
}


ONLY_DIVISORS = "model.n_heads = 7 does not divide model.width = 512. Use 4, 8 or 16."
DIVISORS_OR_WIDTH = "model.n_heads = 7 does not divide model.width = 512. Use 4, 8 or 16, or set model.head_width."
FAULTS: dict[str, dict[str, Any]] = {
    **{
        f"model.{name} = {value} must be at least 1 and at most {largest:,}.": {name: value}
        for name, largest in LARGEST.items()
        for value in (0, -1, largest + 1, 10**12)
    },
    **{
        f"model.n_{stack}_layers = {value} must be at least 0 and at most 1,000.": {f"n_{stack}_layers": value}
        for stack in ("encoder", "decoder")
        for value in (-1, 1001, 10**12)
    },
    'model.n_encoder_layers = 0 must be at least 1 for model.shape = "encoder-decoder".': {"n_encoder_layers": 0},
    'model.n_decoder_layers = 0 must be at least 1 for model.shape = "decoder".': {
        "n_decoder_layers": 0,
        "shape": "decoder",
    },
    **{
        f"model.{name} = {value} must be at least 0 and less than 1.": {name: value}
        for name in ("dropout", "attention_dropout", "feed_forward_dropout")
        for value in (1.0, -0.1, math.nan)
    },
    "model.norm_epsilon = 0.0 must be greater than 0 and at most 1.": {"norm_epsilon": 0.0},
    "model.norm_epsilon = nan must be greater than 0 and at most 1.": {"norm_epsilon": math.nan},
    DIVISORS_OR_WIDTH: {"n_heads": 7},
    ONLY_DIVISORS: {"n_heads": 7, "projections": "none"},
    "model.n_heads = 3 does not divide model.width = 2. Use 1 or 2, or set model.head_width.": {
        "n_heads": 3,
        "width": 2,
    },
    "model.n_key_heads = 3 does not divide model.n_heads = 8. Use 2, 4 or 8.": {"n_key_heads": 3},
    "model.n_key_heads = 16 does not divide model.n_heads = 8. Use 2, 4 or 8.": {"n_key_heads": 16},
    'model.projections = "tied" needs model.n_key_heads = model.n_heads.': {"projections": "tied", "n_key_heads": 2},
    'model.projections = "shared" needs model.value_width = model.head_width.': {
        "projections": "shared",
        "value_width": 3,
    },
    'model.projections = "none" needs model.n_heads × model.head_width = model.width.': {
        "projections": "none",
        "head_width": 10,
    },
    'model.scores = "random-synthesizer" has no keys to tie: use model.projections = "separate".': {
        "scores": "random-synthesizer",
        "projections": "tied",
    },
    'model.positions = "rotary" rotates pairs: model.head_width = 7 must be even.': {
        "positions": "rotary",
        "head_width": 7,
    },
    'model.positions = "rotary" has no keys to rotate with model.scores = "dense-synthesizer".': {
        "positions": "rotary",
        "scores": "dense-synthesizer",
    },
    'model.positions = "sinusoidal" pairs sines and cosines: model.width = 15 must be even.': {
        "width": 15,
        "n_heads": 3,
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_states_the_problem_and_the_remedy(fault: str) -> None:
    assert faults_of(**FAULTS[fault]) == (fault,)


def test_an_undefined_head_width_is_not_reported_as_odd() -> None:
    assert faults_of(n_heads=7, positions="rotary") == (DIVISORS_OR_WIDTH,)


def test_the_suggested_values_are_valid() -> None:
    for n_heads in (4, 8, 16):
        ModelSettings(vocab_size=100, n_heads=n_heads)
    ModelSettings(vocab_size=100, n_heads=7, head_width=64)
    for n_key_heads in (2, 4, 8):
        ModelSettings(vocab_size=100, n_key_heads=n_key_heads)


def test_faults_are_reported_together() -> None:
    assert faults_of(width=0, dropout=2.0) == (
        "model.width = 0 must be at least 1 and at most 65,536.",
        "model.dropout = 2.0 must be at least 0 and less than 1.",
    )
    faults = faults_of(n_heads=3, n_key_heads=2, width=13, scores="dense-synthesizer", projections="shared")
    assert len(faults) == 5


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("norm", "lyer", 'model.norm = "lyer" is not one of "layer", "rms", "batch", "batch-with-padding", "sample".'),
        ("norm_placement", "Pre", 'model.norm_placement = "Pre" is not one of "post", "pre".'),
        ("width", 8.0, "model.width = 8.0 should be a whole number."),
        ("tie_output", 1, "model.tie_output = 1 should be true or false."),
    ],
)
def test_a_wrong_value_is_refused_from_python_too(field: str, value: object, fault: str) -> None:
    settings = small()
    object.__setattr__(settings, field, value)  # bypasses beartype, which only tests use
    with pytest.raises(RecipeError) as caught:
        settings.__post_init__()
    assert caught.value.faults == (fault,)


def test_layers_of_an_absent_stack_are_not_checked() -> None:
    assert ModelSettings(vocab_size=100, shape="encoder", n_decoder_layers=0).has_decoder is False
    assert ModelSettings(vocab_size=100, shape="decoder", n_encoder_layers=0).has_encoder is False
    assert ModelSettings(vocab_size=100).has_encoder and ModelSettings(vocab_size=100).has_decoder


def test_the_defaults_are_the_base_model_of_2017() -> None:
    base = ModelSettings(vocab_size=37_000)
    assert base == ModelSettings.preset("base", vocab_size=37_000)
    assert base.heads == (8, 8, 64, 64)
    assert (base.width, base.feed_forward_width, base.n_encoder_layers, base.n_decoder_layers) == (512, 2048, 6, 6)
    assert (base.norm_placement, base.activation, base.dropout, base.positions) == ("post", "relu", 0.1, "sinusoidal")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid_and_can_be_changed(name: str) -> None:
    assert ModelSettings.preset(name, vocab_size=5, n_heads=2).heads.n_heads == 2


def test_an_unknown_preset_gets_a_suggestion() -> None:
    with pytest.raises(RecipeError, match=r"\"bsae\" is not a preset\. Did you mean base\?"):
        ModelSettings.preset("bsae", vocab_size=5)


def test_defaults_of_head_sizes() -> None:
    assert small(n_heads=4, n_key_heads=2, head_width=6).heads == (4, 2, 6, 6)
    assert small(n_heads=4, value_width=3).heads == (4, 4, 2, 3)


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().width = 3  # type: ignore[misc]


@pytest.mark.parametrize("field", ["shape", "activation", "scores", "positions", "norm", "norm_placement"])
def test_every_choice_survives_a_round_trip(field: str) -> None:
    for choice in choices(field):
        settings = small(**{field: choice})
        assert build(ModelSettings, to_table(settings), "model.") == settings


@pytest.mark.parametrize("changes", [{}, {"n_key_heads": 1, "head_width": 6, "value_width": 3}])
def test_unset_settings_are_absent_from_toml(changes: dict[str, int]) -> None:
    table = to_table(small(**changes))
    assert {name: table[name] for name in ("n_key_heads", "head_width", "value_width") if name in table} == changes
    assert build(ModelSettings, tomllib.loads(to_toml(table)), "model.") == small(**changes)
