import math

import pytest
import torch

from manyheads.model.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    NoRelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)
from manyheads.model.score_forms import make_score_form

from model.makers import causal_view, largest_difference, real, sized, small, vectors


@pytest.mark.parametrize("length", [1, 7, 3000])
def test_sinusoidal_is_the_formula(length: int) -> None:
    width = 6
    encoded = SinusoidalPositions(width)(torch.arange(length)[None])
    assert encoded.shape == (1, length, width)
    for position in {0, length // 2, length - 1}:
        for i in range(width // 2):
            angle = position / 10_000 ** (2 * i / width)
            # Thousands of radians in single precision leave three decimals.
            exact = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-3 if position > 99 else 1e-6)
            assert encoded[0, position, 2 * i : 2 * i + 2].tolist() == exact


def test_learned_looks_its_vectors_up() -> None:
    positions = LearnedPositions(5, 8)
    found = positions(torch.tensor([[3, 0], [4, 4]]))
    assert torch.equal(found.flatten(0, 1), positions.weight[[3, 0, 4, 4]])


def test_none_adds_nothing() -> None:
    assert torch.equal(NoPositions()(torch.arange(4)[None]) + vectors(2, 4, 8), vectors(2, 4, 8))
    x = vectors(1, 2, 4, 6)
    assert NoRelativePositions().rotate(x, torch.arange(4)[None]) is x
    assert NoRelativePositions().bias(torch.arange(4)[None], torch.arange(4)[None]) is None


@pytest.mark.parametrize("scores", ["scaled-dot", "dot", "cosine"])
def test_rotary_scores_depend_on_distance_alone(scores: str) -> None:
    rotary, form = RotaryPositions(6), make_score_form(*sized(small(scores=scores, head_width=6)))
    q, k = vectors(1, 2, 4, 6), vectors(1, 2, 4, 6, seed=1)
    positions = torch.tensor([[0, 1, 5, 9]])

    def scores_at(query_shift: int, key_shift: int) -> torch.Tensor:
        rotated_q, rotated_k = rotary.rotate(q, positions + query_shift), rotary.rotate(k, positions + key_shift)
        return form(rotated_q, rotated_k, causal_view(real("xxxx")))

    assert largest_difference(scores_at(0, 0), scores_at(40, 40)) < 1e-4
    assert largest_difference(scores_at(0, 0), scores_at(1, 0)) > 0.1


def test_rotary_rotates_the_first_pair_by_one_radian_a_position_and_keeps_lengths() -> None:
    x = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 3, 4)
    rotated = RotaryPositions(4).rotate(x, torch.arange(3)[None])
    for position in range(3):
        expected = [math.cos(position), math.sin(position), math.cos(position / 100), math.sin(position / 100)]
        assert torch.allclose(rotated[0, 0, position], torch.tensor(expected), atol=1e-6)
    assert torch.allclose(rotated.norm(dim=-1), x.norm(dim=-1))


def test_rotary_stays_exact_far_out_in_half_precision() -> None:
    x, positions = torch.ones(1, 1, 1, 4), torch.tensor([[1001]])
    exact, half = RotaryPositions(4).rotate(x, positions), RotaryPositions(4).rotate(x.bfloat16(), positions)
    assert half.dtype == torch.bfloat16
    assert largest_difference(half.float(), exact) < 0.02


def test_alibi_slopes_halve_from_one_half_for_eight_heads() -> None:
    assert AlibiPositions(8).slopes.tolist() == [2.0**-i for i in range(1, 9)]
    assert AlibiPositions(2).slopes.tolist() == [2.0**-4, 2.0**-8]


def test_alibi_lowers_scores_by_slope_times_distance_both_ways() -> None:
    bias = AlibiPositions(2).bias(torch.tensor([[0, 3]]), torch.tensor([[0, 1, 5]]))
    assert bias is not None
    assert bias.shape == (1, 2, 2, 3)
    assert bias[0, 0].tolist() == [[0, -1 / 16, -5 / 16], [-3 / 16, -2 / 16, -2 / 16]]
    assert torch.equal(bias[0, 1], bias[0, 0] / 16)
