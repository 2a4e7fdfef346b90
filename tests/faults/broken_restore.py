"""`python -m faults.broken_restore PART train …`: the command with a restore that forgets one part of the state.

A negative control: the comparison of `make kills` must find a difference for each part.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from manyheads.training import Trainer

State = tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor], dict[str, Tensor] | None]


def forget_moments(progress: dict[str, Any], weights: Any, moments: dict[str, Tensor], ema: Any) -> State:
    zeros = {name: value * 0 if name.startswith("exp_avg") else value for name, value in moments.items()}
    return progress, weights, zeros, ema


def forget_ema(progress: dict[str, Any], weights: dict[str, Tensor], moments: Any, ema: Any) -> State:
    return progress, weights, moments, weights


def forget_position(progress: dict[str, Any], weights: Any, moments: Any, ema: Any) -> State:
    return progress | {"position": 0 if progress["position"] else 1}, weights, moments, ema


def forget_epoch(progress: dict[str, Any], weights: Any, moments: Any, ema: Any) -> State:
    return progress | {"epoch": progress["epoch"] + 1}, weights, moments, ema


PARTS: Mapping[str, Callable[..., State]] = {
    "moments": forget_moments,
    "ema": forget_ema,
    "position": forget_position,
    "epoch": forget_epoch,
}


def forget(part: str) -> None:
    """Make every `Trainer` of this process forget this part when it restores a checkpoint."""
    restore = Trainer.restore

    def broken(trainer: Trainer[Any], progress: Any, weights: Any, moments: Any, ema: Any = None) -> None:
        restore(trainer, *PARTS[part](progress, weights, moments, ema))

    Trainer.restore = broken  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    from manyheads.cli import main

    forget(sys.argv.pop(1))
    main()
