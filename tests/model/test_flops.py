"""FLOP by formula equal those that torch counts while a model computes."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from manyheads.model import ModelSettings, Transformer
from manyheads.model.flops import BatchShape, forward_flop, training_flop

SOURCE, TARGET, ROWS = 17, 13, 4
SIZES: dict[str, Any] = {
    "vocab_size": 300, "width": 64, "n_heads": 4, "feed_forward_width": 160, "n_encoder_layers": 2,
    "n_decoder_layers": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": "encoder-decoder"},
        {"shape": "encoder"},
        {"shape": "decoder"},
        {"shape": "encoder-decoder", "activation": "swiglu", "n_key_heads": 2, "head_width": 8, "value_width": 24},
        {"shape": "encoder-decoder", "projections": "tied"},
        {"shape": "encoder-decoder", "projections": "shared"},
        {"shape": "encoder-decoder", "projections": "none"},
    ],
)
def test_formula_equals_what_torch_counts(changes: dict[str, Any]) -> None:
    settings = ModelSettings(**SIZES, **changes)
    model = Transformer(settings)
    source, target = (torch.randint(4, 300, (ROWS, length)) for length in (SOURCE, TARGET))
    inputs: dict[str, Any] = ({"source": source} if settings.has_encoder else {}) | (
        {"target": target} if settings.has_decoder else {}
    )
    with FlopCounterMode(display=False) as counter:
        model(**inputs).sum().backward()
    shape = BatchShape.of_rows(
        ROWS,
        SOURCE * settings.has_encoder,
        TARGET * settings.has_decoder,
        output_share=float(settings.shape == "encoder"),
    )
    flop = forward_flop(settings, shape)
    # The fused kernel is not counted by torch, and products of attention that are counted include hidden pairs.
    counts = {str(name): count for name, count in counter.get_flop_counts()["Global"].items()}
    assert counts["aten.mm"] + counts["aten.addmm"] == 3 * (sum(flop.values()) - flop["attention"])
    assert training_flop(settings, shape) == 3 * sum(flop.values())


def test_attention_counts_pairs_that_a_causal_mask_leaves_visible() -> None:
    settings = ModelSettings(**SIZES, shape="decoder")
    visible = torch.ones(TARGET, TARGET).tril().sum().item() * ROWS
    flop = forward_flop(settings, BatchShape.of_rows(ROWS, 0, TARGET))["attention"]
    assert flop == 3 * visible * 2 * (64 + 64)  # three layers; scores and weighted sums


def test_base_model_of_2017() -> None:
    """About 6 FLOP per weight and token that it is applied to: 9.5e17 for 100,000 updates of 25,000 + 25,000 tokens."""
    settings = ModelSettings.preset("base", vocab_size=37_000)
    flop = 100_000 * training_flop(settings, BatchShape.of_rows(1000, 25, 25))
    assert flop == pytest.approx(9.5e17, rel=0.01)
    # The paper counts what eight P100 of 9.5 TFLOP/s could compute in 12 hours: 29 % of it was used.
    assert flop / (12 * 3600 * 8 * 9.5e12) == pytest.approx(0.29, abs=0.005)
