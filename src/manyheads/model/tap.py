"""`Tap`: an observer given to a forward pass, which receives named values as they are computed.

Names read stack.layer.use.what: `encoder.0.self.weights`, `decoder.3.cross.scores`. Each attention sends
`q`, `k`, `v`, `scores` (hidden places are −∞), `weights` and `heads` (each head's output, before W^O).
Without a tap none of these need exist, and the fast path is taken.
"""

from torch import Tensor


class Tap:
    """Keeps every value it receives under its name; override `receive` to do something else with them."""

    def __init__(self) -> None:
        self.values: dict[str, Tensor] = {}

    def receive(self, name: str, value: Tensor) -> None:
        """Take one named value; called by the model during its forward pass."""
        self.values[name] = value

    def __getitem__(self, name: str) -> Tensor:
        return self.values[name]
