import math

import pytest
import torch

from manyheads.model.embedding import Embedding, TokenEmbedding
from manyheads.model.positions import SinusoidalPositions

from model.makers import choices, random_ids, small

IDS, POSITIONS = random_ids(2, 5), torch.arange(5)[None]


def test_vectors_are_initialized_as_in_the_paper() -> None:
    torch.manual_seed(0)
    weight = TokenEmbedding(2000, 64).weight
    assert weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    assert weight.mean().item() == pytest.approx(0, abs=1e-3)


def test_a_logit_is_the_dot_product_with_the_vector_of_the_token() -> None:
    words = TokenEmbedding(13, 8)
    hidden = words(IDS)
    logits = words.logits(hidden)
    assert logits.shape == (2, 5, 13)
    assert logits[1, 2, 7].item() == pytest.approx((hidden[1, 2] * words.weight[7]).sum().item(), abs=1e-6)


@pytest.mark.parametrize(("scale_embedding", "scale"), [(True, math.sqrt(8)), (False, 1.0)])
def test_embedding_is_the_scaled_token_vector_plus_the_position_vector(scale_embedding: bool, scale: float) -> None:
    words = TokenEmbedding(13, 8)
    embedding = Embedding(words, small(scale_embedding=scale_embedding))
    expected = scale * words.weight[IDS] + SinusoidalPositions(8)(POSITIONS)
    assert torch.allclose(embedding(IDS, POSITIONS), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("positions", "knows_order"),
    [("sinusoidal", True), ("learned", True), ("rotary", False), ("alibi", False), ("none", False)],
)
def test_only_absolute_positions_are_added_to_the_embedding(positions: str, knows_order: bool) -> None:
    embedding = Embedding(TokenEmbedding(13, 8), small(positions=positions))
    here, there = embedding(IDS, POSITIONS), embedding(IDS, POSITIONS + 3)
    assert torch.equal(here, there) != knows_order


def test_dropout_applies_to_the_sum() -> None:
    embedding = Embedding(TokenEmbedding(13, 8), small(dropout=0.5)).train()
    torch.manual_seed(0)
    assert 0.3 < (embedding(random_ids(20, 20), torch.arange(20)[None]) == 0).float().mean() < 0.7


@pytest.mark.parametrize("positions", choices("positions"))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_embedding_has_the_precision_of_the_token_vectors(positions: str, dtype: torch.dtype) -> None:
    assert Embedding(TokenEmbedding(13, 8), small(positions=positions)).to(dtype)(IDS, POSITIONS).dtype == dtype
