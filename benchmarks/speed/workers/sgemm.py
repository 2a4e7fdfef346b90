"""The highest float32 matrix product speed of this machine, the upper bound for all training speeds."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from turns import Ids, serve

SIZES = (512, 768, 1024, 1536)


class Products:
    """Reports GFLOP per CPU second, one number for each of `SIZES`, in place of losses."""

    def __init__(self, size: Mapping[str, Any]) -> None:
        self.model = nn.Module()
        self.pairs = {n: (torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)) for n in SIZES}

    def prepare(self, ids: Ids) -> None:
        return None

    def step(self, prepared: None) -> list[float]:
        return [self._speed(n) for n in SIZES]

    def _speed(self, n: int) -> float:
        one, other, result = self.pairs[n]
        torch.mm(one, other, out=result)
        times = max(2, 1536**3 // n**3)
        started = time.process_time()
        for _ in range(times):
            torch.mm(one, other, out=result)
        return times * 2 * n**3 / (time.process_time() - started) / 1e9


if __name__ == "__main__":
    serve([], Products)
