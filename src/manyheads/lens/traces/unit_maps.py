"""`UnitMap`: the attention map of one head between tokens, characters or words, ready to be drawn."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.traces.display_units import Side, Sides, Unit, UnitName, sides_of
from manyheads.lens.traces.head_maps import HeadMaps
from manyheads.lens.traces.tracing import Trace
from manyheads.messages import _
from manyheads.settings import did_you_mean
from manyheads.tasks import ModelInput
from manyheads.text.tokens.tokenizer import METASPACE, Tokenizer

Floats = NDArray[np.float64]
Maps = Trace | HeadMaps  # whatever has the weights and norms of heads
MapKind = Literal["weights", "norms"]
SideName = Literal["source", "target", "written"]

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_MAX_LABEL = 16  # characters

# Q query units, K key units.


@dataclass(frozen=True, eq=False)
class UnitMap:
    """The map of one head, with the units of its rows and columns."""

    head: Head
    kind: MapKind
    unit: UnitName
    query_side: SideName
    key_side: SideName
    queries: tuple[Unit, ...]
    keys: tuple[Unit, ...]
    values: Floats  # Q × K
    masked: NDArray[np.bool_]  # Q × K: the key comes after the query, and the head cannot see it
    n_queries: int  # of the whole text, if only its beginning is in the map
    n_keys: int

    @property
    def is_self(self) -> bool:
        """Whether queries and keys are the same sequence."""
        return self.query_side == self.key_side

    @property
    def largest(self) -> float:
        """The upper end of a scale for these values: a round number that no value exceeds."""
        top = float(self.values.max(initial=0.0))
        if not top > 0.0:
            return 1.0
        step = 10.0 ** np.floor(np.log10(top))
        return float(next(step * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if top <= step * factor * 1.0001))

    def main_links(self, mass: float) -> NDArray[np.bool_]:
        """Return the largest values of each row that together hold this share of the row's sum."""
        order = np.argsort(-self.values, axis=1, kind="stable")
        ordered = np.take_along_axis(self.values, order, axis=1)
        before = np.cumsum(ordered, axis=1) - ordered
        chosen = (before < mass * ordered.sum(axis=1, keepdims=True) - 1e-9) & (ordered > 0.0)
        links = np.zeros_like(chosen)
        np.put_along_axis(links, order, chosen, axis=1)
        return links


@dataclass(frozen=True)
class ShownUnits:
    """The units of a text that pictures show, by side."""

    name: UnitName
    sides: Mapping[SideName, tuple[Unit, ...]]


def shown_units(sides: Sides, name: UnitName) -> ShownUnits:
    """Return the units of this name; raise `LensError` if there is no such unit."""
    if name not in get_args(UnitName):
        raise LensError(
            _(
                "There is no unit {name!r}. {did_you_mean}",
                name=name,
                did_you_mean=did_you_mean(name, get_args(UnitName)),
            )
        )
    by_side: dict[SideName, Side | None] = {"source": sides.source, "target": sides.target, "written": sides.written}
    return ShownUnits(name, {key: readable_units(side, name) for key, side in by_side.items() if side is not None})


def make_unit_map(
    maps: Maps, head: Head | str, kind: MapKind, units: ShownUnits, n_units: int | None = None
) -> UnitMap:
    """Return the map of a head between units, or between the first `n_units` of each side."""
    head = Head.parse(head) if isinstance(head, str) else head
    if kind not in get_args(MapKind):
        raise LensError(
            _(
                "There is no map of {kind!r}. {did_you_mean}",
                kind=kind,
                did_you_mean=did_you_mean(kind, get_args(MapKind)),
            )
        )
    of_tokens = np.asarray(maps.weights(head) if kind == "weights" else maps.norms(head))
    query_side, key_side = side_names(head.attention)
    queries, keys = (units.sides[side][:n_units] for side in (query_side, key_side))
    pool_queries, pool_keys = _shares(queries, is_mean=True), _shares(keys, is_mean=False)
    values = pool_queries @ of_tokens[: pool_queries.shape[1], : pool_keys.shape[1]].astype(np.float64) @ pool_keys.T
    masked = np.zeros(values.shape, dtype=np.bool_)
    if head.attention.startswith("decoder") and query_side == key_side:
        last = np.array([max(position for position, _ in unit.parts) for unit in queries])
        first = np.array([min(position for position, _ in unit.parts) for unit in keys])
        masked = first[None, :] > last[:, None]
    return UnitMap(
        head=head,
        kind=kind,
        unit=units.name,
        query_side=query_side,
        key_side=key_side,
        queries=queries,
        keys=keys,
        values=values,
        masked=masked,
        n_queries=len(units.sides[query_side]),
        n_keys=len(units.sides[key_side]),
    )


def heads_in(maps: Maps) -> list[Head]:
    """Return every head, in the order of a forward pass."""
    if not isinstance(maps, HeadMaps):
        return maps.heads
    return [Head(name, number) for name, of_name in maps.attentions.items() for number in range(of_name.n_heads)]


def side_names(attention: str) -> tuple[SideName, SideName]:
    """Return which sequences are the queries and the keys of an attention."""
    if attention.startswith("encoder"):
        return "source", "source"
    return ("written", "source") if attention.endswith("cross") else ("target", "target")


def sides_of_trace(maps: Maps) -> Sides:
    """Return the sides of a trace, which has its tokens but not its tokenizer."""
    if isinstance(maps, HeadMaps):
        raise TypeError(_("HeadMaps have no tokens: give the sides of the text."))
    return sides_of(maps.model_input, cast(Tokenizer, _SpelledBytes(maps.model_input)))


def readable_units(side: Side, unit: UnitName) -> tuple[Unit, ...]:
    """Return the units of a side; the bytes of one character, which nobody can read, are one unit."""
    merged: list[Unit] = []
    for (kind, start, end), same in groupby(side.units(unit), key=lambda each: (each.kind, each.start, each.end)):
        group = list(same)
        if kind == "byte" and start < end:
            parts = tuple(part for each in group for part in each.parts)
            merged.append(Unit(side.text[start:end], start, end, "text", parts))
        else:
            merged += group
    return tuple(replace(unit, text=_label(unit.text)) for unit in merged)


def _label(text: str) -> str:
    shown = "␣" if not text.strip(METASPACE + " ") else text
    return shown if len(shown) <= _MAX_LABEL else shown[: _MAX_LABEL - 1] + "…"


def _shares(units: Sequence[Unit], *, is_mean: bool) -> Floats:
    """Return units × positions of their tokens: the share of each token in each unit; for a mean, rows sum to 1."""
    shares = np.zeros((len(units), 1 + max(position for unit in units for position, _ in unit.parts)))
    for row, unit in enumerate(units):
        for position, share in unit.parts:
            shares[row, position] = share
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12) if is_mean else shares


class _SpelledBytes:
    """The one thing `sides_of` asks of a tokenizer, from how tokens are spelled."""

    def __init__(self, model_input: ModelInput) -> None:
        tokens = {token.id: token.text for token in (*model_input.source, *model_input.target, *model_input.written)}
        matches = {token_id: _BYTE.fullmatch(text) for token_id, text in tokens.items()}
        self._bytes = {token_id: int(match[1], 16) for token_id, match in matches.items() if match}

    def byte_of(self, token_id: int) -> int | None:
        """Return the byte that a token encodes, or None."""
        return self._bytes.get(token_id)
