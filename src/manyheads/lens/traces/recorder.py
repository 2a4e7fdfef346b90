"""`Recorder`: a tap that keeps what one sequence attended to, in a forward pass or during a search.

A forward pass computes all positions at once. A search computes them step by step, with KV caches and several beams
side by side. The newest position of a beam sees exactly the positions that the beam consists of, so its mask identifies
them. The recorder uses that to select the rows of any hypothesis afterwards; the search needs no knowledge of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.model import Tap

# H heads, Q positions of the sequence, K key positions, N positions computed in one call, M in all calls so far.


@dataclass(frozen=True)
class _Call:
    """One call of a stack: the ids it computed, their mask, and every recorded value."""

    ids: Int[Tensor, " N"]
    visible: Bool[Tensor, "N M"]
    values: dict[str, Tensor] = field(default_factory=dict)
    # The visible positions of each row, if every row sees equally many, as in a step of beam search. Most positions
    # belong to other beams then, and storing their zeros would fill the memory.
    visible_positions: Int[Tensor, "N L"] | None = None

    @classmethod
    def of(cls, ids: Int[Tensor, " N"], visible: Bool[Tensor, "N M"]) -> "_Call":
        n_visible = visible.sum(1)
        is_sparse = bool((n_visible == n_visible[0]).all()) and int(n_visible[0]) < visible.size(1)
        visible_positions = visible.nonzero()[:, 1].reshape(len(ids), -1) if is_sparse else None
        return cls(ids, visible, visible_positions=visible_positions)


class Recorder(Tap):
    """Keeps every call of the encoder and the decoder for one text."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, list[_Call]] = {"encoder": [], "decoder": []}

    def begin(self, stack: str, ids: Int[Tensor, "1 N"], visible: Bool[Tensor, "1 1 #N M"]) -> None:
        """Start a call that computes these ids under this mask."""
        self._calls[stack].append(_Call.of(ids[0], visible[0, 0].expand(ids.size(1), -1)))

    def receive(self, name: str, value: Tensor) -> None:
        """Keep one named value of the current call."""
        stack, rest = name.split(".", 1)
        calls = self._calls[stack]
        value = value[0]
        if rest.endswith((".k", ".v")) and len(calls) > 1:  # the new cache contains the old one
            calls[-2].values.pop(rest, None)
        if rest.endswith(("self.weights", "self.scores")) and calls[-1].visible_positions is not None:
            value = value.gather(-1, calls[-1].visible_positions.expand(len(value), -1, -1))
        calls[-1].values[rest] = value

    def n_calls(self, stack: str) -> int:
        """Return how many calls of this stack were recorded."""
        return len(self._calls[stack])

    def along(self, stack: str, ids: Sequence[int]) -> "RecordedPath":
        """Return what was computed for this sequence of ids.

        Raises `LookupError` if the stack has not read it.
        """
        calls = self._calls[stack]
        all_ids = torch.cat([call.ids for call in calls])
        sequence = torch.tensor(ids, device=all_ids.device)
        for call in reversed(calls):
            for row in (call.visible.sum(1) == len(sequence)).nonzero().flatten().tolist():
                positions = call.visible[row].nonzero().flatten()
                if torch.equal(all_ids[positions], sequence):
                    return RecordedPath(calls, positions)
        raise LookupError(f"The {stack} has not read these ids: {list(ids)}.")


class RecordedPath:
    """The recorded values of one sequence: those of its positions among all that were computed."""

    def __init__(self, calls: Sequence[_Call], positions: Int[Tensor, " Q"]) -> None:
        self._positions = positions
        self._last = calls[-1]
        # Of each call: its rows that belong to the sequence, and their positions in the sequence.
        self._parts: list[tuple[_Call, Tensor, Tensor]] = []
        start = 0
        for call in calls:
            is_here = (positions >= start) & (positions < start + len(call.ids))
            if is_here.any():
                self._parts.append((call, positions[is_here] - start, is_here.nonzero().flatten()))
            start += len(call.ids)
        # A forward pass computes the whole sequence in one call, so there is nothing to assemble.
        self._is_one_call = len(self._parts) == 1 and len(self._parts[0][0].ids) == len(positions) == start

    def rows(self, name: str) -> Float[Tensor, "*H Q E"]:
        """Return a value with one vector per position: `0.self.q`, `0.cross.weights`, `hidden`."""
        if self._is_one_call:
            return self._last.values[name].cpu()
        return torch.cat([call.values[name][..., rows, :] for call, rows, _ in self._parts], dim=-2).cpu()

    def pairs(self, name: str, masked: float) -> Float[Tensor, "H Q Q"]:
        """Return a value of each pair of positions; `masked` is the value of pairs that the mask hides."""
        if self._is_one_call:
            return self._last.values[name].cpu()
        first, size = self._parts[0][0].values[name], len(self._positions)
        pairs = first.new_full((first.size(0), size, size), masked)
        for call, rows, positions in self._parts:
            value = call.values[name][:, rows]
            if call.visible_positions is None:
                value = value[..., self._positions[self._positions < call.visible.size(1)]]
            pairs[:, positions, : value.size(-1)] = value
        return pairs.cpu()

    def keys(self, name: str) -> Float[Tensor, "H Q D"]:
        """Return the keys or values of the sequence itself: `0.self.k`, `0.self.v`."""
        value = self._last.values[name]
        return (value if self._is_one_call else value[:, self._positions]).cpu()

    def source_keys(self, name: str) -> Float[Tensor, "H K D"]:
        """Return the keys or values of the source, in cross-attention: `0.cross.k`, `0.cross.v`."""
        return self._last.values[name].cpu()
