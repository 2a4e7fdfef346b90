"""bfloat16: when it is chosen, what it changes, and bit-identical resumption."""

from itertools import islice
from pathlib import Path

import pytest
import torch

from manyheads.model import ModelSettings, Transformer
from manyheads.training import Checkpoints, Trainer, TrainSettings
from manyheads.training.precision import uses_bfloat16

from training.copying import Copying, Sequences

CPU = torch.device("cpu")
MODEL = ModelSettings(
    vocab_size=20, width=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, feed_forward_width=64, dropout=0.2
)


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
