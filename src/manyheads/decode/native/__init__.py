"""The native engine: the whole model and its search in C, in one shared library.

Between two steps of a small model, Python and PyTorch take more time than the arithmetic; the native engine runs all
steps in one call. `loading.py` and `compilation.py` find or compile the library, `model_packing.py` passes a
model to it, and `native_engine.py` calls it in one thread per core. Start reading the C sources at engine.c.
"""

from manyheads.decode.native.native_engine import NativeEngine, make_native

__all__ = ["NativeEngine", "make_native"]
