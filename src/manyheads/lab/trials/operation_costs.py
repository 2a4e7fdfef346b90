"""What attention costs: operations of one Transformer layer on n tokens, timed, and their floating-point operations.

Time is processor time of one thread, so that other programs disturb it little.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from manyheads.decode import CachedStepper, UncachedStepper
from manyheads.lab.setup import Setup
from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.model.blocks import DecoderBlock
from manyheads.model.masks import View

WIDTH, FEED_FORWARD_WIDTH, N_HEADS, _VOCAB_SIZE = 64, 256, 4, 32
_LEAST_SECONDS = 0.1  # short operations are repeated for at least this long
_BYTES = 1_000_000


class LargestTensor(TorchDispatchMode):
    """Keeps the size of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_bytes = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and look at its results."""
        result = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() * leaf.element_size() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.n_bytes = max([self.n_bytes, *sizes])
        return result


@dataclass(frozen=True)
class Operation:
    """Something to time, and the part of it whose tensors are largest."""

    run: Callable[[], object]
    run_largest: Callable[[], object]


def operation_cost(setup: Setup, seed: int) -> dict[str, float]:
    """The cost of the operation and the number of tokens that the arm and the condition name."""
    return measure_operation(setup.extra["operation"], setup.extra["n"], seed)


def measure_operation(operation: str, n: int, seed: int) -> dict[str, float]:
    """Processor milliseconds, the largest tensor in MB, and computed GFLOPs of one operation on n tokens."""
    with torch.no_grad():
        made = OPERATIONS[operation](make_cost_model(seed), n, seed)
        milliseconds = 1000 * _time(made.run)
        with LargestTensor() as largest:
            made.run_largest()
        return {
            "milliseconds": milliseconds,
            "megabytes": largest.n_bytes / _BYTES,
            "gflops": count_flops(operation, n) / 1e9,
        }


def count_flops(operation: str, n: int) -> int:
    """Multiplications and additions, counted separately; softmax, norms and the output layer are left out."""
    projections, feed_forward = 8 * WIDTH**2, 4 * WIDTH * FEED_FORWARD_WIDTH  # of one token
    match operation:
        case "explicit" | "fused":
            return projections * n + 4 * WIDTH * n**2
        case "feed-forward":
            return feed_forward * n
        case "cached":  # token t attends to t keys
            return (projections + feed_forward) * n + 4 * WIDTH * sum(range(1, n + 1))
        case _:  # the first t tokens are computed again for every t
            return sum((projections + feed_forward) * t + 4 * WIDTH * t**2 for t in range(1, n + 1))


def make_cost_model(seed: int) -> Transformer:
    """One untrained decoder layer."""
    torch.manual_seed(seed)
    settings = ModelSettings(
        vocab_size=_VOCAB_SIZE,
        shape="decoder",
        width=WIDTH,
        n_decoder_layers=1,
        feed_forward_width=FEED_FORWARD_WIDTH,
        n_heads=N_HEADS,
        norm_placement="pre",
        positions="rotary",
        dropout=0.0,
    )
    return Transformer(settings).eval()


def _time(run: Callable[[], object]) -> float:
    """Seconds of one run: the mean of as many as fill the least time."""
    started, n_runs = time.process_time(), 0
    while True:
        run()
        n_runs += 1
        passed = time.process_time() - started
        if passed >= _LEAST_SECONDS:
            return passed / n_runs


def _attend(model: Transformer, n: int, seed: int, *, is_explicit: bool) -> Operation:
    x = torch.randn(1, n, WIDTH, generator=Generator().manual_seed(seed))
    view = View.bidirectional(torch.ones(1, n, dtype=torch.bool))
    attention = model.attentions()[0]

    def run() -> object:
        return attention(x, x, view, tap=Tap() if is_explicit else None)

    return Operation(run, run)


def _feed_forward(model: Transformer, n: int, seed: int) -> Operation:
    x = torch.randn(1, n, WIDTH, generator=Generator().manual_seed(seed))
    block = model.decoder[0]
    assert isinstance(block, DecoderBlock)

    def run() -> object:
        return block.feed_forward(x)

    return Operation(run, run)


def _generate(model: Transformer, n: int, seed: int, *, is_cached: bool) -> Operation:
    ids = torch.randint(_VOCAB_SIZE, (n, 1), generator=Generator().manual_seed(seed))

    steppers = []

    def run() -> None:
        stepper = (CachedStepper if is_cached else UncachedStepper)(model)
        for token in ids:
            stepper.step(token)
        steppers.append(stepper)

    return Operation(run, lambda: steppers[-1].step(ids[-1]))


OPERATIONS: dict[str, Callable[[Transformer, int, int], Operation]] = {
    "explicit": partial(_attend, is_explicit=True),
    "fused": partial(_attend, is_explicit=False),
    "feed-forward": _feed_forward,
    "cached": partial(_generate, is_cached=True),
    "uncached": partial(_generate, is_cached=False),
}
