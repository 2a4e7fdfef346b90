"""`gated`: scale the outputs of chosen heads for the length of a `with` block.

    with gated(model, {"decoder.0.cross": torch.tensor([0.0, 1.0, 1.0, 1.0])}):  # ablates head 0
        logits = model(source, target)

`MultiHeadAttention` multiplies the output of each head by its gate just before W^O. A gate of 0 ablates the head, a
gate that requires a gradient measures its importance, and a learned gate selects the heads to prune. A replacement
stands in for what a gate takes away: the head's mean output, or its output at another text.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from torch import Tensor

from manyheads.messages import _
from manyheads.model.attention import Gate, GateFactory, Replacement, check_gate
from manyheads.model.transformer import Transformer
from manyheads.settings import did_you_mean


@contextmanager
def gated(
    model: Transformer,
    gates: Mapping[str, Gate | GateFactory],
    replacements: Mapping[str, Replacement] = MappingProxyType({}),
) -> Iterator[None]:
    """Scale heads by these gates, keyed by the name of their attention; other attentions are not affected.

    A head with the gate g has the output g × head + (1 − g) × replacement; without a replacement, g × head. Blocks can
    be nested: the gates of the inner block replace those of the outer block for the attentions it names.
    """
    attentions = {attention.name: attention for attention in model.attentions()}
    for name, gate in gates.items():
        if name not in attentions:
            hint = did_you_mean(name, attentions)
            raise ValueError(_("There is no attention {name} to gate. {hint}", name=name, hint=hint))
        if isinstance(gate, Tensor):
            check_gate(gate, attentions[name].heads.n_heads, name)
    outer = {name: (attentions[name].gate, attentions[name].replacement) for name in gates}
    try:
        for name, gate in gates.items():
            attentions[name].gate, attentions[name].replacement = gate, replacements.get(name)
        yield
    finally:
        for name, before in outer.items():
            attentions[name].gate, attentions[name].replacement = before
