"""How fast this machine multiplies matrices of 32-bit numbers: the most that any model could reach on it."""

import time
from dataclasses import dataclass
from statistics import median

import torch

_SIZES = (512, 768, 1024, 1536)
_TURN = 0.1  # seconds


@dataclass(frozen=True)
class MatmulSpeed:
    """MatmulSpeed of square matrices, of the size at which they are fastest here."""

    size: int
    speeds: tuple[float, ...]  # GFLOP a second, of each turn
    slowdown: float  # times as long as it took than the threads computed: what others on this machine cost

    @classmethod
    def measure(cls, n_turns: int = 3) -> "MatmulSpeed":
        """Every size in turn, so that whatever else the machine does meets them alike."""
        found: dict[int, list[float]] = {size: [] for size in _SIZES}
        clock, computed = time.perf_counter(), time.process_time()
        for _ in range(n_turns):
            for size, speeds in found.items():
                speeds.append(time_matmul(size))
        best = max(found, key=lambda size: median(found[size]))
        clock, computed = time.perf_counter() - clock, time.process_time() - computed
        return cls(best, tuple(found[best]), max(1.0, clock * torch.get_num_threads() / computed))

    @property
    def gflop_per_second(self) -> float:
        """The median."""
        return median(self.speeds)


def time_matmul(size: int) -> float:
    """GFLOP a second of products of this size, in one short turn."""
    one, other, result = (torch.full((size, size), 0.5) for _ in range(3))
    torch.mm(one, other, out=result)
    count, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < _TURN or count < 2:
        torch.mm(one, other, out=result)
        count += 1
    return count * 2 * size**3 / spent / 1e9
