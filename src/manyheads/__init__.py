"""manyheads: train your own Transformer on your own text, see what every attention head does, ship it.

    import manyheads as mh
    model = mh.load("runs/quickstart/bundle")
    model.predict(["Two cats are sleeping."])

Names are loaded when first used, so that `manyheads --help` need not wait for torch.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyheads.api import AblatedBundle, OpenBundle, load, trace, train, walk
    from manyheads.bundle import Bundle
    from manyheads.decode import DecodeSettings
    from manyheads.errors import ManyheadsError
    from manyheads.lens.head_pictures import draw_head, draw_overview
    from manyheads.model import ModelSettings, Tap, Transformer, attention, attention_weights, gated
    from manyheads.text.tokenizer import Tokenizer

__version__ = "0.2.0"

_HOMES = {
    "AblatedBundle": "manyheads.api",
    "Bundle": "manyheads.bundle",
    "DecodeSettings": "manyheads.decode",
    "ManyheadsError": "manyheads.errors",
    "ModelSettings": "manyheads.model",
    "OpenBundle": "manyheads.api",
    "Tap": "manyheads.model",
    "Tokenizer": "manyheads.text.tokenizer",
    "Transformer": "manyheads.model",
    "attention": "manyheads.model",
    "attention_weights": "manyheads.model",
    "draw_head": "manyheads.lens.head_pictures",
    "draw_overview": "manyheads.lens.head_pictures",
    "gated": "manyheads.model",
    "load": "manyheads.api",
    "trace": "manyheads.api",
    "train": "manyheads.api",
    "walk": "manyheads.api",
}

__all__ = [
    "AblatedBundle",
    "Bundle",
    "DecodeSettings",
    "ManyheadsError",
    "ModelSettings",
    "OpenBundle",
    "Tap",
    "Tokenizer",
    "Transformer",
    "attention",
    "attention_weights",
    "draw_head",
    "draw_overview",
    "gated",
    "load",
    "trace",
    "train",
    "walk",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


class _Package(ModuleType):
    """Keeps `mh.train` the function: the import system would replace it by the package `manyheads.train`."""

    @property
    def train(self) -> object:
        return import_module("manyheads.api").train

    @train.setter
    def train(self, package: ModuleType) -> None:
        """Ignore the package, which remains importable by its name."""


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
