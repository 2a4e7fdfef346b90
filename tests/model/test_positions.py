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
from manyheads.model.score_forms import SCORE_FORMS

from model.makers import causal_view, largest_difference, real, small, vectors


@pytest.mark.parametrize("length", [1, 7, 3000])
def test_sinusoidal_positions_equal_the_formula(length: int) -> None:
    width = 6
    encoded = SinusoidalPositions(width)(torch.arange(length)[None])
    assert encoded.shape == (1, length, width)
    for position in {0, length // 2, length - 1}:
        for i in range(width // 2):
            angle = position / 10_000 ** (2 * i / width)
            # Thousands of radians in single precision leave three decimals.
            exact = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-3 if position > 99 else 1e-6)
            assert encoded[0, position, 2 * i : 2 * i + 2].tolist() == exact


def test_double_models_have_positions_in_double_precision() -> None:
    angles = [3000 / 10_000 ** (2 * i / 6) for i in range(3)]
    encoded = SinusoidalPositions(6)(torch.tensor([[3000]]), torch.float64)[0, 0]
    assert encoded.tolist() == pytest.approx([f(angle) for angle in angles for f in (math.sin, math.cos)], abs=1e-11)
    x = torch.tensor([1.0, 0.0] * 3, dtype=torch.float64).reshape(1, 1, 1, 6)
    rotated = RotaryPositions(6).rotate(x, torch.tensor([[3000]]))[0, 0, 0]
    assert rotated.tolist() == pytest.approx([f(angle) for angle in angles for f in (math.cos, math.sin)], abs=1e-11)


def test_learned_positions_index_their_vectors() -> None:
    positions = LearnedPositions(5, 8)
    encoded = positions(torch.tensor([[3, 0], [4, 4]]))
    assert torch.equal(encoded.flatten(0, 1), positions.weight[[3, 0, 4, 4]])


def test_no_positions_change_nothing() -> None:
    assert torch.equal(NoPositions()(torch.arange(4)[None]) + vectors(2, 4, 8), vectors(2, 4, 8))
    x = vectors(1, 2, 4, 6)
    assert NoRelativePositions().rotate(x, torch.arange(4)[None]) is x
    assert NoRelativePositions().bias(torch.arange(4)[None], torch.arange(4)[None]) is None


@pytest.mark.parametrize("scores", ["scaled-dot", "dot", "cosine"])
def test_rotary_scores_depend_only_on_distance(scores: str) -> None:
    rotary, form = RotaryPositions(6), SCORE_FORMS[scores](small(head_width=6).heads, 24)
    q, k = vectors(1, 2, 4, 6), vectors(1, 2, 4, 6, seed=1)
    positions = torch.tensor([[0, 1, 5, 9]])

    def scores_at(query_offset: int, key_offset: int) -> torch.Tensor:
        rotated_q, rotated_k = rotary.rotate(q, positions + query_offset), rotary.rotate(k, positions + key_offset)
        return form(rotated_q, rotated_k, causal_view(real("xxxx")))

    assert largest_difference(scores_at(0, 0), scores_at(40, 40)) < 1e-4
    assert largest_difference(scores_at(0, 0), scores_at(1, 0)) > 0.1


def test_rotary_rotates_the_first_pair_by_one_radian_per_position_and_preserves_lengths() -> None:
    x = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 3, 4)
    rotated = RotaryPositions(4).rotate(x, torch.arange(3)[None])
    for position in range(3):
        expected = [math.cos(position), math.sin(position), math.cos(position / 100), math.sin(position / 100)]
        assert torch.allclose(rotated[0, 0, position], torch.tensor(expected), atol=1e-6)
    assert torch.allclose(rotated.norm(dim=-1), x.norm(dim=-1))


def test_rotary_is_accurate_at_large_positions_in_half_precision() -> None:
    x, positions = torch.ones(1, 1, 1, 4), torch.tensor([[1001]])
    exact, half = RotaryPositions(4).rotate(x, positions), RotaryPositions(4).rotate(x.bfloat16(), positions)
    assert half.dtype == torch.bfloat16
    assert largest_difference(half.float(), exact) < 0.02


def test_alibi_slopes_halve_from_one_half_for_eight_heads() -> None:
    assert AlibiPositions(8).slopes.tolist() == [2.0**-i for i in range(1, 9)]
    assert AlibiPositions(2).slopes.tolist() == [2.0**-4, 2.0**-8]


def test_alibi_lowers_scores_by_slope_times_distance_in_both_directions() -> None:
    bias = AlibiPositions(2).bias(torch.tensor([[0, 3]]), torch.tensor([[0, 1, 5]]))
    assert bias is not None
    assert bias.shape == (1, 2, 2, 3)
    assert bias[0, 0].tolist() == [[0, -1 / 16, -5 / 16], [-3 / 16, -2 / 16, -2 / 16]]
    assert torch.equal(bias[0, 1], bias[0, 0] / 16)
