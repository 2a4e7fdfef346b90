"""One forward pass over one text; and what it comes to where nobody looks: by torch's kernel, seen only at its ends."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model import MultiHeadAttention, Tap, Transformer, evaluating
from manyheads.tasks import ModelInput

# H heads, Q query places, W width, E width of a head's value.


@dataclass(frozen=True, eq=False)
class FusedOutputs:
    """The two ends of W^O in every attention, by name, and what each stack comes to."""

    heads: dict[str, Float[Tensor, "H Q E"]] = field(default_factory=dict)
    outputs: dict[str, Float[Tensor, "Q W"]] = field(default_factory=dict)
    hidden: dict[str, Float[Tensor, "Q W"]] = field(default_factory=dict)


def run(model: Transformer, model_input: ModelInput, tap: Tap | None = None) -> None:
    """One forward pass over a text alone, without dropout or gradients."""
    device = model.device
    source, target = (
        torch.tensor([[token.id for token in tokens]], device=device) if tokens else None
        for tokens in (model_input.source, model_input.target)
    )
    with evaluating(model):
        model.hidden(source, target, tap=tap)


def run_fused(model: Transformer, model_input: ModelInput) -> FusedOutputs:
    """The same as it is computed for any user, and what it came to."""
    found = FusedOutputs()
    with ExitStack() as hooks:

        def note(module: nn.Module, values: dict[str, Tensor], name: str) -> None:
            handle = module.register_forward_hook(lambda _, args, output: values.update({name: output[0].cpu()}))
            hooks.callback(handle.remove)

        for attention in model.attentions():
            note(attention, found.outputs, attention.name)
            handle = attention.output.register_forward_hook(_noting_heads(attention, found.heads))
            hooks.callback(handle.remove)
        for stack in ("encoder", "decoder"):
            if hasattr(model, f"{stack}_norm"):
                note(getattr(model, f"{stack}_norm"), found.hidden, stack)
        run(model, model_input)
    return found


def _noting_heads(
    attention: MultiHeadAttention, heads: dict[str, Tensor]
) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
    def note(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        (joined,) = args  # Concat(head_1 … head_h)
        shape = (attention.heads.n_heads, attention.heads.value_width)
        heads[attention.name] = joined[0].unflatten(-1, shape).transpose(0, 1).cpu()

    return note
