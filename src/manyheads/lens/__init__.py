"""Inspect a bundle: what every head does, how much depends on it, and every number it computes.

May import bundle, run and everything below them. `compress` builds on this package; this package never imports it.
"""

from manyheads.lens.attention_walk import Walk
from manyheads.lens.block_walk import BlockWalk, walk
from manyheads.lens.heads import Head, ablation_gates, find_heads, heads_of
from manyheads.lens.toy_model import walk_sentence, worked_example
from manyheads.lens.trace import AttentionTrace, Trace, trace, trace_input
from manyheads.lens.trace_file import StoredTrace, read_trace, write_trace

__all__ = [
    "AttentionTrace",
    "BlockWalk",
    "Head",
    "StoredTrace",
    "Trace",
    "Walk",
    "ablation_gates",
    "find_heads",
    "heads_of",
    "read_trace",
    "trace",
    "trace_input",
    "walk",
    "walk_sentence",
    "worked_example",
    "write_trace",
]
