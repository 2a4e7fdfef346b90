"""Constraints of beam search: phrases that every hypothesis contains, and a text that it begins with.

`PhraseConstraint` is dynamic beam allocation (Post and Vilar 2018): the beam is divided among the hypotheses that have
none, one, two, … tokens of the phrases, every token that goes on with a missing phrase is tried at every step, and a
hypothesis ends only when it has all phrases. What a hypothesis has is the business of an `Automaton`, for which each
token leads from one state to another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# B unfinished sentences, N beams of each, R = B × N rows, T generated ids, V vocabulary, M candidates.

Extensions = tuple[Float[Tensor, "B N2"], Int[Tensor, "B N2"], Int[Tensor, "B N2"]]


@runtime_checkable
class Constraint(Protocol):
    """Selects the extensions that beam search keeps."""

    def select(self, sentences: Int[Tensor, " B2"]) -> "Constraint":
        """The constraint for some of the sentences."""

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
        """The log-probabilities of the extensions to keep, the beams that they extend, and their last ids.

        `unguarded` are the log-probabilities before n-grams that would be repeated were forbidden: what is required
        may be repeated.
        """


@runtime_checkable
class Automaton(Protocol):
    """The phrases that one sentence must contain. A state says what a hypothesis has of them; see `text.phrases`."""

    @property
    def start(self) -> int:
        """The state of an empty hypothesis."""

    @property
    def n_levels(self) -> int:
        """The level of a hypothesis that has every phrase."""

    @property
    def n_tokens(self) -> int:
        """How many tokens the phrases and the prefix take."""

    @property
    def max_length(self) -> int | None:
        """The maximum number of ids to generate, EOS included; None: that of the settings, and `n_tokens` more."""

    @property
    def limited_ids(self) -> Sequence[int]:
        """The ids that are generated only where they are required."""

    def follow(self, state: int, token_id: int) -> int:
        """The state after one more id."""

    def level(self, state: int) -> int:
        """How many tokens of the phrases a hypothesis has."""

    def may_end(self, state: int) -> bool:
        """Whether it has all."""

    def allowed_ids(self, state: int) -> Sequence[int] | None:
        """The only ids that may follow; None: any."""

    def required_ids(self, state: int) -> Sequence[int]:
        """The ids that begin or continue a phrase that is missing."""


@dataclass(frozen=True)
class PhraseConstraint:
    """The constraint that each hypothesis contains the phrases of its sentence."""

    automata: Sequence[Automaton]

    def select(self, sentences: Int[Tensor, " B2"]) -> "PhraseConstraint":
        """The constraint for some of the sentences."""
        return PhraseConstraint([self.automata[index] for index in sentences.tolist()])

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
        """The best extensions of each level, then the second best, …; impossible ones come last.

        A hypothesis that lacks a phrase where the model would end is extended only if there is no other, or if none
        has more of the phrases: the model would begin another sentence with the phrase, which costs little after so
        probable a beginning.
        """
        states = self._states(totals, generated)
        by_row = self._by_row(len(states))
        required = [self._required(automaton, state, eos) for automaton, state in zip(by_row, states, strict=True)]
        n_required = max(len(ids) for ids in required)
        padded = torch.tensor([[*ids, *[-1] * (n_required - len(ids))] for ids in required])
        padded = padded.to(totals.device, torch.long)
        # The same tensor may be both, so that this comes first.
        own = unguarded.gather(1, padded.clamp(min=0)).masked_fill(padded < 0, -torch.inf)
        is_overdue = self._overdue(unguarded, states, eos)
        self._restrict(log_probabilities, unguarded, states, required, eos)
        others, other_ids = log_probabilities.topk(min(beam, log_probabilities.size(1)))
        ids = torch.cat([padded.clamp(min=0), other_ids], dim=1)
        candidates = torch.cat([own, others], dim=1) + totals.flatten()[:, None]
        # Sorting ranks NaN above every number.
        candidates.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
        levels = self._levels(states, ids, candidates, eos)
        n_choices = ids.size(1)
        by_sentence = (totals.size(0), totals.size(1) * n_choices)
        is_overdue = is_overdue[:, None].expand_as(ids)
        candidates, ids, levels, is_overdue = (x.reshape(by_sentence) for x in (candidates, ids, levels, is_overdue))
        # Those of the highest level are never late, so that the search ends.
        is_late = is_overdue & (levels < levels.amax(1, keepdim=True))
        chosen = best_of_each(candidates, levels, is_late)[:, :beam]
        return candidates.gather(1, chosen), chosen // n_choices, ids.gather(1, chosen)

    def _states(self, totals: Float[Tensor, "B N"], generated: Int[Tensor, "B N T"]) -> list[int | None]:
        """The state of each row; None for one that has ended."""
        states: list[int | None] = []
        for automaton, rows, own in zip(self.automata, generated[:, :, 1:].tolist(), totals.tolist(), strict=True):
            for ids, total in zip(rows, own, strict=True):
                state = automaton.start
                for token_id in ids if total > -torch.inf else ():
                    state = automaton.follow(state, token_id)
                states.append(state if total > -torch.inf else None)
        return states

    def _by_row(self, n_rows: int) -> list[Automaton]:
        """The automaton of each row."""
        return [automaton for automaton in self.automata for _ in range(n_rows // len(self.automata))]

    @staticmethod
    def _required(automaton: Automaton, state: int | None, eos: int) -> list[int]:
        """The ids to try for a row, whatever their probability."""
        if state is None or automaton.allowed_ids(state) is not None:
            return []
        # A hypothesis that may end is tried at its end: better ones that go on must not keep it from ending.
        is_tried = automaton.n_levels > 0 and automaton.may_end(state)
        return [*automaton.required_ids(state), *([eos] if is_tried else [])]

    def _overdue(
        self, log_probabilities: Float[Tensor, "R V"], states: Sequence[int | None], eos: int
    ) -> Bool[Tensor, " R"]:
        """Whether a row lacks a phrase although EOS is the most probable id."""
        by_row = zip(self._by_row(len(states)), states, strict=True)
        lacks = [state is not None and not automaton.may_end(state) for automaton, state in by_row]
        return (log_probabilities.argmax(1) == eos) & torch.tensor(lacks, device=log_probabilities.device)

    def _restrict(
        self,
        log_probabilities: Float[Tensor, "R V"],
        unguarded: Float[Tensor, "R V"],
        states: Sequence[int | None],
        required: Sequence[Sequence[int]],
        eos: int,
    ) -> None:
        """Set the log-probabilities of what is required, and of what is not allowed, to −∞."""
        rows: list[int] = []
        removed: list[int] = []
        for row, (automaton, state) in enumerate(zip(self._by_row(len(states)), states, strict=True)):
            if state is None:
                continue
            allowed = automaton.allowed_ids(state)
            if allowed is not None:
                kept = torch.tensor(allowed, device=unguarded.device)
                values = unguarded[row, kept]
                log_probabilities[row] = -torch.inf
                log_probabilities[row, kept] = values
                continue
            own = [*required[row], *automaton.limited_ids, *([] if automaton.may_end(state) else [eos])]
            removed += own
            rows += [row] * len(own)
        log_probabilities[rows, removed] = -torch.inf

    def _levels(
        self,
        states: Sequence[int | None],
        ids: Int[Tensor, "R M"],
        candidates: Float[Tensor, "R M"],
        eos: int,
    ) -> Int[Tensor, "R M"]:
        """The level of each candidate; one that ends is a level above those that have all phrases."""
        by_row = self._by_row(len(states))
        is_possible = ~candidates.isneginf()  # most are not, where one row may begin many phrases
        found = []
        for row, token_id in zip(is_possible.nonzero()[:, 0].tolist(), ids[is_possible].tolist(), strict=True):
            automaton, state = by_row[row], states[row]
            if state is None or not automaton.n_levels:
                found.append(0)
            elif token_id == eos:
                found.append(automaton.n_levels + 1)
            else:
                found.append(automaton.level(automaton.follow(state, token_id)))
        levels = torch.zeros_like(ids)
        levels[is_possible] = torch.tensor(found, dtype=ids.dtype, device=ids.device)
        return levels


def best_of_each(
    scores: Float[Tensor, "B M"], groups: Int[Tensor, "B M"], is_late: Bool[Tensor, "B M"] | None = None
) -> Int[Tensor, "B M"]:
    """The order in which the best of each group come first, then the second best, …, and −∞ last.

    Of equal ranks, the one of the highest group is first. Those that are late come after all others that are finite.
    """
    if is_late is not None and is_late.any():
        order = best_of_each(scores, groups)
        rank = is_late.gather(1, order).long() + 2 * scores.gather(1, order).isneginf().long()
        # Without the late ones, the others keep their order.
        return order.gather(1, rank.argsort(dim=1, stable=True))
    by_score = scores.argsort(dim=1, descending=True, stable=True)
    n_groups = int(groups.max()) + 1
    by_group = by_score.gather(1, groups.gather(1, by_score).argsort(dim=1, stable=True))
    sorted_groups = groups.gather(1, by_group)
    index = torch.arange(groups.size(1), device=groups.device).expand_as(groups)
    is_first = torch.ones_like(sorted_groups, dtype=torch.bool)
    is_first[:, 1:] = sorted_groups[:, 1:] != sorted_groups[:, :-1]
    rank = index - index.masked_fill(~is_first, 0).cummax(1).values + 1
    key = rank * n_groups - sorted_groups
    key = key.masked_fill(scores.gather(1, by_group).isneginf(), (groups.size(1) + 1) * n_groups + 1)
    return by_group.gather(1, key.argsort(dim=1, stable=True))
