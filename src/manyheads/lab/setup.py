"""`Setup`: everything that one trial of an experiment uses, apart from the seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import Tensor, nn

from manyheads.lab.convergence import Convergence
from manyheads.lab.lab_tasks import LabTask, Lookup
from manyheads.model import smoothed_cross_entropy


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The model, the task and the training of one trial."""

    model: Mapping[str, Any] = field(default_factory=dict)  # fields of ModelSettings; vocab_size and shape: the task's
    task: LabTask = field(default_factory=Lookup)
    test_task: LabTask | None = None  # what the trained model is tested on; default: `task`
    steps: int = 400  # with `convergence`: at most
    n_rows: int = 64  # sequences per batch
    learning_rate: float = 3e-3
    warmup: int = 50
    schedule: str = "cosine"
    clip_norm: float = 1.0
    weight_decay: float = 0.0
    smoothing: float = 0.0
    loss: Callable[[Tensor, Tensor, float], Tensor] = smoothed_cross_entropy  # of logits, expected ids, smoothing
    # A change of the model that ModelSettings does not offer, or another model altogether.
    alter: Callable[[nn.Module], nn.Module] | None = None
    # A change of the initial weights.
    start: Callable[[nn.Module], None] | None = None
    convergence: Convergence | None = None  # when training ends; None: after `steps`
    # Values for the trial function of a question, such as which softmax to use.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, changes: Mapping[str, Any]) -> "Setup":
        """A copy with these changes; "model.n_heads" changes a field of the model, "extra.mask" an extra value."""
        own = {key: value for key, value in changes.items() if "." not in key}
        for group in ("model", "extra"):
            inner = {key.removeprefix(f"{group}."): v for key, v in changes.items() if key.startswith(f"{group}.")}
            if inner:
                own[group] = {**getattr(self, group), **inner}
        unknown = [key for key in own if key not in {field.name for field in fields(self)}]
        if unknown:
            raise KeyError(f"Setup has no field {unknown[0]!r}.")
        return replace(self, **own)
