"""Whether to train in bfloat16: matrix products in bfloat16, weights, gradients and the optimizer in float32."""

import torch


def uses_bfloat16(precision: str, device: torch.device, width: int) -> bool:
    """Whether a model of this width trains in bfloat16 on this device, given the recipe's `train.precision`."""
    if precision != "auto":
        return precision == "bfloat16"
    # A GPU before Ampere only emulates bfloat16, which is slower than float32.
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
