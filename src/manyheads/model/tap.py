"""`Tap`: an observer given to a forward pass, which receives named values as they are computed.

Names read stack.layer.use.what: `encoder.0.self.weights`, `decoder.3.cross.scores`. Each attention sends
`q`, `k`, `v`, `scores` (hidden positions are −∞), `weights`, `heads` (each head's output, before W^O) and `output`
(of all heads, after W^O). What a stack comes to in the end is `encoder.hidden`, `decoder.hidden`.
Without a tap none of these need exist, and the fused path is taken.
"""

from jaxtyping import Bool, Int
from torch import Tensor


class Tap:
    """Keeps every value it receives under its name; override `receive` to do something else with them."""

    def __init__(self) -> None:
        self.values: dict[str, Tensor] = {}

    def begin(self, stack: str, ids: Int[Tensor, "B Q"], visible: Bool[Tensor, "#B 1 #Q K"]) -> None:
        """Called when the encoder or the decoder begins to compute these positions; of all K so far, each sees these."""

    def receive(self, name: str, value: Tensor) -> None:
        """Take one named value; called by the model during its forward pass."""
        self.values[name] = value

    def __getitem__(self, name: str) -> Tensor:
        return self.values[name]
