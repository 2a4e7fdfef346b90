"""Copying: find outputs that lost, repeated or invented tokens of their source, and search for those that did not.

The tokens to copy are placeholders, which stand for code, markup and the like. Beam search alone sometimes drops one.
The constrained search divides the beam among the hypotheses that have copied none, one, two, … of them (dynamic beam
allocation, Post and Vilar 2018), tries every missing one at every step, and ends a hypothesis only when it has all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.decode.constraints import Extensions, best_of_each

# B unfinished sentences, N beams of each, R = B × N rows, T generated ids, V vocabulary, C ids to copy, M candidates.

_BEAMS_PER_COUNT = 2  # hypotheses with the same number of copied ids that are kept
_MAX_BEAM = 64


def n_missing(ids: Sequence[int], source: Sequence[int], copied: Sequence[int]) -> int:
    """How many of the ids to copy are missing, compared with the source."""
    return sum(max(0, source.count(token_id) - ids.count(token_id)) for token_id in copied)


def n_extra(ids: Sequence[int], source: Sequence[int], copied: Sequence[int]) -> int:
    """How many of the ids to copy are too many, compared with the source."""
    return n_missing(source, ids, copied)


def copying_beam(source: Sequence[int], copied: Sequence[int]) -> int:
    """The beam that the constrained search needs for a source."""
    return min(_MAX_BEAM, _BEAMS_PER_COUNT * (1 + sum(source.count(token_id) for token_id in copied)))


@dataclass(frozen=True)
class Copying:
    """The constraint that a hypothesis contains each of these ids as often as its source."""

    ids: Int[Tensor, " C"]
    wanted: Int[Tensor, "B C"]  # occurrences in the source

    @classmethod
    def of(cls, source: Int[Tensor, "B S"], copied: Sequence[int]) -> "Copying":
        """The constraint for these sources."""
        ids = torch.tensor(copied, dtype=torch.long, device=source.device)
        return cls(ids, (source[:, :, None] == ids).sum(1))

    def select(self, sentences: Int[Tensor, " B2"]) -> "Copying":
        """The constraint for some of the sources."""
        return Copying(self.ids, self.wanted[sentences])

    def best_extensions(
        self,
        log_probabilities: Float[Tensor, "R V"],
        unguarded: Float[Tensor, "R V"],
        totals: Float[Tensor, "B N"],
        generated: Int[Tensor, "B N T"],
        *,
        beam: int,
        eos: int,
    ) -> Extensions:
        """The best extensions with each number of copied ids, then the second best, …; impossible ones come last."""
        step = log_probabilities.unflatten(0, totals.shape)
        counts = (generated[:, :, :, None] == self.ids).sum(2)
        is_wanted = counts < self.wanted[:, None]
        copies = unguarded.unflatten(0, totals.shape)[:, :, self.ids].masked_fill(~is_wanted, -torch.inf)
        step[:, :, self.ids] = -torch.inf
        step[:, :, eos].masked_fill_(is_wanted.any(2), -torch.inf)
        others, other_ids = step.topk(min(beam, step.size(2)))
        n_choices = copies.size(2) + others.size(2)
        ids = torch.cat([self.ids.expand_as(copies), other_ids], dim=2).flatten(1)
        # A hypothesis that ends is one further: otherwise better ones that go on could keep it from ending.
        n_done = counts.sum(2)[:, :, None]
        n_done = torch.cat([(n_done + 1).expand_as(copies), n_done + (other_ids == eos)], dim=2).flatten(1)
        # Sorting ranks NaN above every number.
        candidates = (torch.cat([copies, others], dim=2) + totals[:, :, None]).flatten(1)
        candidates = candidates.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
        chosen = best_of_each(candidates, n_done)[:, :beam]
        return candidates.gather(1, chosen), chosen // n_choices, ids.gather(1, chosen)
