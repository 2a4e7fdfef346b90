"""Tags in a chain: which tag may follow which, how likely a whole row of them is, and which row is best.

Inside a tagger every span is written in BIOES: B-x I-x … E-x for a span of several words, S-x for a span of one, O
outside of any. A path is a row of such states, one a word; the paths that mean something are the valid ones, and
nothing else is ever given out.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.text.tag_schemes import Span

# B rows, T words, K states.
_FORMS = "BIES"
_NOTHING = 1e-300  # a product that rounds to 0 has no logarithm


class States:
    """The states of some kinds of spans: O, then B, I, E and S of each kind."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        self.names = ("O", *(f"{form}-{kind}" for kind in self.kinds for form in _FORMS))
        self._first = {kind: 1 + len(_FORMS) * number for number, kind in enumerate(self.kinds)}

    def __len__(self) -> int:
        return len(self.names)

    def path_of(self, tags: Sequence[str]) -> list[int]:
        """The path of valid IOB2 tags; spans of kinds that are not known are left out."""
        path = []
        for place, tag in enumerate(tags):
            first = self._first.get(tag[2:]) if tag != "O" else None
            if first is None:
                path.append(0)
                continue
            goes_on = place + 1 < len(tags) and tags[place + 1][0] == "I"
            path.append(first + ((0 if goes_on else 3) if tag[0] == "B" else (1 if goes_on else 2)))
        return path

    def spans(self, path: Sequence[int]) -> list[Span]:
        """The spans of a valid path."""
        found, start = [], 0
        for place, state in enumerate(path):
            if not state:
                continue
            kind, form = divmod(state - 1, len(_FORMS))
            if form in (0, 3):
                start = place
            if form in (2, 3):
                found.append(Span(start, place + 1, self.kinds[kind]))
        return found

    def allowed_transitions(self) -> Bool[Tensor, "K K"]:
        """Whether the column's state may follow the row's: a span that has begun goes on as itself until it ends."""
        forms = torch.tensor([-1, *(form for _ in self.kinds for form in range(4))])
        kinds = torch.tensor([-1, *(kind for kind in range(len(self.kinds)) for _ in range(4))])
        is_open = (forms == 0) | (forms == 1)  # after these a span goes on
        goes_on = (forms == 1) | (forms == 2)  # these go on with one
        same = kinds[:, None] == kinds
        return torch.where(is_open[:, None], goes_on & same, ~goes_on)


class CRF(nn.Module):
    """A linear-chain CRF (Lafferty 2001) over valid paths.

    The score of a path is the sum of its words' scores and, where they are `learned`, of its transitions' from one state to
    the next. Where they are not, valid transitions score 0: the chain then only says what is valid.
    """

    transitions: Tensor
    forbidden: Tensor
    forbidden_first: Tensor
    forbidden_last: Tensor

    def __init__(self, states: States, *, learned: bool) -> None:
        super().__init__()
        allowed_transitions = states.allowed_transitions()
        if learned:
            self.transitions = nn.Parameter(torch.zeros(len(states), len(states)))
        else:
            self.register_buffer("transitions", torch.zeros(len(states), len(states)), persistent=False)
        # A row begins and ends as if there were an O before and after it.
        for name, allowed in (
            ("forbidden", allowed_transitions), ("forbidden_first", allowed_transitions[0]), ("forbidden_last", allowed_transitions[:, 0]),
        ):  # fmt: skip
            self.register_buffer(name, ~allowed, persistent=False)

    def log_probability(
        self, scores: Float[Tensor, "B T K"], paths: Int[Tensor, "B T"], is_real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """The logarithm of each path's probability among all valid paths; words that are not real count nothing."""
        return self._path_score(scores, paths, is_real) - self.log_partition(scores, is_real)

    def _path_score(
        self, scores: Float[Tensor, "B T K"], paths: Int[Tensor, "B T"], is_real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        words = scores.gather(2, paths[..., None])[..., 0]
        transitions = self.transitions[paths[:, :-1], paths[:, 1:]]
        return (words * is_real).sum(1) + (transitions * is_real[:, 1:]).sum(1)

    def log_partition(self, scores: Float[Tensor, "B T K"], is_real: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
        """The logarithm of the summed exp(score) of all valid paths: the forward algorithm, all rows at once.

        Sums of exponentials are matrix products here, in 64 bits, after the largest is taken out: twenty times as
        fast as logarithms of B · K · K sums where there are hundreds of states.
        """
        kind = torch.float32 if scores.device.type == "mps" else torch.float64
        scores = scores.to(kind)
        transitions = self.transitions.to(kind).exp().masked_fill(self.forbidden, 0.0)
        alpha = scores[:, 0].masked_fill(self.forbidden_first, -torch.inf)
        for place in range(1, scores.size(1)):
            largest = alpha.amax(1, keepdim=True).detach()
            summed = ((alpha - largest).exp() @ transitions).clamp_min(_NOTHING).log() + largest
            alpha = torch.where(is_real[:, place, None], summed + scores[:, place], alpha)
        return alpha.masked_fill(self.forbidden_last, -torch.inf).logsumexp(1).float()

    @torch.no_grad()
    def best_paths(self, scores: Float[Tensor, "B T K"], is_real: Bool[Tensor, "B T"]) -> list[list[int]]:
        """The valid path of the highest score for each row (Viterbi 1967), as long as the row is real."""
        transitions = self.transitions.masked_fill(self.forbidden, -torch.inf)
        best = scores[:, 0].masked_fill(self.forbidden_first, -torch.inf)
        stay = torch.arange(len(self.transitions), device=scores.device)
        backpointers = []
        for place in range(1, scores.size(1)):
            highest, before = (best[:, :, None] + transitions).max(1)
            real = is_real[:, place, None]
            best = torch.where(real, highest + scores[:, place], best)
            backpointers.append(torch.where(real, before, stay))
        state = best.masked_fill(self.forbidden_last, -torch.inf).argmax(1)
        path = [state]
        for before in reversed(backpointers):
            state = before.gather(1, state[:, None])[:, 0]
            path.append(state)
        whole = torch.stack(path[::-1], 1)
        return [row[:length] for row, length in zip(whole.tolist(), is_real.sum(1).tolist(), strict=True)]
