"""Whether to train in bfloat16: matrix products in bfloat16; weights, gradients and the optimizer in float32.

On a CPU with AVX-512 BF16, bfloat16 takes 1.3 times less processor time per update from width 512 on; at width 128 it
takes more (benchmarks/speed/bfloat16.md). "auto" stays float32 there: that it costs no BLEU is not shown (0044).
"""

import torch


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether a model trains in bfloat16 on this device, given the recipe's `train.precision`."""
    if precision != "auto":
        return precision == "bfloat16"
    # A GPU before Ampere only emulates bfloat16, which is slower than float32.
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
