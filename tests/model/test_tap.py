import pytest
import torch

from manyheads.model import Tap

from model.makers import random_ids, small, small_model

NAMES = {
    f"{attention}.{what}"
    for attention in (
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    )
    for what in ("q", "k", "v", "scores", "weights", "heads", "output")
} | {"encoder.hidden", "decoder.hidden"}


def test_tap_stores_every_value_under_its_name() -> None:
    tap = Tap()
    small_model(small())(random_ids(2, 4), random_ids(2, 3), tap=tap)
    assert set(tap.values) == NAMES
    assert tap["decoder.1.cross.weights"].shape == (2, 2, 3, 4)
    with pytest.raises(KeyError):
        tap["decoder.9.self.weights"]


def test_a_subclass_may_override_receive() -> None:
    class Names(Tap):
        def receive(self, name: str, value: torch.Tensor) -> None:
            self.values[name] = value.mean()

    tap = Names()
    small_model(small())(random_ids(2, 4), random_ids(2, 3), tap=tap)
    assert all(value.dim() == 0 for value in tap.values.values())


def test_a_tap_does_not_change_the_output() -> None:
    model, source, target = small_model(small()), random_ids(2, 4), random_ids(2, 3)
    assert torch.allclose(model(source, target), model(source, target, tap=Tap()), atol=1e-5)
