import math

import pytest
import torch

from manyheads.model.feed_forward import make_feed_forward

from model.makers import largest_difference, shaken, small, vectors

X = vectors(2, 3, 8)


def relu(x: float) -> float:
    return max(x, 0.0)


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def swish(x: float) -> float:
    return x / (1 + math.exp(-x))


@pytest.mark.parametrize(("activation", "function"), [("relu", relu), ("gelu", gelu), ("swiglu", swish)])
def test_feed_forward_equals_the_formula(activation: str, function: object) -> None:
    layer = shaken(make_feed_forward(small(activation=activation)))
    inner = X @ layer.inner.weight.T + layer.inner.bias
    entrance = X @ layer.gate.weight.T + layer.gate.bias if activation == "swiglu" else inner
    activated = entrance.detach().clone().apply_(function)
    if activation == "swiglu":
        activated = activated * inner
    assert largest_difference(layer(X), activated @ layer.outer.weight.T + layer.outer.bias) < 1e-5


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_positions_are_transformed_independently(activation: str) -> None:
    layer = shaken(make_feed_forward(small(activation=activation)))
    assert largest_difference(layer(X)[:, 1:2], layer(X[:, 1:2])) < 1e-6


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_dropout_applies_to_the_hidden_layer_in_training_only(activation: str) -> None:
    layer = shaken(make_feed_forward(small(activation=activation, feed_forward_dropout=0.5)))
    assert torch.equal(layer(X), layer(X))
    layer.train()
    assert not torch.equal(layer(X), layer(X))


def test_the_hidden_layer_of_the_base_model_is_four_times_as_wide() -> None:
    layer = make_feed_forward(small(width=512, n_heads=8, feed_forward_width=2048))
    assert layer.inner.weight.shape == (2048, 512)
    assert layer.outer.weight.shape == (512, 2048)
