"""The classifier module, and its training: batches of labeled texts and their loss."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from manyheads.data import choose_examples, plan_batches
from manyheads.model import Transformer, symmetric_kl
from manyheads.tasks.classify.settings import ClassifySettings
from manyheads.tasks.model_inputs import windows
from manyheads.tasks.ngrams import NgramClassifier
from manyheads.tasks.pooling import Pool
from manyheads.tasks.task import TrainingData
from manyheads.text.suggestions import shortened
from manyheads.text.tokenizer import PAD

if TYPE_CHECKING:
    from manyheads.tasks.classify.classify_task import Classify


class Classifier(nn.Module):
    """A Transformer, pooling and a linear layer; with `ngrams`, an n-gram classifier beside them."""

    def __init__(self, model: Transformer, n_labels: int, settings: ClassifySettings) -> None:
        super().__init__()
        self.model = model
        self.pool = Pool(settings.pooling, model.settings.width)
        self.dropout = nn.Dropout(settings.head_dropout)
        self.output = nn.Linear(self.pool.width, n_labels)
        self.ngrams = NgramClassifier(n_labels, settings.ngrams) if settings.ngrams else None

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The logits of each label, summed over the branches."""
        return torch.stack(self.branch_logits(ids)).sum(0)

    def branch_logits(self, ids: Int[Tensor, "B S"]) -> list[Float[Tensor, "B C"]]:
        """The logits of the Transformer and, if there is one, of the n-gram classifier."""
        is_real: Bool[Tensor, "B S"] = ids != PAD
        logits = self.output(self.dropout(self.pool(self.model.encode(ids, is_real), is_real)))
        return [logits] if self.ngrams is None else [logits, self.ngrams(ids)]


@dataclass(frozen=True)
class LabeledBatch:
    """Texts as ids, and 1 or 0 for each label."""

    ids: Int[Tensor, "B S"]
    targets: Float[Tensor, "B C"]

    @property
    def n_tokens(self) -> int:
        """The number of texts, over which the loss is averaged."""
        return len(self.ids)


@dataclass(frozen=True)
class ClassifyTrainingTask:
    """Labeled texts as the training loop sees them."""

    task: "Classify"
    data: TrainingData

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of rows of similar length, as row indices."""
        data = self.data
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        lengths = data.encoded.lengths[:, :1].clip(max=self.task.limit + 1)
        return plan_batches(lengths, data.batch_tokens, seed=data.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> LabeledBatch:
        """Make one batch, with subword sampling if it is set; a long text is cut to a random window."""
        encoded, task = self.data.encoded, self.task
        rng = random.Random(seed)
        texts: Sequence[ArrayLike] = encoded.ids(0, plan)
        if self.data.sampling:
            raw = [encoded.text(0, row) for row in plan.tolist()]
            texts = task.tokenizer.sample_batch(raw, self.data.sampling, seed)
        labels = [task.settings.labels_of(encoded.text(1, row)) for row in plan.tolist()]
        batch = LabeledBatch(task.to_ids([_window(ids, task.limit, rng) for ids in texts]), task.targets(labels))
        encoded.release()
        return batch

    def loss(self, batch: LabeledBatch, step: int) -> Tensor:
        """Cross-entropy per text, plus R-Drop's term if it is set; the mean over the branches.

        Each branch has its own loss: with a loss of their sum, the slower branch would learn nothing.
        """
        n_passes = 2 if self.task.settings.consistency else 1
        branches = self.task.module.branch_logits(batch.ids.repeat(n_passes, 1))
        return torch.stack([self._loss(logits.chunk(n_passes), batch.targets) for logits in branches]).mean()

    def _loss(self, passes: Sequence[Float[Tensor, "B C"]], targets: Float[Tensor, "B C"]) -> Tensor:
        settings = self.task.settings
        loss = torch.stack([self._cross_entropy(logits, targets) for logits in passes]).mean()
        if len(passes) == 1:
            return loss
        one, other = passes
        if settings.multi_label:  # the KL divergence of each label as a binary variable
            divergence = 0.5 * ((one.sigmoid() - other.sigmoid()) * (one - other)).sum(-1).mean()
        else:
            divergence = symmetric_kl(one, other)
        return loss + 0.5 * settings.consistency * divergence

    def _cross_entropy(self, logits: Float[Tensor, "B C"], targets: Float[Tensor, "B C"]) -> Tensor:
        settings, weights = self.task.settings, self.task.label_weights
        if settings.multi_label:
            soft = targets * (1.0 - settings.smoothing) + settings.smoothing / 2
            return F.binary_cross_entropy_with_logits(logits, soft, pos_weight=weights)
        return F.cross_entropy(logits, targets.argmax(-1), weight=weights, label_smoothing=settings.smoothing)

    def describe(self, plan: NDArray[np.int64]) -> str:
        """The number of texts in a batch, and the first three."""
        encoded = self.data.encoded
        examples = ", ".join(
            f"“{shortened(encoded.text(0, row))}” ({encoded.text(1, row)})" for row in plan[:3].tolist()
        )
        return f"{len(plan)} texts, {examples}{' …' if len(plan) > 3 else ''}"


def _window(ids: ArrayLike, limit: int, rng: random.Random) -> ArrayLike:
    """The ids; a random window if they are too many."""
    length = len(np.asarray(ids))
    start, end = rng.choice(windows([1] * length, limit)) if length > limit else (0, length)
    return np.asarray(ids)[start:end]
