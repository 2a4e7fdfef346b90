"""The native engine: the whole model and its search in one C file, compiled where it runs.

Between two steps of a small model Python and torch cost more than the sums do; here nothing stands between them.
`building.py` compiles engine.c, `packing.py` describes a model to it, `engine.py` calls it, one thread a core.
"""

from manyheads.decode.native.native_engine import NativeEngine, make_native

__all__ = ["NativeEngine", "make_native"]
