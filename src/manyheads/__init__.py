"""manyheads: train your own Transformer on your own text, see what every attention head does, ship it.

    import manyheads as mh
    mh.load("runs/quickstart/bundle").predict(["Two cats are sleeping."])

Names are loaded when first used, so that `manyheads --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyheads.bundle import Bundle, load
    from manyheads.decode import DecodeSettings
    from manyheads.errors import ManyheadsError
    from manyheads.model import ModelSettings, Tap, Transformer, attention, attention_weights, gated
    from manyheads.text.tokenizer import Tokenizer

__version__ = "0.1.0"

_HOMES = {
    "Bundle": "manyheads.bundle",
    "DecodeSettings": "manyheads.decode",
    "ManyheadsError": "manyheads.errors",
    "ModelSettings": "manyheads.model",
    "Tap": "manyheads.model",
    "Tokenizer": "manyheads.text.tokenizer",
    "Transformer": "manyheads.model",
    "attention": "manyheads.model",
    "attention_weights": "manyheads.model",
    "gated": "manyheads.model",
    "load": "manyheads.bundle",
}

__all__ = [
    "Bundle",
    "DecodeSettings",
    "ManyheadsError",
    "ModelSettings",
    "Tap",
    "Tokenizer",
    "Transformer",
    "attention",
    "attention_weights",
    "gated",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
