"""How well a model reaches back: the gradient that arrives at a far token, and the time that a training step takes."""

import time
from typing import Any

import torch.nn.functional as F
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import LabBatch
from manyheads.lab.setup import Setup
from manyheads.lab.trial import counted_logits
from manyheads.model.embedding import TokenEmbedding

_N_ROWS = 64
_N_TIMED = 20


def far_gradient(model: nn.Module, setup: Setup, seed: int) -> float:
    """The gradient of the loss at the first token of a row, divided by that at the last token, which asks."""
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    vectors: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        output.retain_grad()
        vectors.append(output)

    handles = [one.register_forward_hook(keep) for one in model.modules() if isinstance(one, TokenEmbedding)]
    _loss(model, batch).backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    gradient = vectors[0].grad
    assert gradient is not None
    norms = gradient.double().norm(dim=-1).mean(0)
    return float(norms[0] / norms[-1])


def step_seconds(model: nn.Module, setup: Setup, seed: int) -> float:
    """CPU seconds of one forward and backward pass over a training batch: the shortest of twenty.

    CPU time, and the shortest, because other processes may share the machine.
    """
    batch = setup.task.batch(setup.n_rows, Generator().manual_seed(seed))
    times = []
    for _ in range(_N_TIMED):
        started = time.process_time()
        _loss(model, batch).backward()
        times.append(time.process_time() - started)
    model.zero_grad()
    return min(times)


def _loss(model: nn.Module, batch: LabBatch) -> Tensor:
    return F.cross_entropy(counted_logits(model, batch), batch.expected[batch.is_counted])
