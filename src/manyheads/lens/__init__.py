"""The lens room: look inside a bundle. What every head does, how much depends on it, and the model without it.

May import bundle, recipe and everything below them; its siblings never.
"""

from manyheads.lens.gating import gated
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.lens.stored import StoredTrace, read_trace, write_trace
from manyheads.lens.trace import Attended, Trace, trace, trace_reading
from manyheads.lens.walk import Walk, walk

__all__ = [
    "Attended",
    "Head",
    "StoredTrace",
    "Trace",
    "Walk",
    "find_heads",
    "gated",
    "heads_of",
    "read_trace",
    "trace",
    "trace_reading",
    "walk",
    "write_trace",
]
