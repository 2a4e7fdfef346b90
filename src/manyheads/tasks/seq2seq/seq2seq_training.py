"""Training of seq2seq: batches of pairs and their loss."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import PairBatch, choose_examples, make_batch, plan_batches
from manyheads.model import Transformer, projected_loss
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings
from manyheads.tasks.task import TrainingData
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.tokenizer import PAD, Tokenizer


@dataclass(frozen=True)
class TensorBatch:
    """A `PairBatch` on the model's device."""

    source: Int[Tensor, "B S"]
    target_input: Int[Tensor, "B T"]
    target_output: Int[Tensor, "B T"]
    n_tokens: int

    def twice(self) -> "TensorBatch":
        """The batch with every row repeated, for two passes; the number of tokens stays."""
        source, read, written = (torch.cat([ids, ids]) for ids in (self.source, self.target_input, self.target_output))
        return TensorBatch(source, read, written, self.n_tokens)


@dataclass(frozen=True)
class Seq2SeqTrainingTask:
    """Pairs as the training loop sees them."""

    model: Transformer
    tokenizer: Tokenizer
    settings: Seq2SeqSettings
    data: TrainingData

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of rows of similar length, as row indices."""
        data = self.data
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        return plan_batches(data.encoded.lengths, data.batch_tokens, seed=data.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> TensorBatch:
        """Make one batch; with subword sampling, its texts are tokenized at random."""
        sides = [self._sampled(side, plan, seed) for side in (0, 1)]
        before = (self.tokenizer.opens, self.tokenizer.leads)
        if any(before):
            sides = [[[*own, *ids] for ids in side] for own, side in zip(before, sides, strict=True)]
        batch = self._to_tensors(make_batch(*sides))
        self.data.encoded.release()
        return batch

    def _ids(self, side: int, plan: NDArray[np.int64]) -> list[NDArray[np.generic]]:
        return self.data.encoded.ids(side, plan)

    def _sampled(self, side: int, plan: NDArray[np.int64], seed: int) -> list[Any]:
        """Each text tokenized at random; the most likely tokens if the random ones are too many."""
        if not self.data.sampling:
            return self._ids(side, plan)
        mask_pair, text = self.tokenizer.placeholders.mask_pair, self.data.encoded.text
        texts = [mask_pair(text(0, row), text(1, row))[side] for row in plan.tolist()]
        sampled = self.tokenizer.sample_batch(texts, self.data.sampling, 2 * seed + side)
        limit = self.model.settings.max_length
        return [
            ids if len(ids) < limit else likeliest
            for ids, likeliest in zip(sampled, self._ids(side, plan), strict=True)
        ]

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """Label-smoothed cross-entropy per target token, plus R-Drop's term if it is set.

        Padded positions are not projected.
        """
        has_two_passes = self.settings.consistency > 0 and step > self.settings.consistency_after
        passes = batch.twice() if has_two_passes else batch
        hidden = self.model.hidden(
            passes.source,
            passes.target_input,
            source_is_real=passes.source != PAD,
            target_is_real=passes.target_input != PAD,
        )
        is_real = batch.target_output != PAD
        return projected_loss(
            *self.model.output.factors(hidden.unflatten(0, (-1, len(is_real)))[:, is_real]),
            batch.target_output[is_real],
            self.settings.smoothing,
            self.settings.consistency,
        )

    def describe(self, plan: NDArray[np.int64]) -> str:
        """The number of pairs in a batch, and the first three."""
        texts = [[shortened(self.data.encoded.text(side, row), 60) for side in (0, 1)] for row in plan[:3].tolist()]
        pairs = ", ".join(f"“{source}” → “{target}”" for source, target in texts)
        return f"{len(plan)} pairs, {pairs}{' …' if len(plan) > 3 else ''}"

    def _to_tensors(self, batch: PairBatch) -> TensorBatch:
        device = self.model.device
        source, read, written = (
            torch.from_numpy(ids).to(device) for ids in (batch.source, batch.target_input, batch.target_output)
        )
        return TensorBatch(source, read, written, batch.n_tokens)
