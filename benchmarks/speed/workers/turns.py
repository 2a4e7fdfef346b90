"""Shared code of the training workers: each message is one turn of a few steps.

    → {"size": {…}, "batches": "batches.npz", "core": 1}     ← {"parameters": 2131712, "versions": {…}}
    → {"batches": [0, 1, 2]}                                 ← {"cpu": 1.21, "wall": 1.25, "losses": […]}

It imports only torch and numpy, because it runs in the environments of the peers.
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

PAD = 0  # id in the batches


class Ids(NamedTuple):
    """One batch: B × S, B × T and B × T ids; `target_input` is `target_output` shifted by BOS."""

    source: Tensor
    target_input: Tensor
    target_output: Tensor

    @property
    def target(self) -> Tensor:
        """The target with BOS and EOS in one tensor, B × (T + 1), as some peers expect it."""
        return torch.cat([self.target_input[:, :1], self.target_output], dim=1)

    @property
    def n_tokens(self) -> int:
        return int((self.target_output != PAD).sum())


class Learner(Protocol):
    """The interface of a model in training."""

    model: nn.Module

    def prepare(self, ids: Ids) -> Any:
        """Convert a batch to the format of the model; not timed."""

    def step(self, prepared: Any) -> float:
        """Run forward, loss, backward, clipping and update; return the loss per real token."""


class Update:
    """Backward, clipping and Adam, the same for every peer: fused Adam is the fastest in torch."""

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
    """Answer messages until the input ends; an error is answered with its last line."""
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
