"""A tiny regression task for tests of the training loop."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from manyheads.training import Trainer, TrainSettings


@dataclass(frozen=True)
class Numbers:
    x: Tensor
    n_tokens: int


@dataclass
class Doubling:
    """Learn y = 2x; four batches of four numbers per epoch, shuffled by the epoch."""

    model: nn.Module
    spoil: Callable[[int], bool] = lambda seed: False
    made: list[int] = field(default_factory=list)

    def plan(self, epoch: int) -> list[list[int]]:
        order = torch.randperm(16, generator=torch.Generator().manual_seed(epoch)).tolist()
        return [order[start : start + 4] for start in range(0, 16, 4)]

    def make(self, plan: list[int], seed: int) -> Numbers:
        self.made.append(seed)
        x = torch.tensor(plan, dtype=torch.float32)[:, None] / 16
        return Numbers(x * float("nan") if self.spoil(len(self.made)) else x, len(plan))

    def loss(self, batch: Numbers, step: int) -> Tensor:
        return (self.model(batch.x) - 2 * batch.x).square().mean()

    def describe(self, plan: list[int]) -> str:
        return f"the numbers {plan}"


def make_trainer(*, dropout: float = 0.2, width: int = 8, **settings: object) -> Trainer[Numbers]:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Dropout(dropout), nn.Linear(width, 1))
    chosen = {"steps": 30, "warmup": 5, "learning_rate": 0.05} | settings
    return Trainer(model, Doubling(model), TrainSettings(**chosen), width=width, seed=11)  # type: ignore[arg-type]
