"""Accelerators by name: memory and published peak rates, and the share of a peak that training reaches."""

from dataclasses import dataclass

# The share of the peak that the matrix products of training reach. Eight P100 trained the base model of 2017 for 12
# hours, 3.3e18 FLOP at their rating of 9.5 TFLOP/s; the products of its 100,000 updates are 29 % of that, by
# `forward_flop` on full batches. Other hardware and sizes differ in both directions: measure your own and pass it.
UTILIZATION = 0.3
# The share of N times the speed of one device that N devices reach; see benchmarks/scale.md for measurements on CPUs.
EFFICIENCY = 0.9


@dataclass(frozen=True)
class Accelerator:
    """One device: its memory, and its dense peak rates as published by its maker."""

    name: str
    memory_gb: float
    float32_tflops: float
    bfloat16_tflops: float | None  # None: not supported, so that training uses float32

    def peak_flops(self, *, uses_bfloat16: bool) -> float:
        """FLOP/s at the peak."""
        rate = self.bfloat16_tflops if uses_bfloat16 and self.bfloat16_tflops else self.float32_tflops
        return rate * 1e12


# Products of float32 do not use TF32, PyTorch's default. P100: the rating that the paper of 2017 uses.
ACCELERATORS = {
    accelerator.name: accelerator
    for accelerator in (
        Accelerator("p100", 16, 9.5, None),
        Accelerator("v100", 32, 15.7, None),
        Accelerator("t4", 16, 8.1, None),
        Accelerator("l4", 24, 30.3, 121.0),
        Accelerator("a10", 24, 31.2, 125.0),
        Accelerator("rtx3090", 24, 35.6, 71.0),
        Accelerator("rtx4090", 24, 82.6, 165.2),
        Accelerator("l40s", 48, 91.6, 362.0),
        Accelerator("a100", 80, 19.5, 312.0),
        Accelerator("h100", 80, 67.0, 989.0),
        Accelerator("h200", 141, 67.0, 989.0),
    )
}


def scaling_efficiency(n_devices: int) -> float:
    """The speed of several devices over that of one, divided by their number."""
    return 1.0 if n_devices == 1 else EFFICIENCY
