"""The training loop: learning, accumulation, divergence, EMA, and bit-identical resumption."""

import math
from pathlib import Path

import pytest
import torch

from manyheads.errors import TrainingError
from manyheads.training import Checkpoints, Trainer

from training.doubling import Doubling, Numbers, make_trainer


def final_bytes(trainer: Trainer[Numbers]) -> bytes:
    return b"".join(value.numpy().tobytes() for value in trainer.weights().values())


def test_training_lowers_the_loss_and_yields_one_event_per_update() -> None:
    trainer = make_trainer(steps=200, dropout=0.0)
    events = list(trainer.run())
    assert [event.step for event in events] == list(range(1, 201))
    assert events[-1].loss < events[0].loss / 50
    assert events[5].epoch == 1
    assert all(event.n_tokens == 4 and event.seconds > 0 for event in events)


def test_accumulated_batches_equal_one_large_batch() -> None:
    """Batches of four and two tokens: the gradient is that of the mean over all six, not of the mean of two means."""
    small, large = (
        make_trainer(dropout=0.0, clip_norm=math.inf, accumulation_steps=2),
        make_trainer(dropout=0.0, clip_norm=math.inf),
    )
    first, second = small.training_task.make([1, 2, 3, 4], 0), small.training_task.make([15, 9], 0)
    one = small._update([[1, 2, 3, 4], [15, 9]], [first, second], 0.0)
    other = large._update([[1, 2, 3, 4, 15, 9]], [Numbers(torch.cat([first.x, second.x]), 6)], 0.0)
    assert (one.n_tokens, one.loss) == (6, pytest.approx(other.loss))
    for ours, theirs in zip(small.model.parameters(), large.model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_clipping_limits_the_gradient_and_reports_the_norm_before_clipping() -> None:
    trainer = make_trainer(clip_norm=1e-3, steps=1)
    (event,) = trainer.run()
    norm = torch.sqrt(sum((p.grad.square().sum() for p in trainer.model.parameters()), torch.tensor(0.0)))  # type: ignore[union-attr]
    assert norm.item() == pytest.approx(1e-3, rel=1e-3)
    assert event.gradient_norm > 1e-3


def test_a_loss_of_nan_stops_before_the_update() -> None:
    trainer = make_trainer()
    assert isinstance(trainer.training_task, Doubling)
    trainer.training_task.spoil = lambda count: count == 6
    events = trainer.run()
    for _ in range(5):
        next(events)
    before = final_bytes(trainer)
    with pytest.raises(TrainingError, match=r"Step 6 \(epoch 2, batch 2\): the loss is nan"):
        next(events)
    assert final_bytes(trainer) == before


@pytest.mark.parametrize("decay", [0.9, 0.5])
def test_ema_equals_its_definition(decay: float) -> None:
    trainer = make_trainer(ema_decay=decay, steps=12)
    expected = {name: value.clone() for name, value in trainer.weights().items()}
    for event in trainer.run():
        change = 1 - min(decay, (1 + event.step) / (10 + event.step))
        for name, value in trainer.weights().items():
            expected[name] += change * (value - expected[name])
    for name, value in trainer.eval_weights().items():
        torch.testing.assert_close(value, expected[name])
        assert not torch.equal(value, trainer.weights()[name])


def test_using_eval_weights_loads_the_ema_and_restores_the_training_weights() -> None:
    trainer = make_trainer(ema_decay=0.9, steps=5)
    list(trainer.run())
    before = final_bytes(trainer)
    with trainer.using_eval_weights():
        assert final_bytes(trainer) != before
        assert all(torch.equal(value, trainer.eval_weights()[name]) for name, value in trainer.weights().items())
    assert final_bytes(trainer) == before


def test_bfloat16_on_request() -> None:
    bfloat16, float32 = (make_trainer(steps=3, dropout=0.0, precision=kind) for kind in ("bfloat16", "auto"))
    losses = [[event.loss for event in trainer.run()] for trainer in (bfloat16, float32)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert all(value.dtype == torch.float32 for value in bfloat16.weights().values())


def test_a_loss_of_nan_reports_only_its_batch() -> None:
    trainer = make_trainer(accumulation_steps=2)
    assert isinstance(trainer.training_task, Doubling)
    trainer.training_task.spoil = lambda count: count == 2
    culprit = trainer.training_task.plan(0)[1]
    with pytest.raises(TrainingError, match=rf"The batch: the numbers \[{culprit[0]}, [0-9, ]*\]\. If its text"):
        next(trainer.run())


def test_training_data_without_batches_is_an_error() -> None:
    trainer = make_trainer()
    trainer.training_task.plan = lambda epoch: []  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="The training data contains no batch"):
        next(trainer.run())


@pytest.mark.parametrize("stop_at", [1, 4, 7, 29])
def test_a_resumed_run_ends_with_bit_identical_weights(tmp_path: Path, stop_at: int) -> None:
    whole = make_trainer()
    list(whole.run())

    checkpoints = Checkpoints(tmp_path, n_snapshots=2)
    first = make_trainer()
    for event in first.run():
        if event.step == stop_at:
            checkpoints.save(first, snapshot=False)
            break
    second = make_trainer()
    assert checkpoints.restore(second) == []
    assert second.step == stop_at
    list(second.run())
    assert final_bytes(second) == final_bytes(whole)


def test_a_resumed_run_has_the_same_ema(tmp_path: Path) -> None:
    whole, first, second = (make_trainer(ema_decay=0.9) for _ in range(3))
    list(whole.run())
    for event in first.run():
        if event.step == 7:
            break
    checkpoints = Checkpoints(tmp_path, n_snapshots=1)
    checkpoints.save(first, snapshot=False)
    checkpoints.restore(second)
    list(second.run())
    for name, value in whole.eval_weights().items():
        assert torch.equal(value, second.eval_weights()[name])


@pytest.mark.parametrize("omitted", ["optimizer", "progress"])
def test_the_resume_test_can_fail(tmp_path: Path, omitted: str) -> None:
    """Negative control: without the optimizer state, or without the position in the data, the weights differ."""
    whole, first, second = make_trainer(), make_trainer(), make_trainer()
    list(whole.run())
    for event in first.run():
        if event.step == 7:
            break
    state = {} if omitted == "optimizer" else first.optimizer_state()
    progress = first.progress() | ({"epoch": 0, "position": 0} if omitted == "progress" else {})
    second.restore(progress, first.weights(), state)
    list(second.run())
    assert final_bytes(second) != final_bytes(whole)


def test_updates_equal_adamw_computed_by_hand() -> None:
    """The betas and epsilon of 2017, decoupled weight decay, and the learning rate of the step's own number."""
    settings = {"warmup": 4, "learning_rate": 0.05, "weight_decay": 0.3, "clip_norm": math.inf}
    trainer = make_trainer(steps=6, dropout=0.0, **settings)
    weights = [value.detach().clone() for value in trainer.model.parameters()]
    first, second = ([torch.zeros_like(value) for value in weights] for _ in range(2))
    for event in trainer.run():
        rate = 0.05 * min(event.step / 4, (4 / event.step) ** 0.5)
        assert event.learning_rate == pytest.approx(rate)
        for i, parameter in enumerate(trainer.model.parameters()):
            assert parameter.grad is not None
            first[i] = 0.9 * first[i] + 0.1 * parameter.grad
            second[i] = 0.98 * second[i] + 0.02 * parameter.grad.square()
            change = first[i] / (1 - 0.9**event.step) / ((second[i] / (1 - 0.98**event.step)).sqrt() + 1e-9)
            weights[i] = weights[i] * (1 - rate * 0.3) - rate * change
            torch.testing.assert_close(parameter.detach(), weights[i])


def test_every_step_has_its_own_dropout() -> None:
    def drops(seed: int) -> list[list[bool]]:
        trainer = make_trainer(steps=5, dropout=0.5)
        trainer.seed = seed
        drawn: list[list[bool]] = []
        trainer.model[2].register_forward_hook(lambda *call: drawn.append((call[2] == 0).flatten().tolist()))
        list(trainer.run())
        return drawn

    assert len({tuple(step) for step in drops(1)}) == 5
    assert drops(1) == drops(1) != drops(2)


def test_every_batch_has_its_own_seed() -> None:
    """A function of the seed, the step and the batch within the step; others would repeat subword samples."""
    trainer = make_trainer(steps=3, accumulation_steps=2)
    list(trainer.run())
    assert isinstance(trainer.training_task, Doubling)
    assert trainer.training_task.made == [(11 * 1_000_003 + step) * 2 + part for step in range(3) for part in range(2)]
