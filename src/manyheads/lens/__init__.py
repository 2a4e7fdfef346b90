"""The lens room: look inside a bundle. What every head does, how much depends on it, and the model without it.

May import bundle, recipe and everything below them; its siblings never.
"""

from manyheads.lens.gating import gated
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.lens.trace import Attended, Trace, trace, trace_reading

__all__ = ["Attended", "Head", "Trace", "find_heads", "gated", "heads_of", "trace", "trace_reading"]
