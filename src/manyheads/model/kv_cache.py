"""Key–value caches: the keys and values of earlier positions, kept while decoding one token at a time."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]


class KeyValueCache:
    """The cache of self-attention: every step appends the keys and values of its new positions."""

    def __init__(self) -> None:
        self.keys_values: KeysValues | None = None

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Append the keys and values that `project` computes; return all keys and values so far."""
        k, v = project()
        if self.keys_values is not None:
            k, v = torch.cat([self.keys_values[0], k], dim=2), torch.cat([self.keys_values[1], v], dim=2)
        self.keys_values = (k, v)
        return self.keys_values

    def select(self, rows: Int[Tensor, " B"]) -> None:
        """Keep these rows of the batch, in this order; beam search may keep a row more than once."""
        if self.keys_values is not None:
            self.keys_values = (self.keys_values[0][rows], self.keys_values[1][rows])


class CrossAttentionCache(KeyValueCache):
    """The cache of cross-attention: the encoder output never changes, so its keys and values are computed once."""

    def update(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Return the keys and values; the first call computes them."""
        if self.keys_values is None:
            self.keys_values = project()
        return self.keys_values
