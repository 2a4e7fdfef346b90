import pytest
import torch

from manyheads.model.projections import (
    NoProjections,
    Projections,
    SeparateProjections,
    SharedProjection,
    TiedProjections,
    make_projections,
    split_heads,
)

from model.makers import sized, small, vectors

X = vectors(3, 5, 8)


def n_weights(projections: Projections) -> int:
    return sum(parameter.numel() for parameter in projections.parameters())


def test_a_head_is_a_run_of_neighbouring_features() -> None:
    heads = split_heads(X, 4)
    assert heads.shape == (3, 4, 5, 2)
    assert torch.equal(heads[1, 2, 3], X[1, 3, 4:6])


def test_separate_has_three_matrices_and_fewer_keys_when_grouped() -> None:
    settings = small(n_heads=4, n_key_heads=2, head_width=3, value_width=5)
    projections = make_projections(*sized(settings))
    assert isinstance(projections, SeparateProjections)
    k, v = projections.keys_values(X)
    assert projections.queries(X).shape == (3, 4, 5, 3)
    assert k.shape == (3, 2, 5, 3)
    assert v.shape == (3, 2, 5, 5)
    assert n_weights(projections) == 8 * (4 * 3 + 2 * 3 + 2 * 5)


def test_bias_adds_one_number_an_output() -> None:
    plain, biased = (make_projections(*sized(small(attention_bias=bias))) for bias in (False, True))
    assert n_weights(biased) - n_weights(plain) == 3 * 8


def test_without_queries_or_keys_they_are_empty() -> None:
    projections = make_projections(*sized(small()), has_queries=False, has_keys=False)
    k, v = projections.keys_values(X)
    assert projections.queries(X).shape == (3, 2, 5, 0)
    assert k.shape == (3, 2, 5, 0)
    assert v.shape == (3, 2, 5, 4)
    assert n_weights(projections) == 8 * 8


def test_tied_queries_are_the_keys_so_scores_are_the_same_both_ways() -> None:
    projections = make_projections(*sized(small(projections="tied", value_width=3)))
    assert isinstance(projections, TiedProjections)
    q, (k, v) = projections.queries(X), projections.keys_values(X)
    assert torch.equal(q, k)
    assert v.shape == (3, 2, 5, 3)
    scores = q @ k.mT
    assert torch.allclose(scores, scores.mT, atol=1e-6)
    assert n_weights(projections) == 8 * (8 + 6)


def test_shared_is_one_matrix_and_none_is_the_input() -> None:
    shared, none = (
        make_projections(*sized(small(projections="shared"))),
        make_projections(*sized(small(projections="none"))),
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


def test_the_interface_by_itself_says_so() -> None:
    projections = Projections(small().heads)
    for use in (projections.queries, projections.keys_values):
        with pytest.raises(TypeError, match="Projections does not project by itself"):
            use(X)
