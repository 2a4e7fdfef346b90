"""`Tap`: an observer that a forward pass passes its intermediate values to.

Names have the form stack.layer.attention.value, such as `encoder.0.self.weights` or `decoder.3.cross.scores`. Each
attention reports `q`, `k`, `v`, `scores` (−∞ at hidden positions), `weights`, `heads` (the output of each head, before
gates and W^O) and `output` (after W^O). Each stack reports its final output as `encoder.hidden` or `decoder.hidden`.
Without a tap, attention runs in the fused path and most of these values are never computed.
"""

from jaxtyping import Bool, Int
from torch import Tensor


class Tap:
    """Stores every value under its name; override `receive` to do something else."""

    def __init__(self) -> None:
        self.values: dict[str, Tensor] = {}

    def begin(self, stack: str, ids: Int[Tensor, "B Q"], visible: Bool[Tensor, "#B 1 #Q K"]) -> None:
        """Called before the encoder or decoder processes `ids`; `visible` is its self-attention mask."""

    def receive(self, name: str, value: Tensor) -> None:
        """Called by the model with each value during the forward pass."""
        self.values[name] = value

    def __getitem__(self, name: str) -> Tensor:
        return self.values[name]
