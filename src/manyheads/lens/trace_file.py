"""A trace as one file: every head's weights and norms in a byte each, read head by head.

    0   8 bytes    MHTRACE and a line feed
    8   uint32     version of this form, 1; all numbers little-endian
    12  uint32     n, the size of the header
    16  32 bytes   SHA-256 of the header
    48  n bytes    the header, JSON in UTF-8
    48 + n …       the maps, one after another

The header has `text`, `answer`, the tokens of `source` and `target` as [text, id, start, end], `last` (such a token, or
null), `size` (of all the maps together), and `attentions`: of each its `name`, whether its `queries` and its `keys` are
the "source" or the "target", and under `weights` and `norms` a list with one entry for each head. An entry has `offset`
(where its map begins, counted from the end of the header), `step` and `sha256` (of its bytes, in hexadecimal).

A map has one byte for each pair, row by row, as many rows as queries and columns as keys. A byte times `step` is the
number that was meant, at most half a step away from it: of weights never more than 1/510.

In JavaScript, of an ArrayBuffer `file`:

    const n = new DataView(file).getUint32(12, true)
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 48, n)))
    const bytes = new Uint8Array(file, 48 + n + entry.offset, queries.length * keys.length)
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.trace import Trace
from manyheads.settings import did_you_mean
from manyheads.storage import atomic_write
from manyheads.tasks import ModelInput
from manyheads.text.tokenizer import Token

VERSION = 1  # raised when an older manyheads could no longer read what this one writes
_MAGIC = b"MHTRACE\n"
_START = struct.Struct("<8sII32s")
_KINDS = ("weights", "norms")
_MOST = 255  # that a byte holds


@dataclass(frozen=True)
class _Entry:
    """Where one head's map stands in the file, and what its bytes mean."""

    offset: int
    step: float
    sha256: str


@dataclass(frozen=True)
class _Maps:
    """The maps of one attention."""

    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    entries: Mapping[str, Sequence[_Entry]]  # by kind, of each head


@dataclass(frozen=True)
class StoredTrace:
    """A trace on disk: its tokens are known, a map is read when it is asked for."""

    path: Path
    model_input: ModelInput
    attentions: Mapping[str, _Maps]
    start: int  # of the maps in the file

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order a forward pass meets them."""
        return [
            Head(name, number)
            for name, maps in self.attentions.items()
            for number in range(len(maps.entries[_KINDS[0]]))
        ]

    def weights(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """How much one head looks from each query at each key, within half a step."""
        return self._map("weights", head)

    def norms(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """How long the vector is that each query gets from each key through one head, within half a step."""
        return self._map("norms", head)

    def error(self, kind: str, head: Head | str) -> float:
        """The most that any number of a head's `weights` or `norms` can be away from what was traced: half a step."""
        return self._find(kind, head)[1].step / 2

    def check(self) -> None:
        """Read everything, so that any damage is found."""
        for head in self.heads:
            for kind in _KINDS:
                self._map(kind, head)

    def _map(self, kind: str, head: Head | str) -> Float[Tensor, "Q K"]:
        maps, entry = self._find(kind, head)
        shape = len(maps.queries), len(maps.keys)
        with self.path.open("rb") as stream:
            stream.seek(self.start + entry.offset)
            content = stream.read(shape[0] * shape[1])
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise _damaged(self.path, f"the {kind} of {head} are not what was written")
        steps = np.frombuffer(content, dtype=np.uint8).reshape(shape).astype(np.float32)
        return torch.from_numpy(steps * np.float32(entry.step))

    def _find(self, kind: str, head: Head | str) -> tuple[_Maps, _Entry]:
        wanted = Head.parse(head) if isinstance(head, str) else head
        if wanted.attention not in self.attentions:
            raise LensError(f"There is no head {wanted}. {did_you_mean(wanted.attention, self.attentions)}")
        maps = self.attentions[wanted.attention]
        entries = maps.entries[kind]
        if not 0 <= wanted.number < len(entries):
            raise LensError(f"There is no head {wanted}: {wanted.attention} has heads 0 to {len(entries) - 1}.")
        return maps, entries[wanted.number]


def write_trace(trace: Trace, path: Path | str) -> None:
    """Write a trace, whole or not at all."""
    model_input = trace.model_input
    maps: list[bytes] = []
    attentions = []
    offset = 0
    for name, attended in trace.attentions.items():
        stack, _, use = name.split(".")
        table: dict[str, Any] = {
            "name": name,
            "queries": "source" if stack == "encoder" else "target",
            "keys": "source" if stack == "encoder" or use == "cross" else "target",
        } | {kind: [] for kind in _KINDS}
        for number in range(attended.n_heads):
            for kind, values in zip(_KINDS, (attended.weights[number], attended.norms(number)), strict=True):
                content, step = _quantise(values, f"{name}/{number}")
                table[kind].append({"offset": offset, "step": step, "sha256": hashlib.sha256(content).hexdigest()})
                maps.append(content)
                offset += len(content)
        attentions.append(table)
    metadata = {
        "text": model_input.text,
        "answer": model_input.answer,
        "source": [astuple(token) for token in model_input.source],
        "target": [astuple(token) for token in model_input.target],
        "last": None if model_input.last is None else astuple(model_input.last),
        "size": offset,
        "attentions": attentions,
    }
    header = json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()
    start = _START.pack(_MAGIC, VERSION, len(header), hashlib.sha256(header).digest())
    atomic_write(Path(path), b"".join([start, header, *maps]))


def read_trace(path: Path | str) -> StoredTrace:
    """Open a trace: its header is read and checked, and that nothing is missing; maps are checked as they are read."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(_START.size)
            if not start.startswith(_MAGIC):
                raise LensError(f"{path} is not a trace. Give a file that write_trace has made.")
            if len(start) < _START.size:
                raise _damaged(path, "it ends in its first bytes")
            _, version, size, digest = _START.unpack(start)
            if version > VERSION:
                raise LensError(
                    f"{path}: made by a newer manyheads (trace version {version}; this one reads up to {VERSION}). "
                    "Upgrade: pip install -U manyheads"
                )
            header = stream.read(size)
        whole = path.stat().st_size
    except OSError as error:
        raise LensError(f"{path} cannot be read ({error.strerror}).") from None
    if hashlib.sha256(header).digest() != digest:
        raise _damaged(path, "its header is not what was written")
    try:
        metadata = json.loads(header)
        source, target = (tuple(Token(*token) for token in metadata[side]) for side in ("source", "target"))
        last = None if metadata["last"] is None else Token(*metadata["last"])
        model_input = ModelInput(metadata["text"], metadata["answer"], source, target, last)
        sides = {"source": model_input.source, "target": model_input.target}
        attentions = {
            table["name"]: _Maps(
                sides[table["queries"]],
                sides[table["keys"]],
                {kind: [_Entry(**entry) for entry in table[kind]] for kind in _KINDS},
            )
            for table in metadata["attentions"]
        }
        missing = _START.size + size + metadata["size"] - whole
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LensError(f"{path}: its header is not as this manyheads writes it: {error!r}.") from None
    if missing:
        told = f"{missing:,} bytes are missing" if missing > 0 else f"it has {-missing:,} bytes too many"
        raise _damaged(path, told)
    return StoredTrace(path, model_input, attentions, _START.size + size)


def _quantise(values: Float[Tensor, "Q K"], head: str) -> tuple[bytes, float]:
    """A byte for each value, and what one step of it is worth."""
    array = values.double().numpy()
    most = float(array.max(initial=0.0))
    if not np.isfinite(array).all():
        raise LensError(f"What {head} did is not a number, and cannot be stored.")
    step = most / _MOST
    steps = np.rint(array / step) if step else np.zeros_like(array)
    return steps.astype(np.uint8).tobytes(), step


def _damaged(path: Path, how: str) -> LensError:
    return LensError(f"{path} is damaged: {how}. Copy it again, or trace the text anew.")
