"""The ctranslate2 engine: our weights in CTranslate2's own format, and its greedy search over them.

`exporting.py` says which settings it knows and writes them down; `keeping.py` keeps what was written beside the
bundle; `engine.py` is the engine. The package `ctranslate2` is an extra: nothing here is imported before it is asked
for.
"""

from manyheads.decode.ctranslate2.ctranslate2_engine import CTranslate2Engine, Precision, make_ctranslate2

__all__ = ["CTranslate2Engine", "Precision", "make_ctranslate2"]
