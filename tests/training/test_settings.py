"""The learning rate schedule and the settings of training."""

import math
import tomllib
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from manyheads.errors import RecipeError
from manyheads.model import ModelSettings, Transformer
from manyheads.settings import build, to_table, to_toml
from manyheads.training import Checkpoints, Trainer, TrainSettings, learning_rate
from manyheads.training.settings import uses_bfloat16
from manyheads.training.trainer_state import rate_factors

from training.copying import Copying, Sequences

FAULTS: dict[str, dict[str, float]] = {
    "train.steps = -1 must be at least 0 and at most 1,000,000,000.": {"steps": -1},
    "train.patience = 0 must be at least 1 and at most 1,000,000,000.": {"patience": 0},
    "train.learning_rate = 0.0 must be greater than 0 and finite.": {"learning_rate": 0.0},
    "train.learning_rate = inf must be greater than 0 and finite.": {"learning_rate": math.inf},
    "train.clip_norm = 0.0 must be greater than 0. Use inf for no clipping.": {"clip_norm": 0.0},
    "train.clip_norm = nan must be greater than 0. Use inf for no clipping.": {"clip_norm": math.nan},
    "train.layer_decay = 0.0 must be greater than 0 and at most 1.": {"layer_decay": 0.0},
    "train.layer_decay = 1.1 must be greater than 0 and at most 1.": {"layer_decay": 1.1},
    "train.head_learning_rate = 0.0 must be greater than 0 and finite.": {"head_learning_rate": 0.0},
    "train.weight_decay = -1.0 must be at least 0 and finite.": {"weight_decay": -1.0},
    "train.ema_decay = 0.0 must be greater than 0 and less than 1. 0.999 is typical.": {"ema_decay": 0.0},
    "train.ema_decay = 1.0 must be greater than 0 and less than 1. 0.999 is typical.": {"ema_decay": 1.0},
}

CPU = torch.device("cpu")
MODEL = ModelSettings(
    vocab_size=20, width=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, feed_forward_width=64, dropout=0.2
)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported(fault: str) -> None:
    with pytest.raises(RecipeError) as caught:
        TrainSettings(**FAULTS[fault])  # type: ignore[arg-type]
    assert caught.value.faults == (fault,)


def test_faults_are_reported_together() -> None:
    with pytest.raises(RecipeError) as caught:
        TrainSettings(steps=-1, clip_norm=-1.0)
    assert caught.value.faults == (
        "train.steps = -1 must be at least 0 and at most 1,000,000,000.",
        "train.clip_norm = -1.0 must be greater than 0. Use inf for no clipping.",
    )


@pytest.mark.parametrize(
    "changes", [{}, {"learning_rate": 0.001, "patience": 3, "ema_decay": 0.9, "validation_metric": "chrF"}]
)
def test_unset_settings_are_absent_from_toml(changes: dict[str, object]) -> None:
    settings = TrainSettings(clip_norm=math.inf, **changes)  # type: ignore[arg-type]
    table = to_table(settings)
    optional = {"learning_rate", "head_learning_rate", "patience", "ema_decay", "validation_metric"}
    assert {name: value for name, value in table.items() if name in optional} == changes
    assert build(TrainSettings, tomllib.loads(to_toml(table)), "train.") == settings


@pytest.mark.parametrize("step", [1, 100, 3999, 4000, 4001, 100_000])
def test_the_default_is_the_schedule_of_2017(step: int) -> None:
    formula = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, TrainSettings(), width=512) == pytest.approx(formula)


def test_the_peak_is_reached_at_the_end_of_warmup() -> None:
    settings = TrainSettings(learning_rate=5e-3, warmup=10, steps=100)
    rates = [learning_rate(step, settings, width=8) for step in range(1, 101)]
    assert max(rates) == rates[9] == pytest.approx(5e-3)


def test_cosine_decays_to_zero_after_warmup() -> None:
    settings = TrainSettings(schedule="cosine", learning_rate=1e-3, warmup=10, steps=100)
    rates = [learning_rate(step, settings, width=8) for step in range(10, 101)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.0)


def make_trainer(precision: str, steps: int = 6) -> Trainer[Sequences]:
    torch.manual_seed(5)
    model = Transformer(MODEL)
    settings = TrainSettings(steps=steps, warmup=2, learning_rate=0.01, precision=precision, ema_decay=0.9)  # type: ignore[arg-type]
    return Trainer(model, Copying(model), settings, width=32, seed=3)


def test_choice_on_a_cpu_is_the_recipe_s() -> None:
    assert not uses_bfloat16("auto", CPU)
    assert uses_bfloat16("bfloat16", CPU)
    assert not uses_bfloat16("float32", CPU)


@pytest.mark.parametrize("is_native", [False, True])
def test_choice_on_a_gpu_depends_on_native_support(monkeypatch: pytest.MonkeyPatch, is_native: bool) -> None:
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: is_native or including_emulation
    )
    assert uses_bfloat16("auto", torch.device("cuda")) == is_native
    assert not uses_bfloat16("auto", torch.device("mps"))


def test_products_are_bfloat16_and_the_state_is_float32() -> None:
    trainer = make_trainer("bfloat16", steps=2)
    kinds = set()
    layer = trainer.model.get_submodule("encoder.0.feed_forward")
    for module in layer.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda _module, _inputs, output: kinds.add(output.dtype))
    half = [step.loss for step in trainer.run()]
    assert kinds == {torch.bfloat16}
    tensors = [*trainer.weights().values(), *trainer.optimizer_state().values()]
    tensors += [parameter.grad for parameter in trainer.model.parameters() if parameter.grad is not None]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    single = [step.loss for step in make_trainer("float32", steps=2).run()]
    assert half != single
    assert half == pytest.approx(single, rel=0.02)


def test_resumed_run_in_bfloat16_has_identical_weights(tmp_path: Path) -> None:
    whole = make_trainer("bfloat16")
    expected = [step.loss for step in whole.run()]
    first = make_trainer("bfloat16")
    losses = [step.loss for step in islice(first.run(), 3)]
    Checkpoints(tmp_path, 1).save(first, snapshot=True)
    second = make_trainer("bfloat16")
    assert Checkpoints(tmp_path, 1).restore(second) == []
    losses += [step.loss for step in second.run()]
    assert losses == expected
    for ours, theirs in ((second.weights(), whole.weights()), (second.optimizer_state(), whole.optimizer_state())):
        assert {name: value.numpy().tobytes() for name, value in ours.items()} == {
            name: value.numpy().tobytes() for name, value in theirs.items()
        }


class Headed(torch.nn.Module):
    """A Transformer with something that a task adds."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Transformer(replace(MODEL, shape="encoder", n_encoder_layers=3))
        self.output = torch.nn.Linear(32, 2)


def test_learning_rates_fall_with_depth() -> None:
    module = Headed()
    settings = TrainSettings(learning_rate=1e-3, layer_decay=0.5, head_learning_rate=1e-2)
    found = {id(parameter): factor for parameter, factor in rate_factors(module, settings, 32)}
    factors = {name: found[id(value)] for name, value in module.named_parameters()}
    assert len(found) == len(list(module.parameters()))
    assert factors["output.weight"] == pytest.approx(10)
    by_layer = [{value for name, value in factors.items() if f"encoder.{layer}." in name} for layer in range(3)]
    assert by_layer == [{0.25}, {0.5}, {1.0}]
    assert factors["model.source_embedding.token_embedding.weight"] == 0.125


def test_without_decay_all_learning_rates_are_equal() -> None:
    assert {factor for _, factor in rate_factors(Headed(), TrainSettings(), 32)} == {1.0}


def test_a_step_moves_each_group_by_its_own_rate() -> None:
    model = Transformer(MODEL)
    settings = TrainSettings(steps=1, warmup=1, learning_rate=1e-3, layer_decay=0.1)
    trainer = Trainer(model, Copying(model), settings, width=32, seed=1)
    assert {group["factor"] for group in trainer.optimizer.param_groups} == {1.0, 0.1}
    list(trainer.run())
    assert {round(group["lr"], 9) for group in trainer.optimizer.param_groups} == {1e-3, 1e-4}
