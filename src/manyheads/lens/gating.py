"""`gated`: a model some of whose heads speak louder, softer or not at all, in whatever its task does with it.

Each head's output is scaled just before W^O, by hooks: so a task's own loss, look, score and predict work unchanged.
Ablation (a gate of 0), gradient importance (gates that want a gradient) and learned gates are all this one mechanism.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.lens.heads import Head
from manyheads.model import MultiHeadAttention, Transformer
from manyheads.settings import did_you_mean

Gate = Float[Tensor, " H"] | Float[Tensor, "B H"]
GateMaker = Callable[[int], Float[Tensor, "B H"]]  # is told how many rows a pass has; called anew for every pass


@contextmanager
def gated(model: Transformer, gates: Mapping[str, Gate | GateMaker]) -> Iterator[None]:
    """For a while, heads of these attentions are scaled: by one number each, or by one for each row of a batch."""
    attentions = {attention.name: attention for attention in model.attentions()}
    for name, gate in gates.items():
        if name not in attentions:
            raise ValueError(f"There is no attention {name} to gate. {did_you_mean(name, attentions)}")
        if isinstance(gate, Tensor):
            _check(attentions[name], gate)
    with ExitStack() as stack:
        for name, gate in gates.items():
            hook = _Scaling(attentions[name], gate)
            stack.callback(attentions[name].output.register_forward_pre_hook(hook).remove)
        yield


def ablation_gates(model: Transformer, heads: Iterable[Head]) -> dict[str, Tensor]:
    """The gates that leave these heads out; find them with `find_heads`, which says what is not there."""
    device = model.output.weight.device
    n_heads = {attention.name: attention.heads.n_heads for attention in model.attentions()}
    gates: dict[str, Tensor] = {}
    for head in heads:
        gates.setdefault(head.attention, torch.ones(n_heads[head.attention], device=device))[head.number] = 0.0
    return gates


class _Scaling:
    """What happens to Concat(head_1 … head_h) on its way into W^O."""

    def __init__(self, attention: MultiHeadAttention, gate: Gate | GateMaker) -> None:
        self.attention = attention
        self.gate = gate

    def __call__(self, module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        heads: Float[Tensor, "B Q HE"] = given[0]
        gate = self.gate if isinstance(self.gate, Tensor) else self.gate(len(heads))
        _check(self.attention, gate)
        by_head = heads.unflatten(-1, (self.attention.heads.n_heads, -1))
        return ((by_head * gate.reshape(-1, 1, gate.size(-1), 1)).flatten(-2),)


def _check(attention: MultiHeadAttention, gate: Tensor) -> None:
    """A gate that broadcasts would quietly measure something else."""
    n_heads = attention.heads.n_heads
    if gate.dim() not in (1, 2) or gate.size(-1) != n_heads:
        raise ValueError(f"{attention.name} needs {n_heads} gates, one a head, not {list(gate.shape)}.")
