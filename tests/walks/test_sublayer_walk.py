"""Residual connections and feed-forward as captured: pre- and post-norm, and no hooks stay behind."""

import numpy as np
import pytest
import torch
from torch import nn

from manyheads.model import Transformer
from manyheads.walks.sublayer_walk import capture_modules, walk_feed_forward, walk_sublayer

from model.makers import random_ids, shaken, small


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_order_of_norm_and_sum(placement: str, activation: str) -> None:
    model = shaken(Transformer(small(norm_placement=placement, activation=activation)).double())
    assert isinstance(model, Transformer)
    ids = random_ids(1, 5)
    with torch.no_grad(), capture_modules(model) as calls:
        model.hidden(ids, ids)
    block = model.encoder[0]
    network = walk_feed_forward(block.feed_forward, calls, activation)
    walked = walk_sublayer("encoder.0.feed_forward", block.feed_forward_sublayer, block.feed_forward, calls)
    assert walked.placement == placement
    np.testing.assert_array_equal(walked.branch, network.output)
    np.testing.assert_array_equal(walked.residual, walked.input + walked.branch)
    if placement == "post":
        np.testing.assert_array_equal(walked.norm.input, walked.residual)
        np.testing.assert_array_equal(walked.output, walked.norm.output)
        np.testing.assert_array_equal(network.input, walked.input)
    else:
        np.testing.assert_array_equal(walked.norm.input, walked.input)
        np.testing.assert_array_equal(walked.output, walked.residual)
        np.testing.assert_array_equal(network.input, walked.norm.output)
    assert (network.gate is None) == (activation != "swiglu")
    np.testing.assert_allclose(network.activated @ network.outer + network.outer_bias, network.output, atol=1e-12)


def test_hooks_are_removed() -> None:
    linear = nn.Linear(2, 2)
    with pytest.raises(ZeroDivisionError), capture_modules(linear) as calls:
        linear(torch.zeros(1, 2))
        raise ZeroDivisionError
    assert set(calls) == {linear}
    assert not linear._forward_hooks
