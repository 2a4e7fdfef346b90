"""A linear-chain CRF over BIOES tags: valid transitions, the probability of a tag sequence, and the best sequence.

A tagger uses BIOES internally: B-x I-x … E-x for a span of several words, S-x for a span of one word, O outside spans.
A path is a sequence of these states, one per word. Only valid paths are ever predicted. Where every word has a tag of
its own, as parts of speech, there is one state per tag, and every path is valid.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.text.reading.tag_schemes import Span

# B rows, T words, K states.
_FORMS = "BIES"


class States:
    """The states for kinds of spans: O, then B, I, E and S of each kind; one per kind if every word is a span."""

    def __init__(self, kinds: Sequence[str], *, is_every_word: bool = False) -> None:
        self.kinds = tuple(kinds)
        self.is_every_word = is_every_word
        self.names = self.kinds if is_every_word else ("O", *(f"{form}-{kind}" for kind in kinds for form in _FORMS))
        self._first = {
            kind: number if is_every_word else 1 + len(_FORMS) * number for number, kind in enumerate(self.kinds)
        }

    def __len__(self) -> int:
        return len(self.names)

    def path_of(self, tags: Sequence[str]) -> list[int]:
        """The path of valid IOB2 tags; spans of unknown kinds become O, or the first kind if there is no O."""
        if self.is_every_word:
            return [self._first.get(tag[2:], 0) for tag in tags]
        path = []
        for position, tag in enumerate(tags):
            first = self._first.get(tag[2:]) if tag != "O" else None
            if first is None:
                path.append(0)
                continue
            continues = position + 1 < len(tags) and tags[position + 1][0] == "I"
            path.append(first + ((0 if continues else 3) if tag[0] == "B" else (1 if continues else 2)))
        return path

    def spans(self, path: Sequence[int]) -> list[Span]:
        """The spans of a valid path."""
        if self.is_every_word:
            return [Span(position, position + 1, self.kinds[state]) for position, state in enumerate(path)]
        spans, start = [], 0
        for position, state in enumerate(path):
            if not state:
                continue
            kind, form = divmod(state - 1, len(_FORMS))
            if form in (0, 3):
                start = position
            if form in (2, 3):
                spans.append(Span(start, position + 1, self.kinds[kind]))
        return spans

    def allowed_transitions(self) -> Bool[Tensor, "K K"]:
        """Whether the column's state may follow the row's: a span continues with the same kind until it ends."""
        if self.is_every_word:
            return torch.ones(len(self), len(self), dtype=torch.bool)
        forms = torch.tensor([-1, *(form for _ in self.kinds for form in range(4))])
        kinds = torch.tensor([-1, *(kind for kind in range(len(self.kinds)) for _ in range(4))])
        is_open = (forms == 0) | (forms == 1)  # the span must continue
        continues = (forms == 1) | (forms == 2)  # the state continues a span
        same = kinds[:, None] == kinds
        return torch.where(is_open[:, None], continues & same, ~continues)


class CRF(nn.Module):
    """A linear-chain CRF (Lafferty 2001) over valid paths.

    The score of a path is the sum of the scores of its words and of its transitions. If transitions are not `learned`,
    valid ones score 0, and the CRF only enforces validity.
    """

    transitions: Tensor
    forbidden: Tensor
    forbidden_first: Tensor
    forbidden_last: Tensor

    def __init__(self, states: States, *, learned: bool) -> None:
        super().__init__()
        allowed = states.allowed_transitions()
        if learned:
            self.transitions = nn.Parameter(torch.zeros(len(states), len(states)))
        else:
            self.register_buffer("transitions", torch.zeros(len(states), len(states)), persistent=False)
        # A path starts and ends as if there were an O before and after it.
        self.register_buffer("forbidden", ~allowed, persistent=False)
        self.register_buffer("forbidden_first", ~allowed[0], persistent=False)
        self.register_buffer("forbidden_last", ~allowed[:, 0], persistent=False)

    def log_probability(
        self, scores: Float[Tensor, "B T K"], paths: Int[Tensor, "B T"], is_real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """The log-probability of each path among all valid paths; padding does not count."""
        return self._path_score(scores, paths, is_real) - self.log_partition(scores, is_real)

    def _path_score(
        self, scores: Float[Tensor, "B T K"], paths: Int[Tensor, "B T"], is_real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        words = scores.gather(2, paths[..., None])[..., 0]
        transitions = self.transitions[paths[:, :-1], paths[:, 1:]]
        return (words * is_real).sum(1) + (transitions * is_real[:, 1:]).sum(1)

    def log_partition(self, scores: Float[Tensor, "B T K"], is_real: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
        """The log of the sum of exp(score) over all valid paths: the forward algorithm, for all rows at once.

        Sums of exponentials are computed as matrix products in 64 bits after subtracting the maximum: with hundreds of
        states, twenty times as fast as logsumexp over B · K · K numbers, which takes over where a sum underflows.
        """
        dtype = torch.float64 if scores.device.type in ("cpu", "cuda") else torch.float32  # MPS has no float64
        scores = scores.to(dtype)
        transitions = self.transitions.to(dtype).masked_fill(self.forbidden, -torch.inf)
        factors = transitions.exp()
        alpha = scores[:, 0].masked_fill(self.forbidden_first, -torch.inf)
        for position in range(1, scores.size(1)):
            largest = alpha.amax(1, keepdim=True).detach()
            products = (alpha - largest).exp() @ factors
            if ((products > torch.finfo(dtype).tiny) & products.isfinite()).all():
                summed = products.log() + largest
            else:
                summed = (alpha[:, :, None] + transitions).logsumexp(1)
            alpha = torch.where(is_real[:, position, None], summed + scores[:, position], alpha)
        return alpha.masked_fill(self.forbidden_last, -torch.inf).logsumexp(1).float()

    @torch.no_grad()
    def best_paths(self, scores: Float[Tensor, "B T K"], is_real: Bool[Tensor, "B T"]) -> list[list[int]]:
        """The valid path with the highest score for each row (Viterbi 1967), without padding."""
        transitions = self.transitions.masked_fill(self.forbidden, -torch.inf)
        best = scores[:, 0].masked_fill(self.forbidden_first, -torch.inf)
        stay = torch.arange(len(self.transitions), device=scores.device)
        backpointers = []
        for position in range(1, scores.size(1)):
            highest, before = (best[:, :, None] + transitions).max(1)
            real = is_real[:, position, None]
            best = torch.where(real, highest + scores[:, position], best)
            backpointers.append(torch.where(real, before, stay))
        state = best.masked_fill(self.forbidden_last, -torch.inf).argmax(1)
        path = [state]
        for before in reversed(backpointers):
            state = before.gather(1, state[:, None])[:, 0]
            path.append(state)
        whole = torch.stack(path[::-1], 1)
        return [row[:length] for row, length in zip(whole.tolist(), is_real.sum(1).tolist(), strict=True)]
