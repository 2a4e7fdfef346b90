"""What every worker does alike: a line of JSON in, a turn of work, a line of JSON out.

    → {"size": {…}, "batches": "batches.npz", "core": 1}     ← {"parameters": 2131712, "versions": {…}}
    → {"batches": [0, 1, 2]}                                 ← {"cpu": 1.21, "wall": 1.25, "losses": […]}

It needs nothing but torch and numpy, for it runs in the peers' environments.
"""

import importlib.metadata
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from orders import take_order, take_over_output
from torch import Tensor, nn

PAD = 0  # in the batches


class Ids(NamedTuple):
    """One batch: B × S and, twice, B × T; what is read is what is written, one place later, behind BOS."""

    source: Tensor
    target_input: Tensor
    target_output: Tensor

    @property
    def target(self) -> Tensor:
        """BOS, the target, EOS, in one row, as some want it: B × (T + 1)."""
        return torch.cat([self.target_input[:, :1], self.target_output], dim=1)

    @property
    def n_tokens(self) -> int:
        return int((self.target_output != PAD).sum())


class Learner(Protocol):
    """A model in training, as the frame knows it."""

    model: nn.Module

    def prepare(self, ids: Ids) -> Any:
        """A batch as this learner takes it; not timed."""

    def step(self, prepared: Any) -> float:
        """Forward, loss, backward, clip, update; the loss per real token."""


class Update:
    """Backward, clip and Adam, alike for every peer: the fused Adam is the fastest that torch has."""

    def __init__(self, model: nn.Module, learning_rate: float) -> None:
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        model.train()

    def __call__(self, loss: Tensor) -> float:
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return loss.item()


def serve(packages: list[str], make: Callable[[Mapping[str, Any]], Learner]) -> None:
    """Answer turns until nobody asks any more; an error is answered by its last line."""
    reply = take_over_output()
    try:
        order = take_order()
        torch.set_num_threads(1)
        torch.manual_seed(1)
        learner = make(order["size"])
        batches = [learner.prepare(ids) for ids in _read(order["batches"])]
        versions = {name: importlib.metadata.version(name) for name in packages}
        parameters = {id(parameter): parameter.numel() for parameter in learner.model.parameters()}
        reply({"parameters": sum(parameters.values()), "versions": {**versions, "torch": torch.__version__}})
        for line in sys.stdin:
            chosen = json.loads(line)["batches"]
            wall, cpu = time.perf_counter(), time.process_time()
            losses = [learner.step(batches[number]) for number in chosen]
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            reply({"cpu": cpu, "wall": wall, "losses": losses})
    except Exception as error:
        traceback.print_exc()
        reply({"error": f"{type(error).__name__}: {error}".strip().splitlines()[-1]})


def _read(path: str) -> list[Ids]:
    with np.load(path) as arrays:
        count = len(arrays.files) // len(Ids._fields)
        return [
            Ids(*(torch.from_numpy(arrays[f"{number}.{field}"]) for field in Ids._fields)) for number in range(count)
        ]
