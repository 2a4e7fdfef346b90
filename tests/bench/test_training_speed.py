"""`count_flop` equals the FLOP that torch counts."""

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from manyheads.bench import count_flop
from manyheads.data import make_batch
from manyheads.model import ModelSettings, Tap, Transformer

SETTINGS = ModelSettings(
    vocab_size=50, width=16, feed_forward_width=24, n_heads=4, head_width=6, n_encoder_layers=3, n_decoder_layers=2
)


class IdleTap(Tap):
    """Forces explicit attention, whose products the counter sees."""

    def receive(self, name: str, value: torch.Tensor) -> None:
        pass


def test_count_flop_equals_torch() -> None:
    batch = make_batch([np.arange(4, 11)], [np.arange(4, 9)])  # 8 and 6 tokens with EOS or BOS: no padding
    with FlopCounterMode(display=False) as counter:
        Transformer(SETTINGS)(torch.from_numpy(batch.source), torch.from_numpy(batch.target_input), tap=IdleTap())
    hidden = 2 * 4 * 24 * (6 * 6 - 6 * 7 // 2)  # masked scores are computed but not counted
    assert count_flop(SETTINGS, np.array([8]), np.array([6])) == 3 * (counter.get_total_flops() - hidden)


def test_flop_is_additive_over_pairs() -> None:
    sources, targets = np.array([8, 3]), np.array([6, 9])
    apart = sum(count_flop(SETTINGS, sources[[n]], targets[[n]]) for n in (0, 1))
    assert count_flop(SETTINGS, sources, targets) == apart
