"""The lens room: look inside a bundle. What every head does, how much depends on it, and the model without it.

May import bundle, recipe and everything below them; its siblings never.
"""

from manyheads.lens.gating import gated
from manyheads.lens.heads import Head, find_heads, heads_of

__all__ = ["Head", "find_heads", "gated", "heads_of"]
