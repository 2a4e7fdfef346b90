"""Key–value caches: what decoding one token at a time need not compute again."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]


class KeyValueCache:
    """Keys and values of the positions already seen. Self-attention's grows by each step's new positions."""

    def __init__(self) -> None:
        self.keys_values: KeysValues | None = None

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """All keys and values so far, the newest ones included."""
        k, v = project()
        if self.keys_values is not None:
            k, v = torch.cat([self.keys_values[0], k], dim=2), torch.cat([self.keys_values[1], v], dim=2)
        self.keys_values = (k, v)
        return self.keys_values

    def select(self, rows: Int[Tensor, " B"]) -> None:
        """Keep these rows of the batch, in this order; a row may be taken twice, as beams are."""
        if self.keys_values is not None:
            self.keys_values = (self.keys_values[0][rows], self.keys_values[1][rows])


class CrossAttentionCache(KeyValueCache):
    """Cross-attention's: the encoder's output does not change, so its keys and values are made once."""

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """The keys and values, computed at the first call."""
        if self.keys_values is None:
            self.keys_values = project()
        return self.keys_values
