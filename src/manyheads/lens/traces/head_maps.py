"""`HeadMaps`: the attention maps of every head for one text, as bytes.

A map holds one byte per weight: 255 √(weight / largest weight of the map), rounded. The square root keeps small
weights, which hold much of the mass of an encoder's rows: with a linear byte, a row of 512 positions loses 13 % of its
mass, with the square root 0.2 %. Maps of short texts are kept as they are, too. The norms ‖α f(x)‖ are the weights
times one number per key, so they need no map of their own.
"""

import math
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.errors import LensError
from manyheads.lens.heads import Head, check_head
from manyheads.lens.roles.head_counts import value_norms
from manyheads.messages import _
from manyheads.model import Tap, Transformer, evaluating
from manyheads.tasks import ModelInput

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

THUMBNAIL = 32  # the largest side of a thumbnail, in pixels
_MAX_BYTE = 255
_MAX_EXACT = 128 * 128  # weights of a map that are kept as they are
_FASTEST, _SMALLEST = 1, 9  # of zlib


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The maps of the heads of one attention."""

    steps: Bytes  # H × Q × K
    exact: Floats | None  # H × Q × K: the weights themselves, if there are few
    scales: Floats  # H: the largest weight of each map
    value_norms: Floats  # H × K: ‖f(x)‖ of each key
    thumbnails: Bytes  # H × at most THUMBNAIL × at most THUMBNAIL: the largest weight of each block, as a byte
    entropies: Floats  # H: the mean over rows, in bits
    distances: Floats  # H: the mean distance between query and key, in positions
    key_means: Floats  # H × K: the mean weight of each key

    @property
    def n_heads(self) -> int:
        """The number of heads."""
        return len(self.steps)


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """The maps of all heads, by the name of their attention."""

    attentions: dict[str, AttentionMaps]

    @property
    def n_bytes(self) -> int:
        """The memory that the maps take."""
        return sum(maps.steps.nbytes for maps in self.attentions.values())

    def weights(self, head: Head) -> Floats:
        """Return the attention weights of one head, Q × K."""
        maps = self._find(head)
        if maps.exact is not None:
            return maps.exact[head.number]
        return decode_map(maps.steps[head.number], float(maps.scales[head.number]))

    def norms(self, head: Head) -> Floats:
        """Return ‖α f(x)‖ of one head, Q × K."""
        return self.weights(head) * self._find(head).value_norms[head.number]

    def deflated(self, head: Head, kind: str = "weights", *, is_for_file: bool = False) -> tuple[bytes, float]:
        """Return a map, compressed with zlib, and its scale; `kind` is "weights" or "norms".

        A map of a short text has four bytes per value: float32, little endian. The others have one.
        """
        if kind not in ("weights", "norms"):
            raise LensError(_("There is no map of {kind}. Ask for weights or norms.", kind=kind))
        maps, level = self._find(head), _SMALLEST if is_for_file else _FASTEST
        if maps.exact is not None:
            values = self.weights(head) if kind == "weights" else self.norms(head)
            return zlib.compress(values.astype("<f4").tobytes(), level), 1.0
        steps, scales = maps.steps[head.number], maps.scales[head.number]
        if kind == "norms":
            (steps,), (scales,) = encode_map(torch.from_numpy(self.norms(head))[None])
        return zlib.compress(steps.tobytes(), level), float(scales)

    def _find(self, head: Head) -> AttentionMaps:
        check_head(head, {name: maps.n_heads for name, maps in self.attentions.items()})
        return self.attentions[head.attention]


def encode_map(weights: Tensor) -> tuple[Bytes, Floats]:
    """Return the bytes H × Q × K of maps, and the scale of each."""
    scales = weights.amax(dim=(1, 2))
    if not bool(torch.isfinite(scales).all()):
        raise LensError(_("An attention map contains NaN or infinity. Check the bundle with manyheads doctor."))
    divisors = scales.clamp(min=torch.finfo(scales.dtype).tiny)[:, None, None]
    steps = (weights / divisors).sqrt_().mul_(_MAX_BYTE).round_().to(torch.uint8)
    return steps.cpu().numpy(), scales.float().cpu().numpy()


def decode_map(steps: Bytes, scale: float) -> Floats:
    """Return the values of a map."""
    return np.square(steps.astype(np.float32) / np.float32(_MAX_BYTE)) * np.float32(scale)


@torch.no_grad()
def head_maps(model: Transformer, model_input: ModelInput) -> HeadMaps:
    """Run one forward pass and return the maps of every head; the weights of one attention are in memory at a time."""
    source, target = (
        torch.tensor([[token.id for token in tokens]], device=model.device) if tokens else None
        for tokens in (model_input.source, model_input.target)
    )
    tap = _MapsTap(model)
    with evaluating(model):
        model.hidden(source, target, tap=tap)
    return HeadMaps(tap.maps)


class _MapsTap(Tap):
    """Keeps the maps of each attention as bytes, as they are computed."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.attentions = {attention.name: attention for attention in model.attentions()}
        self.maps: dict[str, AttentionMaps] = {}
        self.value_norms = torch.zeros(0)

    def receive(self, name: str, value: Tensor) -> None:
        """Receive a named value; `v` comes before `weights`, and the others are ignored."""
        attention, _, what = name.rpartition(".")
        if what == "v":
            self.value_norms = value_norms(self.attentions[attention], value)[0]
        elif what == "weights":
            self.maps[attention] = _attention_maps(
                value[0].float(), self.value_norms.float(), is_cross=attention.endswith("cross")
            )


def _attention_maps(weights: Tensor, norms: Tensor, *, is_cross: bool) -> AttentionMaps:
    steps, scales = encode_map(weights)
    n_heads, n_queries, n_keys = weights.shape
    distances = torch.zeros(n_heads)
    if not is_cross:
        positions = torch.arange(n_keys, device=weights.device, dtype=weights.dtype)
        gaps = (positions[:, None] - positions[None, :]).abs()
        distances = torch.einsum("hqk,qk->h", weights, gaps) / n_queries
    return AttentionMaps(
        steps=steps,
        exact=weights.cpu().numpy() if n_queries * n_keys <= _MAX_EXACT else None,
        scales=scales,
        value_norms=norms.cpu().numpy(),
        thumbnails=_thumbnails(steps, scales),
        entropies=(torch.special.entr(weights).sum((1, 2)) / (n_queries * math.log(2))).cpu().numpy(),
        distances=distances.cpu().numpy(),
        key_means=weights.mean(1).cpu().numpy(),
    )


def _thumbnails(steps: Bytes, scales: Floats) -> Bytes:
    """Return the largest weight of each block of every map, as 255 √weight."""
    _, n_queries, n_keys = steps.shape
    rows, columns = (np.linspace(0, size, min(size, THUMBNAIL) + 1).astype(int)[:-1] for size in (n_queries, n_keys))
    pooled = np.maximum.reduceat(np.maximum.reduceat(steps, rows, axis=1), columns, axis=2)
    return np.rint(pooled * np.sqrt(scales)[:, None, None]).astype(np.uint8)
