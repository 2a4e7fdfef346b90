"""Whether to train in bfloat16: matrix products in bfloat16; weights, gradients and the optimizer in float32.

Measured on a CPU with AVX-512 BF16 (benchmarks/speed/bfloat16.md): from width 512 on, bfloat16 takes 1.3 times less
processor time per update or better; at width 128 it takes more. Its cost in BLEU was measured at width 128 only.
"""

import torch

_MIN_CPU_WIDTH = 512  # narrower models gain little on a CPU, or lose


def uses_bfloat16(precision: str, device: torch.device, width: int) -> bool:
    """Whether a model of this width trains in bfloat16 on this device, given the recipe's `train.precision`."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        # A GPU before Ampere only emulates bfloat16, which is slower than float32.
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and width >= _MIN_CPU_WIDTH and has_bfloat16_instructions()


def has_bfloat16_instructions() -> bool:
    """Whether this CPU multiplies matrices of bfloat16 natively: AVX-512 BF16 or AMX."""
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check() for check in checks if check is not None)
