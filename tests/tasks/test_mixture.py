"""The mixture of a Transformer and a linear classifier: its share follows the better part."""

import pytest
import torch

from manyheads.tasks.calibration import Calibration
from manyheads.tasks.classify.ngram_svm import Mixture

GENERATOR = torch.Generator().manual_seed(1)
TARGETS = torch.nn.functional.one_hot(torch.arange(300) % 3, 3).float()
NOISE = torch.randn(300, 3, generator=GENERATOR)
OTHER_NOISE = torch.randn(300, 3, generator=GENERATOR)
GOOD = 2 * TARGETS + NOISE


def test_share_follows_the_better_part() -> None:
    assert Mixture.fit(OTHER_NOISE, GOOD, TARGETS).share >= 0.8
    assert Mixture.fit(GOOD, OTHER_NOISE, TARGETS).share <= 0.2


def test_two_parts_with_different_mistakes_share() -> None:
    mixture = Mixture.fit(GOOD, 2 * TARGETS + OTHER_NOISE, TARGETS)
    assert 0.3 < mixture.share < 0.7
    accuracy = [
        float((logits.argmax(-1) == TARGETS.argmax(-1)).float().mean())
        for logits in (GOOD, mixture.logits(GOOD, 2 * TARGETS + OTHER_NOISE))
    ]
    assert accuracy[1] > accuracy[0] + 0.05


def test_few_rows_hardly_move_the_share() -> None:
    assert Mixture.fit(OTHER_NOISE[:3], GOOD[:3], TARGETS[:3]).share < Mixture.fit(OTHER_NOISE, GOOD, TARGETS).share
    assert Mixture.fit(GOOD[:0], GOOD[:0], TARGETS[:0]).share == 0.5


def test_several_labels() -> None:
    several = (GOOD > 1).float()
    assert Mixture.fit(OTHER_NOISE, 4 * several - 2 + NOISE, several, multi_label=True).share > 0.8


def test_restored_from_metadata() -> None:
    mixture = Mixture(0.3, 1.5, 0.7)
    assert Mixture.restore({"mixture": mixture.metadata()}) == mixture
    assert Mixture.restore({}) == Mixture()
    for faulty in ({"share": 2.0}, {"linear": 0.0}, {"transformer": float("nan")}):
        with pytest.raises(ValueError, match="must have a share from 0 to 1"):
            Mixture.restore({"mixture": mixture.metadata() | faulty})


def test_each_part_has_the_temperature_that_fits_its_own_logits() -> None:
    certain, cautious = 5 * GOOD, 0.5 * (2 * TARGETS + OTHER_NOISE)
    mixture = Mixture.fit(certain, cautious, TARGETS)
    temperatures = [Calibration.fit(logits, TARGETS).temperature for logits in (certain, cautious)]
    assert (mixture.transformer_temperature, mixture.linear_temperature) == tuple(temperatures)
    assert temperatures[0] > 2 > 1 > temperatures[1]


def test_parts_are_divided_by_their_own_temperatures() -> None:
    mixture = Mixture(0.25, transformer_temperature=2.0, linear_temperature=5.0)
    one, other = mixture.parts(GOOD, NOISE)
    assert one.equal(0.75 * GOOD / 2.0) and other.equal(0.25 * NOISE / 5.0)
    assert mixture.logits(GOOD, NOISE).equal(one + other)
    assert mixture.metadata() == {"share": 0.25, "transformer": 2.0, "linear": 5.0}


def test_a_cautious_mixture_has_no_linear_part_unless_it_helps_for_sure() -> None:
    generator = torch.Generator().manual_seed(4)
    targets = torch.eye(2)[torch.randint(0, 2, (400,), generator=generator)]
    good = 4 * (targets - 0.5) + 2 * torch.randn(400, 2, generator=generator)
    other = 4 * (targets - 0.5) + 2 * torch.randn(400, 2, generator=generator)
    noise = torch.randn(400, 2, generator=generator)
    assert Mixture.fit_cautiously(good, noise, targets).share == 0.0
    assert 0.2 < Mixture.fit_cautiously(good, other, targets).share < 0.8
    assert Mixture.fit_cautiously(good[:1], other[:1], targets[:1]).share == 0.0
    assert Mixture.fit_cautiously(good[:0], other[:0], targets[:0]).share == 0.0
