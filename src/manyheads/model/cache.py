"""Key–value caches: what decoding one token at a time need not compute again."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]


class KeyValueCache:
    """Keys and values of the places already seen. Self-attention's grows by each step's new places."""

    def __init__(self) -> None:
        self.held: KeysValues | None = None

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """All keys and values so far, the newest ones included."""
        k, v = project()
        if self.held is not None:
            k, v = torch.cat([self.held[0], k], dim=2), torch.cat([self.held[1], v], dim=2)
        self.held = (k, v)
        return self.held

    def select(self, rows: Int[Tensor, " B"]) -> None:
        """Keep these rows of the batch, in this order; a row may be taken twice, as beams are."""
        if self.held is not None:
            self.held = (self.held[0][rows], self.held[1][rows])


class FixedCache(KeyValueCache):
    """Cross-attention's: the encoder's output does not change, so its keys and values are made once."""

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """The keys and values, computed at the first call."""
        if self.held is None:
            self.held = project()
        return self.held
