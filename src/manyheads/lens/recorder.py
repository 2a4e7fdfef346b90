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

# H heads, Q query places, K key places, N places computed in one call, M places computed in all calls so far.
_KEYS = ("k", "v")


@dataclass(frozen=True)
class _Call:
    """One call of a stack: the places it computed, what each of them sees, and all its values."""

    ids: Int[Tensor, " N"]
    visible: Bool[Tensor, "N M"]
    values: dict[str, Tensor] = field(default_factory=dict)


class Recorder(Tap):
    """Keeps the calls of each stack, for one text at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, list[_Call]] = {"encoder": [], "decoder": []}

    def begin(self, stack: str, ids: Int[Tensor, "1 N"], visible: Bool[Tensor, "1 1 #N M"]) -> None:
        """Take the places that are computed next, and what they see."""
        self._calls[stack].append(_Call(ids[0], visible[0, 0].expand(ids.size(1), -1)))

    def receive(self, name: str, value: Tensor) -> None:
        """Take one named value."""
        stack, rest = name.split(".", 1)
        calls = self._calls[stack]
        kind = rest.rsplit(".", 1)[-1]
        if kind in _KEYS and len(calls) > 1:  # the newest hold the older ones too
            calls[-2].values.pop(rest, None)
        calls[-1].values[rest] = value[0]

    def reads(self, stack: str) -> bool:
        """Whether anything was read by this stack."""
        return bool(self._calls[stack])

    def along(self, stack: str, ids: Sequence[int]) -> "Path":
        """What was computed for these ids, which the stack has read one after another."""
        calls = self._calls[stack]
        nodes = torch.cat([call.ids for call in calls])
        wanted = torch.tensor(ids, device=nodes.device)
        for call in reversed(calls):
            for seen in call.visible:
                places = seen.nonzero().flatten()
                if len(places) == len(wanted) and torch.equal(nodes[places], wanted):
                    return Path(calls, places)
        raise LookupError(f"The {stack} has read no such ids: {list(ids)}.")


class Path:
    """A line of descent: of all places that were computed, those that belong to one text."""

    def __init__(self, calls: Sequence[_Call], places: Int[Tensor, " Q"]) -> None:
        self._places = places
        self._parts: list[tuple[_Call, Tensor, Tensor]] = []  # of each call: its rows, and where they stand in the text
        start = 0
        for call in calls:
            is_here = (places >= start) & (places < start + len(call.ids))
            if is_here.any():
                self._parts.append((call, places[is_here] - start, is_here.nonzero().flatten()))
            start += len(call.ids)

    def rows(self, name: str) -> Float[Tensor, "*H Q E"]:
        """A value that each place has one vector of: `0.self.q`, `0.cross.weights`, `hidden`."""
        return torch.cat([call.values[name][..., rows, :] for call, rows, _ in self._parts], dim=-2).cpu()

    def pairs(self, name: str, hidden: float) -> Float[Tensor, "H Q K"]:
        """A value of each pair of places of the text; `hidden` stands where one does not see the other."""
        first = self._parts[0][0].values[name]
        size = len(self._places)
        found = first.new_full((first.size(0), size, size), hidden)
        for call, rows, places in self._parts:
            known = self._places[self._places < call.visible.size(1)]
            found[:, places, : len(known)] = call.values[name][:, rows][..., known]
        return found.cpu()

    def keys(self, name: str) -> Float[Tensor, "H K D"]:
        """A value that each place of the text is looked up by: `0.self.k`, `0.self.v`."""
        return self._newest(name)[:, self._places].cpu()

    def other_keys(self, name: str) -> Float[Tensor, "H K D"]:
        """The same of another text that this one looks at: `0.cross.k`."""
        return self._newest(name).cpu()

    def _newest(self, name: str) -> Float[Tensor, "H M D"]:
        return next(call.values[name] for call, _, _ in reversed(self._parts) if name in call.values)
