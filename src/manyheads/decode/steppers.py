"""Steppers: what a search sees of a model. Append one id to every row, get the next one's log-probabilities."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.model import Tap, Transformer
from manyheads.model.masks import View

# B sentences, N rows of each (beams or samples), R = B × N rows, P places of a prompt, T places written, V vocabulary.


@runtime_checkable
class Stepper(Protocol):
    """The rows of one sentence stand together, as many for each sentence; at first one for each."""

    device: torch.device

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; the log-probabilities of the next, which the caller may overwrite.

        The first ids are BOS, the same for every row.
        """
        ...

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order, row b of the matrix being those of one sentence; a row may come twice."""
        ...


class CachedStepper:
    """One id at a time through the model, whose caches hold what was computed before.

    To the model a sentence is one row, however many beams it has: they are branches of a tree, and each sees the
    places it descends from. So memory, keys and values are held once a sentence, and when beams change places only
    their lines of descent move, a few booleans.
    """

    def __init__(
        self,
        model: Transformer,
        source: Int[Tensor, "B S"] | None = None,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        *,
        prompt: Int[Tensor, "B P"] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.model, self.tap = model, tap
        self.device = model.device
        n_rows = 1 if prompt is None else prompt.size(0)
        self.state = model.start(source, source_is_real, n_rows=n_rows, tap=tap)
        self.prompt = prompt  # follows the first id of every row
        self.length = 0
        # Which of the K places that are cached each beam descends from, and where these stand.
        self.descent = torch.ones(self.state.is_real.size(0), 1, 0, dtype=torch.bool, device=self.device)
        self.positions = torch.zeros(1, 0, dtype=torch.long, device=self.device)

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; the log-probabilities of the next."""
        n_sentences, n_beams, _ = self.descent.shape
        target = ids.reshape(n_sentences, n_beams)
        if self.prompt is not None and self.prompt.size(1):
            target = self._read_prompt(target)
        itself = torch.eye(n_beams, dtype=torch.bool, device=self.device).expand(n_sentences, -1, -1)
        here = torch.full((1, n_beams), self.length, device=self.device)
        self.descent = torch.cat([self.descent, itself], dim=2)
        self.positions = torch.cat([self.positions, here], dim=1)
        self.length += 1
        view = View(self.descent[:, None], here, self.positions)
        hidden = self.model.decode(target, self.state, view=view, tap=self.tap)
        return _log_probabilities(self.model.output.logits(hidden.flatten(0, 1)))

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order."""
        n_sentences, n_beams, _ = self.descent.shape
        sentences = rows[:, 0] // n_beams
        self.descent = self.descent.flatten(0, 1)[rows]
        if not torch.equal(sentences, torch.arange(n_sentences, device=self.device)):
            self.state.select(sentences)
            self.prompt = None if self.prompt is None else self.prompt[sentences]

    def _read_prompt(self, first: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
        """Put the first id, the same for all beams, and the prompt into the caches, but for its last id, returned."""
        assert self.prompt is not None
        trunk, last = torch.cat([first[:, :1], self.prompt[:, :-1]], dim=1), self.prompt[:, -1:]
        self.model.decode(trunk, self.state, tap=self.tap)
        self.length, self.prompt = trunk.size(1), None
        self.descent = self.descent.new_ones(*first.shape, self.length)
        self.positions = torch.arange(self.length, device=self.device)[None]
        return last.expand_as(first)


class UncachedStepper:
    """The slow reference, and the only one for models that cannot be cached: every step computes everything."""

    def __init__(
        self,
        model: Transformer,
        source: Int[Tensor, "B S"] | None = None,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        *,
        prompt: Int[Tensor, "B P"] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.model, self.tap = model, tap
        self.device = model.device
        self.source, self.source_is_real, self.prompt = source, source_is_real, prompt
        self.written: Int[Tensor, "R T"] | None = None

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; the log-probabilities of the next."""
        if self.written is None:
            parts = [ids[:, None]] if self.prompt is None else [ids[:, None], self.prompt]
        else:
            parts = [self.written, ids[:, None]]
        self.written = torch.cat(parts, dim=1)
        logits = self.model(self.source, self.written, source_is_real=self.source_is_real, tap=self.tap)
        return _log_probabilities(logits[:, -1])

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order."""
        kept = rows.flatten()
        self.source = None if self.source is None else self.source[kept]
        self.source_is_real = None if self.source_is_real is None else self.source_is_real[kept]
        self.prompt = None if self.prompt is None else self.prompt[kept]
        self.written = None if self.written is None else self.written[kept]


def stepper_for(model: Transformer) -> type[CachedStepper | UncachedStepper]:
    """The fastest that is right for a model."""
    # A norm over the whole sequence changes what was computed for earlier places with every new one: no cache holds.
    return UncachedStepper if model.settings.mixes_positions else CachedStepper


def _log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """At least in float32: a sum of many in half precision would no longer tell hypotheses apart."""
    return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
