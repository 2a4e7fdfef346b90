"""A folder with somebody else's model: its config.json and the tensors of its safetensors files.

Tensors are read one at a time from memory-mapped files, so that a model is never in memory twice. Pickles are refused,
and code in the folder is never run.
"""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from manyheads.bounded_files import BoundsError, read_bounded, read_json_object
from manyheads.errors import BundleError
from manyheads.messages import _
from manyheads.model.weights import read_header
from manyheads.settings import shown

CONFIG = "config.json"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_OTHERS = ("*.h5", "*.msgpack", "*.gguf", "*.onnx", "onnx/*.onnx")
_FLOATS = ("F64", "F32", "F16", "BF16")
_MAX_JSON_BYTES = 200_000_000  # of tokenizer.json
_MAX_FAULTS = 20  # listed in one error


def find_folder(path: Path | str) -> Path:
    """The folder with config.json: the given one, or the only snapshot of a folder in the Hub's cache."""
    folder = Path(path)
    if not folder.is_dir():
        raise BundleError(_("{path} does not exist. Give a folder with a config.json and safetensors.", path=folder))
    if (folder / CONFIG).is_file() or (folder / "modules.json").is_file():
        return folder
    snapshots = folder / "snapshots"
    found = sorted(each for each in snapshots.iterdir() if (each / CONFIG).is_file()) if snapshots.is_dir() else []
    if len(found) == 1:
        return found[0]
    if found:
        main = folder / "refs" / "main"
        named = snapshots / main.read_text(encoding="utf-8").strip() if main.is_file() else None
        if named in found:
            return named
        names = ", ".join(str(each) for each in found)
        raise BundleError(_("{folder} has several snapshots. Give one of them: {names}.", folder=folder, names=names))
    raise BundleError(_("{folder} has no {name}: it is not the folder of a model.", folder=folder, name=CONFIG))


class Config:
    """The object in config.json; a value that is missing or of another type is an error that names it."""

    def __init__(self, path: Path, table: Mapping[str, Any], tensors: Container[str] = ()) -> None:
        self.path, self.table, self.tensors = path, table, tensors  # the names of the tensors beside it

    @classmethod
    def read(cls, folder: Path) -> "Config":
        """Read config.json; a model whose code is in its folder is refused.

        What generation_config.json has besides is taken from there: newer folders tell the first token of outputs so.
        """
        table, path = read_json_object(folder / CONFIG, BundleError), folder / "generation_config.json"
        own = read_json_object(path, BundleError) if path.is_file() else {}
        config = cls(folder / CONFIG, own | {name: value for name, value in table.items() if value is not None})
        if config.table.get("auto_map"):
            raise BundleError(
                _(
                    "{path} names code of its own (auto_map), which manyheads never runs. Only known architectures can "
                    "be imported.",
                    path=config.path,
                )
            )
        return config

    def integer(self, *names: str, default: int | None = None) -> int:
        """A whole number of at least 0, under the first of these names that is set."""
        value = self._first(names, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._unexpected(names[0], value, _("a whole number"))
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        """A number, under the first of these names that is set."""
        value = self._first(names, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._unexpected(names[0], value, _("a number"))
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._first((name,), default)
        if not isinstance(value, bool):
            raise self._unexpected(name, value, _("true or false"))
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        """A text, under the first of these names that is set."""
        value = self._first(names, default)
        if not isinstance(value, str):
            raise self._unexpected(names[0], value, _("a text"))
        return value

    def choice(self, *names: str, known: Mapping[str, Any], default: str | None = None) -> Any:
        """What one of the known texts stands for."""
        value = self.text(*names, default=default)
        if value not in known:
            raise self._unexpected(names[0], value, _("one of {known}", known=", ".join(known)))
        return known[value]

    def require(self, name: str, *allowed: Any) -> None:
        """Raise BundleError if a value is set to something else than these."""
        value = self.table.get(name)
        if value is not None and value not in allowed:
            known = ", ".join(json.dumps(each) for each in allowed)
            raise self._unexpected(name, value, _("one of {known}", known=known))

    def _first(self, names: Iterable[str], default: Any) -> Any:
        return next((self.table[name] for name in names if self.table.get(name) is not None), default)

    def _unexpected(self, name: str, value: object, expected: str) -> BundleError:
        return BundleError(
            _(
                "{path}: {name} = {value}; manyheads reads {expected} there.",
                path=self.path,
                name=name,
                value=shown(value),
                expected=expected,
            )
        )


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a folder by name, read when they are asked for."""

    folder: Path
    files: Mapping[str, Path]  # by tensor, under its name in the file
    shapes: Mapping[str, tuple[int, ...]]  # by name
    names: Mapping[str, str]  # the name in the file, by name: old files call a weight gamma and a bias beta

    @classmethod
    def open(cls, folder: Path) -> "Checkpoint":
        """Read the headers of all safetensors files."""
        files: dict[str, Path] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        names: dict[str, str] = {}
        for path in _weight_files(folder):
            for stored, (dtype, shape) in read_header(path, BundleError).items():
                if dtype not in (*_FLOATS, "I64", "I32", "U8", "BOOL"):
                    raise BundleError(
                        _(
                            "{path}: {name} is of type {dtype}. Quantized weights cannot be imported: give the "
                            "original ones.",
                            path=path,
                            name=stored,
                            dtype=dtype,
                        )
                    )
                name = stored.removesuffix("gamma") + "weight" if stored.endswith(".gamma") else stored
                name = name.removesuffix("beta") + "bias" if name.endswith(".beta") else name
                files[stored], shapes[name], names[name] = path, shape, stored
        return cls(folder, files, shapes, names)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def __getitem__(self, name: str) -> Tensor:
        """A tensor as float32."""
        stored = self.names[name]
        tensor: Tensor = self._handles[self.files[stored]].get_tensor(stored)
        return tensor.to(torch.float32)

    @cached_property
    def _handles(self) -> dict[Path, Any]:
        handles: dict[Path, Any] = {path: safe_open(path, framework="pt") for path in {*self.files.values()}}
        return {path: handle.__enter__() for path, handle in handles.items()}

    @property
    def n_numbers(self) -> int:
        """The number of all numbers."""
        return sum(torch.Size(shape).numel() for shape in self.shapes.values())

    def check(self, needed: Mapping[str, tuple[int, ...] | None], is_ignored: Any) -> None:
        """Raise BundleError with every missing, extra or misshaped tensor; a shape of None is any."""
        faults = [_("{name} is missing", name=name) for name in needed if name not in self.shapes]
        faults += [
            _("{name} is unknown", name=name) for name in self.shapes if name not in needed and not is_ignored(name)
        ]
        faults += [
            _("{name} is {shape}, not {expected}", name=name, shape=self.shapes[name], expected=shape)
            for name, shape in needed.items()
            if shape is not None and name in self.shapes and self.shapes[name] != shape
        ]
        if len(faults) > _MAX_FAULTS:
            faults[_MAX_FAULTS:] = [_("and {n_more:,} more", n_more=len(faults) - _MAX_FAULTS)]
        if faults:
            raise BundleError(
                _(
                    "{folder}: the weights do not fit config.json: {faults}.",
                    folder=self.folder,
                    faults=_("; ").join(faults),
                )
            )


def read_json(path: Path) -> dict[str, Any]:
    """Read a large JSON object, such as tokenizer.json."""
    try:
        content = json.loads(read_bounded(path, _MAX_JSON_BYTES))
    except (OSError, ValueError, RecursionError, BoundsError) as error:
        raise BundleError(_("{path} cannot be read: {reason}.", path=path, reason=error)) from None
    if not isinstance(content, dict):
        raise BundleError(_("{path} cannot be read: {reason}.", path=path, reason=_("it is not an object")))
    return content


def _weight_files(folder: Path) -> list[Path]:
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if (folder / _INDEX).is_file():
        parts = read_json(folder / _INDEX).get("weight_map")
        if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts.values()):
            raise BundleError(_("{path} has no weight_map.", path=folder / _INDEX))
        names = sorted({*parts.values()})
        outside = [name for name in names if Path(name).name != name]
        missing = [name for name in names if name not in outside and not (folder / name).is_file()]
        if outside or missing:
            raise BundleError(
                _(
                    "{folder} lacks parts of its weights: {names}. Copy them there too.",
                    folder=folder,
                    names=", ".join([*outside, *missing]),
                )
            )
        return [folder / name for name in names]
    for patterns in (_PICKLES, _OTHERS):
        found = sorted({each for pattern in patterns for each in folder.glob(pattern) if each.is_file()})
        if found and patterns is _PICKLES:
            raise BundleError(
                _(
                    "{path} is a pickle, which could run any code. Convert it where you trust it, with the class in "
                    "config.json: transformers.CLASS.from_pretrained(FOLDER).save_pretrained(OUT).",
                    path=found[0],
                )
            )
        if found:
            raise BundleError(_("{path} cannot be read: only {name} can be imported.", path=found[0], name=_WEIGHTS))
    raise BundleError(_("{folder} has a config.json but no weights: {name} is missing.", folder=folder, name=_WEIGHTS))
