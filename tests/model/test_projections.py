import pytest
import torch

from manyheads.model import ModelSettings
from manyheads.model.projections import (
    NoProjections,
    Projections,
    SeparateProjections,
    SharedProjection,
    TiedProjections,
    make_projections,
    split_heads,
)

from model.makers import small, vectors

X = vectors(3, 5, 8)


def projections_of(settings: ModelSettings, **reads: bool) -> Projections:
    return make_projections(settings, settings.heads, **reads)


def n_weights(projections: Projections) -> int:
    return sum(parameter.numel() for parameter in projections.parameters())


def test_a_head_is_a_contiguous_slice_of_the_features() -> None:
    heads = split_heads(X, 4)
    assert heads.shape == (3, 4, 5, 2)
    assert torch.equal(heads[1, 2, 3], X[1, 3, 4:6])


def test_separate_projections_have_three_matrices_and_fewer_key_heads_when_grouped() -> None:
    settings = small(n_heads=4, n_key_heads=2, head_width=3, value_width=5)
    projections = projections_of(settings)
    assert isinstance(projections, SeparateProjections)
    k, v = projections.keys_values(X)
    assert projections.queries(X).shape == (3, 4, 5, 3)
    assert k.shape == (3, 2, 5, 3)
    assert v.shape == (3, 2, 5, 5)
    assert n_weights(projections) == 8 * (4 * 3 + 2 * 3 + 2 * 5)


def test_bias_adds_one_parameter_per_output() -> None:
    plain, biased = (projections_of(small(attention_bias=bias)) for bias in (False, True))
    assert n_weights(biased) - n_weights(plain) == 3 * 8


def test_unread_queries_and_keys_have_width_zero() -> None:
    projections = projections_of(small(), has_queries=False, has_keys=False)
    k, v = projections.keys_values(X)
    assert projections.queries(X).shape == (3, 2, 5, 0)
    assert k.shape == (3, 2, 5, 0)
    assert v.shape == (3, 2, 5, 4)
    assert n_weights(projections) == 8 * 8


def test_tied_projections_make_scores_symmetric() -> None:
    projections = projections_of(small(projections="tied", value_width=3))
    assert isinstance(projections, TiedProjections)
    q, (k, v) = projections.queries(X), projections.keys_values(X)
    assert torch.equal(q, k)
    assert v.shape == (3, 2, 5, 3)
    scores = q @ k.mT
    assert torch.allclose(scores, scores.mT, atol=1e-6)
    assert n_weights(projections) == 8 * (8 + 6)


def test_shared_projection_has_one_matrix_and_no_projections_have_none() -> None:
    shared, none = (
        projections_of(small(projections="shared")),
        projections_of(small(projections="none")),
    )
    assert isinstance(shared, SharedProjection)
    assert isinstance(none, NoProjections)
    for projections in (shared, none):
        k, v = projections.keys_values(X)
        assert torch.equal(projections.queries(X), k)
        assert torch.equal(k, v)
    assert n_weights(shared) == 8 * 8
    assert n_weights(none) == 0
    assert torch.equal(none.queries(X), split_heads(X, 2))


def test_the_base_class_does_not_project() -> None:
    projections = Projections(small().heads)
    for name in ("queries", "keys_values"):
        with pytest.raises(NotImplementedError, match=f"Projections does not define {name}"):
            getattr(projections, name)(X)
