"""The memory of training by formula is close to what autograd keeps."""

from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.model import ModelSettings, Transformer
from manyheads.model.flops import BatchShape
from manyheads.plan.training_memory import activation_bytes, device_memory

ROWS, LENGTH = 16, 24


def kept_bytes(settings: ModelSettings, *, uses_bfloat16: bool) -> int:
    """Bytes that a forward pass keeps for the backward pass, without weights and their copies."""
    model = Transformer(settings).train()
    weights = {parameter.shape for parameter in model.parameters()}
    kept: dict[int, tuple[int, Tensor]] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.shape not in weights and tensor.mT.shape not in weights:
            kept[tensor.untyped_storage().data_ptr()] = (tensor.untyped_storage().nbytes(), tensor)
        return tensor

    ids = torch.randint(4, settings.vocab_size, (ROWS, LENGTH))
    source = ids if settings.has_encoder else None
    target = ids if settings.has_decoder else None
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=uses_bfloat16),
    ):
        hidden = model.hidden(source, target)
    assert hidden.requires_grad
    return sum(size for size, _ in kept.values())


@pytest.mark.parametrize("uses_bfloat16", [False, True])
@pytest.mark.parametrize("shape", ["encoder", "decoder", "encoder-decoder"])
def test_activations(shape: str, uses_bfloat16: bool) -> None:
    sizes: dict[str, Any] = {"width": 128, "feed_forward_width": 512, "n_heads": 4, "n_encoder_layers": 3}
    settings = ModelSettings(vocab_size=300, shape=shape, n_decoder_layers=2, **sizes)
    batch = BatchShape.of_rows(ROWS, LENGTH * settings.has_encoder, LENGTH * settings.has_decoder)
    formula = activation_bytes(settings, batch, uses_bfloat16=uses_bfloat16)
    assert formula == pytest.approx(kept_bytes(settings, uses_bfloat16=uses_bfloat16), rel=0.1)


def test_sharding_divides_the_state_and_devices_share_the_batch() -> None:
    settings = ModelSettings.preset("base", vocab_size=37_000)
    batch = BatchShape.of_rows(1000, 25, 25)
    one = device_memory(settings, 60_000_000, batch, has_ema=True)
    assert (one.weights, one.gradients, one.adam, one.ema) == (2.4e8, 2.4e8, 4.8e8, 2.4e8)
    assert one.gathered == 0
    copies, shards = (
        device_memory(settings, 60_000_000, batch, n_devices=8, is_sharded=is_sharded) for is_sharded in (False, True)
    )
    assert copies.activations == shards.activations == one.activations / 8
    assert copies.weights == one.weights
    assert shards.weights == one.weights / 8
    assert shards.gathered > 4 * 37_000 * 512  # the embeddings are whole while they are used
    assert copies.ema == 0
    assert shards.total < copies.total < one.total
