"""The classifier: its settings, its module, and its training: batches of labeled texts and their loss."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from manyheads.data import choose_examples, plan_batches
from manyheads.messages import _
from manyheads.model import Transformer, symmetric_kl
from manyheads.model.masks import count_positions
from manyheads.settings import Range, Rate, raise_faults, type_faults
from manyheads.tasks.model_inputs import Pool, Pooling, windows
from manyheads.tasks.task import TaskSettings, TrainingData
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.tokenizer import PAD

if TYPE_CHECKING:
    from manyheads.tasks.classify.classify_task import Classify


@dataclass(frozen=True, kw_only=True)
class ClassifySettings(TaskSettings):
    """How a text is pooled into one vector, and how its labels are trained and predicted."""

    kind: Literal["classify"] = "classify"  # predict the label or labels of a text
    multi_label: bool = False  # a text may have several labels, or none
    separator: str = "|"  # between the labels of a row
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text
    unit_vectors: bool = False  # scale the vector of the text to the length √width, so that only its direction counts
    # Fit the output layer by logistic regression before the first step, as is best for a pretrained encoder. At the
    # end the weights are chosen on validation rows, from those before training to those after it.
    probe: bool = False
    # The activation of a layer between the pooled vector and the labels, as some imported classifiers have it.
    hidden: Literal["none", "tanh", "relu"] = "none"
    head_dropout: Rate = 0.2  # dropout of the pooled vector
    # Also fit a linear classifier of word and character n-grams. Its score is shown beside the model's, and the
    # answer is a mixture of both, weighted on the validation rows.
    baseline: bool = True
    # Also pool a convolution over this many neighboring tokens, beside attention; 0: none.
    convolution: Annotated[int, Range(0, 9)] = 0
    class_weights: Literal["none", "balanced"] = "none"  # balanced: every label has the same total weight
    smoothing: Rate = 0.1  # ε of label smoothing
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 1; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0
    threshold: Rate = 0.0  # minimum probability of a predicted label; 0: the likeliest, or ½ if multi_label

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        if self.multi_label and not self.separator:
            return [_('task.separator is empty: it separates the labels of a row. Use "|", for instance.')]
        return []

    @property
    def fits_head(self) -> bool:
        """Whether something is fitted before the first step."""
        return self.probe

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy."""
        terms = {"label smoothing": self.smoothing, "R-Drop": self.consistency}
        return {name: weight for name, weight in terms.items() if weight}

    def labels_of(self, field: str) -> tuple[str, ...]:
        """The labels in a row's label field."""
        if not self.multi_label:
            return (field,)
        return tuple(sorted({label.strip() for label in field.split(self.separator)} - {""}))


class Classifier(nn.Module):
    """A Transformer, pooling and a linear layer; with `convolution`, also the largest values of a convolution."""

    def __init__(self, model: Transformer, n_labels: int, settings: ClassifySettings) -> None:
        super().__init__()
        self.model = model
        width = model.settings.width
        self.pool = Pool(settings.pooling, width)
        self.convolution = MaxConvolution(width, settings.convolution) if settings.convolution else None
        self.has_unit_vectors = settings.unit_vectors
        self.dropout = nn.Dropout(settings.head_dropout)
        n_features = self.pool.width + (width if self.convolution else 0)
        self.hidden = nn.Linear(n_features, n_features) if settings.hidden != "none" else None
        self.activation = torch.relu if settings.hidden == "relu" else torch.tanh
        self.output = nn.Linear(n_features, n_labels)

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The logits of each label."""
        logits: Tensor = self.output(self.dropout(self.vectors(ids)))
        return logits

    def vectors(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B P"]:
        """The vector of each text, from which the output layer computes the logits."""
        is_real: Bool[Tensor, "B S"] = ids != PAD
        pooled = self.pool(self.model.encode(ids, is_real), is_real)
        if self.convolution is not None:
            vectors = self.model.source_embedding(ids, count_positions(is_real))
            pooled = torch.cat([pooled, self.convolution(vectors, is_real)], dim=-1)
        if self.hidden is not None:
            pooled = self.activation(self.hidden(pooled))
        return F.normalize(pooled, dim=-1) * pooled.size(-1) ** 0.5 if self.has_unit_vectors else pooled


class MaxConvolution(nn.Module):
    """The largest value of each filter over all positions (Kim 2014): phrases of a few tokens, wherever they occur."""

    def __init__(self, width: int, n_tokens: int) -> None:
        super().__init__()
        self.filters = nn.Conv1d(width, width, n_tokens, padding="same")

    def forward(self, x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B W"]:
        """The pooled values; padded positions do not count."""
        values = self.filters((x * is_real[..., None]).mT).relu()
        return values.masked_fill(~is_real[:, None], 0.0).amax(-1)


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
        """Cross-entropy per text, plus R-Drop's term if it is set."""
        n_passes = 2 if self.task.settings.consistency else 1
        return self._loss(self.task.module(batch.ids.repeat(n_passes, 1)).chunk(n_passes), batch.targets)

    def _loss(self, passes: Sequence[Float[Tensor, "B C"]], targets: Float[Tensor, "B C"]) -> Tensor:
        settings = self.task.settings
        loss = torch.stack([self._cross_entropy(logits, targets) for logits in passes]).mean()
        if len(passes) == 1:
            return loss
        first, second = passes
        if settings.multi_label:  # the KL divergence of each label as a binary variable
            divergence = 0.5 * ((first.sigmoid() - second.sigmoid()) * (first - second)).sum(-1).mean()
        else:
            divergence = symmetric_kl(first, second)
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
