"""Steppers: the interface between a search and a model. Append one id to each row, get the next log-probabilities."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.model import Tap, Transformer
from manyheads.model.masks import View

# B sentences, N beams or samples of each, R = B × N rows, P prompt length, T generated length, V vocabulary.


@runtime_checkable
class Stepper(Protocol):
    """The state of a batch during decoding. Rows are grouped by sentence, N per sentence; it starts with N = 1."""

    device: torch.device

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; return the log-probabilities of the next id, which the caller may overwrite.

        The ids of the first call are BOS.
        """
        ...

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order; each row of the matrix is one sentence, and an index may occur twice."""
        ...


class CachedStepper:
    """Runs one id per step through the model, with a KV cache.

    The beams of a sentence share one row of the cache. They form a tree, and a mask per beam selects the positions of
    its ancestors. Keys and values are therefore stored once per sentence, and reordering beams moves only masks.
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
        self.prompt = prompt  # comes after BOS
        self.length = 0
        # Of the K cached positions: the ancestors of each beam, and the position ids.
        self.ancestors = torch.ones(self.state.is_real.size(0), 1, 0, dtype=torch.bool, device=self.device)
        self.positions = torch.zeros(1, 0, dtype=torch.long, device=self.device)

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; return the log-probabilities of the next id."""
        n_sentences, n_beams, _ = self.ancestors.shape
        target = ids.reshape(n_sentences, n_beams)
        if self.prompt is not None and self.prompt.size(1):
            target = self._read_prompt(target)
        own = torch.eye(n_beams, dtype=torch.bool, device=self.device).expand(n_sentences, -1, -1)
        here = torch.full((1, n_beams), self.length, device=self.device)
        self.ancestors = torch.cat([self.ancestors, own], dim=2)
        self.positions = torch.cat([self.positions, here], dim=1)
        self.length += 1
        view = View(self.ancestors[:, None], here, self.positions)
        hidden = self.model.decode(target, self.state, view=view, tap=self.tap)
        return _log_probabilities(self.model.output.logits(hidden.flatten(0, 1)))

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order."""
        n_sentences, n_beams, _ = self.ancestors.shape
        sentences = rows[:, 0] // n_beams
        self.ancestors = self.ancestors.flatten(0, 1)[rows]
        if not torch.equal(sentences, torch.arange(n_sentences, device=self.device)):
            self.state.select(sentences)
            self.prompt = None if self.prompt is None else self.prompt[sentences]

    def _read_prompt(self, first: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
        """Cache BOS and the prompt without its last id; return that id for every beam."""
        assert self.prompt is not None
        trunk, last = torch.cat([first[:, :1], self.prompt[:, :-1]], dim=1), self.prompt[:, -1:]
        self.model.decode(trunk, self.state, tap=self.tap)
        self.length, self.prompt = trunk.size(1), None
        self.ancestors = self.ancestors.new_ones(*first.shape, self.length)
        self.positions = torch.arange(self.length, device=self.device)[None]
        return last.expand_as(first)


class UncachedStepper:
    """Recomputes the whole sequence at every step: the reference, and the only way for models that cannot be cached."""

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
        self.generated: Int[Tensor, "R T"] | None = None

    def step(self, ids: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Append one id to each row; return the log-probabilities of the next id."""
        if self.generated is None:
            parts = [ids[:, None]] if self.prompt is None else [ids[:, None], self.prompt]
        else:
            parts = [self.generated, ids[:, None]]
        self.generated = torch.cat(parts, dim=1)
        logits = self.model(self.source, self.generated, source_is_real=self.source_is_real, tap=self.tap)
        return _log_probabilities(logits[:, -1])

    def select(self, rows: Int[Tensor, "B N"]) -> None:
        """Keep these rows in this order."""
        kept = rows.flatten()
        self.source = None if self.source is None else self.source[kept]
        self.source_is_real = None if self.source_is_real is None else self.source_is_real[kept]
        self.prompt = None if self.prompt is None else self.prompt[kept]
        self.generated = None if self.generated is None else self.generated[kept]


def stepper_for(model: Transformer) -> type[CachedStepper | UncachedStepper]:
    """The fastest stepper that is exact for a model."""
    # A norm over the whole sequence changes earlier positions with every new one, so nothing can be cached.
    return UncachedStepper if model.settings.mixes_positions else CachedStepper


def _log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """In float32 at least: sums in half precision are too coarse to rank hypotheses."""
    return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
