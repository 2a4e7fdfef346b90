"""manyheads: train your own Transformer on your own text, see what every attention head does, ship it.

    import manyheads as mh
    model = mh.load("runs/quickstart/bundle")
    model.predict(["Two cats are sleeping."])

Names are loaded when first used, so that `manyheads --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyheads.api import AblatedBundle, InspectableBundle, init, load, trace, train, walk
    from manyheads.bundle import Bundle
    from manyheads.decode import DecodeSettings
    from manyheads.errors import ManyheadsError
    from manyheads.lens.pictures.head_pictures import draw_head, draw_overview
    from manyheads.model import ModelSettings, Tap, Transformer, attention, attention_weights, gated
    from manyheads.text.tokens.tokenizer import Tokenizer

__version__ = "0.2.0"

_HOMES = {
    "AblatedBundle": "manyheads.api",
    "Bundle": "manyheads.bundle",
    "DecodeSettings": "manyheads.decode",
    "InspectableBundle": "manyheads.api",
    "ManyheadsError": "manyheads.errors",
    "ModelSettings": "manyheads.model",
    "Tap": "manyheads.model",
    "Tokenizer": "manyheads.text.tokens.tokenizer",
    "Transformer": "manyheads.model",
    "attention": "manyheads.model",
    "attention_weights": "manyheads.model",
    "draw_head": "manyheads.lens.pictures.head_pictures",
    "draw_overview": "manyheads.lens.pictures.head_pictures",
    "embed": "manyheads.api",
    "from_huggingface": "manyheads.api",
    "gated": "manyheads.model",
    "init": "manyheads.api",
    "load": "manyheads.api",
    "trace": "manyheads.api",
    "train": "manyheads.api",
    "walk": "manyheads.api",
}
_RENAMED = {"OpenBundle": "InspectableBundle"}  # names of 0.2

__all__ = [
    "AblatedBundle",
    "Bundle",
    "DecodeSettings",
    "InspectableBundle",
    "ManyheadsError",
    "ModelSettings",
    "Tap",
    "Tokenizer",
    "Transformer",
    "attention",
    "attention_weights",
    "draw_head",
    "draw_overview",
    "embed",
    "from_huggingface",
    "gated",
    "init",
    "load",
    "trace",
    "train",
    "walk",
]


def __getattr__(name: str) -> object:
    name = _RENAMED.get(name, name)
    if name not in _HOMES:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
