"""A tiny sequence task for a Transformer: copy the source."""

from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.model import Transformer, smoothed_cross_entropy


@dataclass(frozen=True)
class Sequences:
    ids: Tensor
    n_tokens: int


@dataclass
class Copying:
    """Sequences of four ids to copy; eight batches of 16 per epoch."""

    model: Transformer

    def plan(self, epoch: int) -> list[int]:
        return [8 * epoch + number for number in range(8)]

    def make(self, plan: int, seed: int) -> Sequences:
        generator = torch.Generator().manual_seed(plan)
        ids = torch.randint(3, self.model.settings.vocab_size, (16, 4), generator=generator)
        return Sequences(ids, ids.numel())

    def loss(self, batch: Sequences, step: int) -> Tensor:
        shifted = torch.cat([torch.full((len(batch.ids), 1), 2), batch.ids[:, :-1]], dim=1)
        logits = self.model(batch.ids, shifted)
        return smoothed_cross_entropy(logits.flatten(0, 1), batch.ids.flatten(), 0.0)

    def describe(self, plan: int) -> str:
        return f"batch {plan}"
