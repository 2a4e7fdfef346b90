"""The lens room: look inside a bundle. What every head does, how much depends on it, and the model without it.

May import bundle, recipe and everything below them; its siblings never.
"""

from manyheads.lens.attention_walk import Walk, walk
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.lens.trace import AttentionTrace, Trace, trace, trace_input
from manyheads.lens.trace_file import StoredTrace, read_trace, write_trace

__all__ = [
    "AttentionTrace",
    "Head",
    "StoredTrace",
    "Trace",
    "Walk",
    "find_heads",
    "heads_of",
    "read_trace",
    "trace",
    "trace_input",
    "walk",
    "write_trace",
]
