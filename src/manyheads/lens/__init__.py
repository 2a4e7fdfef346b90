"""Look inside a bundle: what every head does, and how much depends on it.

May import run and everything below. `walks`, `answer` and `compress` build on this package.
"""

from manyheads.lens.heads import Head, ablation_gates, find_heads, heads_of
from manyheads.lens.traces.tracing import AttentionTrace, Trace, trace_input
from manyheads.lens.traces.tracing import trace as trace

__all__ = [
    "AttentionTrace",
    "Head",
    "Trace",
    "ablation_gates",
    "find_heads",
    "heads_of",
    "trace",
    "trace_input",
]
