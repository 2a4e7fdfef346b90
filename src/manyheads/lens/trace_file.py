"""Trace files: every head's attention weights and norms in one byte each, readable head by head.

    0   8 bytes    "MHTRACE" and a line feed
    8   uint32     version of the format, 2; all numbers are little-endian
    12  uint32     n, the size of the header
    16  32 bytes   SHA-256 of the header
    48  n bytes    the header, JSON in UTF-8
    48 + n …       the maps, one after another

The header has `text`, `answer`, the tokens of `source` and `target` as [text, id, start, end], `last` (such a token or
null), `n_bytes` (the size of all maps together) and `attentions`. Each attention has its `name`, whether its `queries`
and `keys` are the "source" or the "target", and under `weights` and `norms` a list with one entry per head. An entry
has `offset` (the start of its map, from the end of the header), `step` and `sha256` (of its bytes, in hexadecimal).

A map has one byte per pair of positions, row by row: one row per query, one column per key. A byte times `step` is the
value, exact to half a step. For weights half a step is at most 1/510.

In JavaScript, for an ArrayBuffer `file`:

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

from manyheads.bounded_files import parse_json
from manyheads.errors import LensError
from manyheads.lens.heads import Head, check_head
from manyheads.lens.trace import Trace
from manyheads.storage import atomic_write
from manyheads.tasks import ModelInput
from manyheads.text.tokenizer import Token

VERSION = 2  # raise it with every change of the format
_MAGIC = b"MHTRACE\n"
_PREAMBLE = struct.Struct("<8sII32s")
_KINDS = ("weights", "norms")
_MAX_BYTE = 255


@dataclass(frozen=True)
class _Entry:
    """The location of one head's map in the file, and the value of one step."""

    offset: int
    step: float
    sha256: str


@dataclass(frozen=True)
class _Maps:
    """The maps of one attention."""

    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    entries: Mapping[str, Sequence[_Entry]]  # by kind, one per head


@dataclass(frozen=True)
class StoredTrace:
    """A trace on disk. Its tokens are in memory; a map is read when it is requested."""

    path: Path
    model_input: ModelInput
    attentions: Mapping[str, _Maps]
    start: int  # of the maps in the file

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order of a forward pass."""
        return [
            Head(name, number)
            for name, maps in self.attentions.items()
            for number in range(len(maps.entries[_KINDS[0]]))
        ]

    def weights(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """Return the attention weights of one head, exact to half a step."""
        return self._map("weights", head)

    def norms(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """Return ‖α f(x)‖ of one head, exact to half a step."""
        return self._map("norms", head)

    def error(self, kind: str, head: Head | str) -> float:
        """Return the largest possible rounding error of a head's `weights` or `norms`: half a step."""
        return self._find(kind, head)[1].step / 2

    def check(self) -> None:
        """Read every map; raise `LensError` if one is damaged."""
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
            raise _damaged(self.path, f"the {kind} of {head} do not match their checksum")
        steps = np.frombuffer(content, dtype=np.uint8).reshape(shape).astype(np.float32)
        return torch.from_numpy(steps * np.float32(entry.step))

    def _find(self, kind: str, head: Head | str) -> tuple[_Maps, _Entry]:
        head = Head.parse(head) if isinstance(head, str) else head
        check_head(head, {name: len(maps.entries[kind]) for name, maps in self.attentions.items()})
        maps = self.attentions[head.attention]
        return maps, maps.entries[kind][head.number]


def write_trace(trace: Trace, path: Path | str) -> None:
    """Write a trace to a file, atomically."""
    model_input = trace.model_input
    maps: list[bytes] = []
    attentions = []
    offset = 0
    for name, traced in trace.attentions.items():
        stack, _, use = name.split(".")
        table: dict[str, Any] = {
            "name": name,
            "queries": "source" if stack == "encoder" else "target",
            "keys": "source" if stack == "encoder" or use == "cross" else "target",
        } | {kind: [] for kind in _KINDS}
        for number in range(traced.n_heads):
            for kind, values in zip(_KINDS, (traced.weights[number], traced.norms(number)), strict=True):
                content, step = _to_bytes(values, f"{name}/{number}")
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
        "n_bytes": offset,
        "attentions": attentions,
    }
    header = json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()
    preamble = _PREAMBLE.pack(_MAGIC, VERSION, len(header), hashlib.sha256(header).digest())
    atomic_write(Path(path), b"".join([preamble, header, *maps]))


def read_trace(path: Path | str) -> StoredTrace:
    """Open a trace file. The header and the file's size are checked now, each map when it is read."""
    path = Path(path)
    header, file_size = _read_header(path)
    try:
        metadata = parse_json(header)
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
        n_missing = _PREAMBLE.size + len(header) + metadata["n_bytes"] - file_size
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LensError(f"{path}: the header of this trace file is invalid: {error!r}.") from None
    if n_missing:
        raise _damaged(path, f"{n_missing:,} bytes are missing" if n_missing > 0 else f"{-n_missing:,} extra bytes")
    return StoredTrace(path, model_input, attentions, _PREAMBLE.size + len(header))


def _read_header(path: Path) -> tuple[bytes, int]:
    """Return the header and the size of the file; raise `LensError` for another format, version or checksum."""
    try:
        with path.open("rb") as stream:
            preamble = stream.read(_PREAMBLE.size)
            if not preamble.startswith(_MAGIC):
                raise LensError(f"{path} is not a trace file. Give a file written by write_trace.")
            if len(preamble) < _PREAMBLE.size:
                raise _damaged(path, "it ends within its first 48 bytes")
            _, version, n_header, digest = _PREAMBLE.unpack(preamble)
            if version != VERSION:
                raise _unsupported(path, version)
            file_size = path.stat().st_size
            header = stream.read(min(n_header, file_size))
    except OSError as error:
        raise LensError(f"{path} cannot be read ({error.strerror}).") from None
    if hashlib.sha256(header).digest() != digest:
        raise _damaged(path, "the header does not match its checksum")
    return header, file_size


def _to_bytes(values: Float[Tensor, "Q K"], head: str) -> tuple[bytes, float]:
    """Return one byte per value, and the value of one step."""
    array = values.double().numpy()
    largest = float(array.max(initial=0.0))
    if not np.isfinite(array).all():
        raise LensError(f"The attention of {head} contains NaN or infinity and cannot be stored.")
    step = largest / _MAX_BYTE
    steps = np.rint(array / step) if step else np.zeros_like(array)
    return steps.astype(np.uint8).tobytes(), step


def _unsupported(path: Path, version: int) -> LensError:
    if version > VERSION:
        return LensError(
            f"{path}: made by a newer manyheads (trace version {version}; this one reads version {VERSION}). "
            "Upgrade: pip install -U manyheads"
        )
    return LensError(
        f"{path}: made by an older manyheads (trace version {version}; this one reads version {VERSION}). "
        "Trace the text again."
    )


def _damaged(path: Path, how: str) -> LensError:
    return LensError(f"{path} is damaged: {how}. Copy it again, or trace the text again.")
