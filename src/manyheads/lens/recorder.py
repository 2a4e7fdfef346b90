"""`Recorder`: a tap that keeps what was attended to along one line of descent, however it was computed.

A forward pass computes all places at once. A generation computes them step by step, with caches, several beams beside
one another; which places a beam descends from is what its newest place sees. So of all that was computed, the rows of
any text that was written can be found again, and nothing that searches has to know that it is watched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.model import Tap

# H heads, Q places of the text, K places it looks at, N places computed in one call, M in all calls so far.


@dataclass(frozen=True)
class _Call:
    """One call of a stack: the places it computed, what each of them sees, and all its values."""

    ids: Int[Tensor, " N"]
    visible: Bool[Tensor, "N M"]
    values: dict[str, Tensor] = field(default_factory=dict)
    # Of each row the places it sees, where all see equally many, as in a step of a search: with beams, most of the
    # places so far are of others, and would fill the memory with zeros.
    seen: Int[Tensor, "N L"] | None = None

    @classmethod
    def of(cls, ids: Int[Tensor, " N"], visible: Bool[Tensor, "N M"]) -> "_Call":
        """A call that is about to compute these places."""
        sizes = visible.sum(1)
        is_sparse = bool((sizes == sizes[0]).all()) and int(sizes[0]) < visible.size(1)
        seen = visible.nonzero()[:, 1].reshape(len(ids), -1) if is_sparse else None
        return cls(ids, visible, seen=seen)


class Recorder(Tap):
    """Keeps the calls of each stack, for one text at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, list[_Call]] = {"encoder": [], "decoder": []}

    def begin(self, stack: str, ids: Int[Tensor, "1 N"], visible: Bool[Tensor, "1 1 #N M"]) -> None:
        """Take the places that are computed next, and what they see."""
        self._calls[stack].append(_Call.of(ids[0], visible[0, 0].expand(ids.size(1), -1)))

    def receive(self, name: str, value: Tensor) -> None:
        """Take one named value."""
        stack, rest = name.split(".", 1)
        calls = self._calls[stack]
        value = value[0]
        if rest.endswith((".k", ".v")) and len(calls) > 1:  # the newest hold the older ones too
            calls[-2].values.pop(rest, None)
        if rest.endswith(("self.weights", "self.scores")) and calls[-1].seen is not None:
            value = value.gather(-1, calls[-1].seen.expand(len(value), -1, -1))
        calls[-1].values[rest] = value

    def n_calls(self, stack: str) -> int:
        """How often this stack has computed anything."""
        return len(self._calls[stack])

    def along(self, stack: str, ids: Sequence[int]) -> "RecordedPath":
        """What was computed for these ids, which the stack has read one after another."""
        calls = self._calls[stack]
        everything = torch.cat([call.ids for call in calls])
        wanted = torch.tensor(ids, device=everything.device)
        for call in reversed(calls):
            for row in (call.visible.sum(1) == len(wanted)).nonzero().flatten().tolist():
                places = call.visible[row].nonzero().flatten()
                if torch.equal(everything[places], wanted):
                    return RecordedPath(calls, places)
        raise LookupError(f"The {stack} has not read these ids: {list(ids)}.")


class RecordedPath:
    """A line of descent: of all places that were computed, those that belong to one text."""

    def __init__(self, calls: Sequence[_Call], places: Int[Tensor, " Q"]) -> None:
        self._places = places
        self._last = calls[-1]
        self._parts: list[tuple[_Call, Tensor, Tensor]] = []  # of each call: its rows, and where they stand in the text
        start = 0
        for call in calls:
            is_here = (places >= start) & (places < start + len(call.ids))
            if is_here.any():
                self._parts.append((call, places[is_here] - start, is_here.nonzero().flatten()))
            start += len(call.ids)
        # All at once and in order, as in a forward pass: nothing needs to be copied together.
        self._is_whole = len(self._parts) == 1 and len(self._parts[0][0].ids) == len(places) == start

    def rows(self, name: str) -> Float[Tensor, "*H Q E"]:
        """A value that each place has one vector of: `0.self.q`, `0.cross.weights`, `hidden`."""
        if self._is_whole:
            return self._last.values[name].cpu()
        return torch.cat([call.values[name][..., rows, :] for call, rows, _ in self._parts], dim=-2).cpu()

    def pairs(self, name: str, hidden: float) -> Float[Tensor, "H Q Q"]:
        """A value of each pair of places of the text; `hidden` stands where one does not see the other."""
        if self._is_whole:
            return self._last.values[name].cpu()
        first, size = self._parts[0][0].values[name], len(self._places)
        found = first.new_full((first.size(0), size, size), hidden)
        for call, rows, places in self._parts:
            value = call.values[name][:, rows]
            if call.seen is None:
                value = value[..., self._places[self._places < call.visible.size(1)]]
            found[:, places, : value.size(-1)] = value
        return found.cpu()

    def keys(self, name: str) -> Float[Tensor, "H Q D"]:
        """What each place of the text is looked up by, or gives: `0.self.k`, `0.self.v`."""
        value = self._last.values[name]
        return (value if self._is_whole else value[:, self._places]).cpu()

    def other_keys(self, name: str) -> Float[Tensor, "H K D"]:
        """The same of another text that this one looks at: `0.cross.k`."""
        return self._last.values[name].cpu()
