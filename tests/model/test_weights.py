"""Weights by name: tied matrices, buffers, and errors that list every mismatch."""

import pytest
import torch
from torch import nn

from manyheads.errors import BundleError
from manyheads.model import Transformer
from manyheads.model.weights import average, dequantize_weights, load_weights, quantize_weights, weights_of

from model.makers import small


def test_a_tied_matrix_appears_once_and_buffers_are_included() -> None:
    tied = weights_of(Transformer(small(norm="batch")))
    untied = weights_of(Transformer(small(norm="batch", tie_source_target=False, tie_output=False)))
    assert sorted(set(untied) - set(tied)) == ["output.weight", "target_embedding.token_embedding.weight"]
    assert "encoder.0.attention_sublayer.norm.running_var" in tied
    model = Transformer(small())
    assert sum(value.numel() for value in weights_of(model).values()) == model.n_parameters


def test_loading_weights_reproduces_the_model() -> None:
    first, second = Transformer(small()).eval(), Transformer(small()).eval()
    source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7]])
    assert not torch.equal(first(source, target), second(source, target))
    load_weights(second, weights_of(first), "here")
    assert torch.equal(first(source, target), second(source, target))
    assert second.output.weight is second.source_embedding.token_embedding.weight


def test_all_mismatches_are_reported_and_nothing_is_loaded() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {name: value.clone() for name, value in weights_of(model).items()}
    wrong = {
        "0.weight": torch.zeros(3, 3),
        "0.bias": torch.zeros(3),
        "1.weight": torch.zeros(1, 3),
        "2.x": torch.zeros(1),
    }
    with pytest.raises(BundleError) as caught:
        load_weights(model, wrong, "w.safetensors")
    assert str(caught.value) == (
        "w.safetensors does not fit this model: 1.bias is missing; 2.x is unknown; 0.weight is (3, 3), not (3, 2)."
    )
    assert all(torch.equal(value, before[name]) for name, value in weights_of(model).items())


def test_the_average_is_the_mean() -> None:
    snapshots = [{"a": torch.tensor([1.0, 2.0])}, {"a": torch.tensor([3.0, 6.0])}]
    assert average(snapshots)["a"].tolist() == [2.0, 4.0]
    assert average(snapshots)["a"].dtype == torch.float32


def test_quantized_matrices_are_restored_up_to_rounding() -> None:
    weights = {
        "matrix": torch.tensor([[1.0, -2.54, 0.5], [0.0, 0.0, 0.0]]),
        "vector": torch.tensor([1.5, 2.5]),
        "count": torch.tensor([[3, 4]]),
        "norm.scale": torch.tensor([0.5]),  # the scale of no matrix
    }
    quantized = quantize_weights(weights)
    assert quantized["matrix"].dtype == torch.int8
    assert quantized["matrix"].tolist() == [[50, -127, 25], [0, 0, 0]]
    assert quantized["matrix.scale"][0].item() == pytest.approx(0.02)
    assert all(quantized[name] is weights[name] for name in ("vector", "count", "norm.scale"))
    restored = dequantize_weights(quantized)
    assert restored.keys() == weights.keys()
    torch.testing.assert_close(restored["matrix"], weights["matrix"])
