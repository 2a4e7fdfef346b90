"""Ways to hide keys from a query: what the model does, and what study notes suggest instead.

A masking turns scores into weights. `with_masking` puts one into every attention of a model.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import PAD, LabBatch, Reorder
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, counted_logits, make_model, train_model
from manyheads.lab.trials.variants import replace_modules
from manyheads.model import MultiHeadAttention, Tap, Transformer, evaluating
from manyheads.model.attention import Strategies, masked_softmax
from manyheads.model.masks import View
from manyheads.model.score_forms import DotForm

_N_MORE_PADS = 100
# The 3 × 3 example of study notes, computed correctly: Q = X W_Q, K = X W_K.
_NOTES_Q = torch.tensor([[30.0, 36, 42], [66, 81, 96], [102, 126, 150]])
_NOTES_K = torch.tensor([[14.0, 32, 50], [32, 77, 122], [50, 122, 194]])
Scores = Float[Tensor, "*B Q K"]
Visible = Bool[Tensor, "*#B #Q K"]
Masking = Callable[[Scores, Visible], Scores]


def masking(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy with and without more padding, and what the masking does to weights and to the future."""
    setup = replace(setup, alter=partial(with_masking, **setup.extra))
    trained = train_model(setup, seed)
    batch, tap = trained.tapped()
    assert batch.source is not None
    weights = tap["encoder.0.self.weights"].double()[:, :, 0]  # of the query: the only position that is predicted
    visible = (batch.source != PAD)[:, None]
    notes = _mask_notes(setup)
    return {
        **trained.outcome(),
        "padded_accuracy": _padded_accuracy(trained),
        "missing": float((1 - (weights * visible).sum(-1)).abs().mean()),
        "leak": float((weights * ~visible).sum(-1).mean()),
        "future": _future_influence(setup, seed),
        "notes_leak": float(notes[0, 2]),
        "notes_visible": float(notes[0, :2].sum()),
        "nan": float(_mask_empty_row(setup).isnan().any()),
    }


def _padded_accuracy(trained: Trained) -> float:
    """Accuracy on the same rows with more padding, which should change nothing."""
    right, count = 0, 0
    with evaluating(trained.model):
        for batch in trained.test_batches():
            assert batch.source is not None
            parts = (batch.source, batch.expected, batch.is_counted)
            more = [torch.nn.functional.pad(part, (0, _N_MORE_PADS)) for part in parts]
            padded = LabBatch(more[0], None, more[1], more[2])
            right += int((counted_logits(trained.model, padded).argmax(-1) == batch.expected[batch.is_counted]).sum())
            count += batch.n_tokens
    return right / count


def _future_influence(setup: Setup, seed: int) -> float:
    """How much the output of earlier positions of an untrained causal model changes with the last symbol."""
    task = Reorder(lengths=(12, 12), shape="decoder")
    model = make_model(replace(setup, task=task), seed)
    target = task.batch(64, Generator().manual_seed(seed)).target
    assert target is not None and isinstance(model, Transformer)
    other = target.clone()
    other[:, -1] = 4 + (target[:, -1] - 4 + 1) % task.n_symbols
    with evaluating(model):
        before, after = (model.hidden(None, ids)[:, :-1].double() for ids in (target, other))
    return float(((before - after).norm(dim=-1) / before.norm(dim=-1)).mean())


def _mask_notes(setup: Setup) -> Tensor:
    """The weights of the example in which the third key is hidden."""
    scores = _NOTES_Q @ _NOTES_K.mT / 3**0.5
    visible = torch.tensor([[True, True, False]])
    return mask_in(setup.extra["precision"], setup.extra["masking"], scores, visible).double()


def _mask_empty_row(setup: Setup) -> Tensor:
    """The weights of a query that may see nothing."""
    visible = torch.zeros(1, 3, dtype=torch.bool)
    return mask_in(setup.extra["precision"], setup.extra["masking"], torch.zeros(1, 3), visible)


def zero_after(scores: Scores, visible: Visible) -> Scores:
    """Softmax over all keys, then weight 0 for hidden ones: a row sums to less than 1."""
    return scores.softmax(-1).masked_fill(~visible, 0.0)


def renormalized(scores: Scores, visible: Visible) -> Scores:
    """`zero_after`, divided by the sum of each row; a row whose visible weights underflow stays 0."""
    weights = zero_after(scores, visible)
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def add_1000(scores: Scores, visible: Visible) -> Scores:
    """−1000 added to the scores of hidden keys."""
    return _add(scores, visible, -1e3)


def add_1e9(scores: Scores, visible: Visible) -> Scores:
    """−10⁹ added to the scores of hidden keys; float16 ends at −65,504, so that it becomes −∞ there."""
    return _add(scores, visible, -1e9)


def _add(scores: Scores, visible: Visible, value: float) -> Scores:
    return (scores + (~visible).to(scores.dtype) * value).softmax(-1)


MASKINGS: dict[str, Masking] = {
    "infinity": masked_softmax,
    "zero": zero_after,
    "renormalized": renormalized,
    "1000": add_1000,
    "1e9": add_1e9,
}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def mask_in(precision: str, masking: str, scores: Scores, visible: Visible) -> Scores:
    """The weights of a masking, computed in this precision."""
    return MASKINGS[masking](scores.to(PRECISIONS[precision]), visible).to(scores.dtype)


class MaskedAttention(MultiHeadAttention):
    """Attention with another masking; always explicit. It takes the parts of an attention of the model."""

    def __init__(self, replaced: MultiHeadAttention, masking: str, precision: str) -> None:
        super().__init__(
            replaced.name,
            replaced.heads.n_heads * replaced.heads.value_width,
            replaced.heads,
            tuple(replaced.groups.tolist()),
            Strategies(replaced.project, replaced.scores, replaced.positions),
            dropout=replaced.dropout,
        )
        self.head_dropout, self.output = replaced.head_dropout, replaced.output
        self.masking, self.precision = masking, precision

    def _attend_explicit(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D2"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
        tap: Tap | None,
    ) -> Float[Tensor, "B H Q E"]:
        scores = self.scores(q, k, view)
        scores = scores if bias is None else scores + bias
        weights = mask_in(self.precision, self.masking, scores, view.visible)
        if tap is not None:
            tap.receive(f"{self.name}.weights", weights)
            tap.receive(f"{self.name}.scores", scores.masked_fill(~view.visible, -math.inf))
        return weights @ v

    def _attend_fused(
        self,
        form: DotForm,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
    ) -> Float[Tensor, "B H Q E"]:
        return self._attend_explicit(q, k, v, view, bias, None)


def with_masking(model: nn.Module, masking: str, precision: str) -> nn.Module:
    """Hide keys in this way in every attention, with scores and weights in this precision."""
    return replace_modules(model, MultiHeadAttention, lambda attention: MaskedAttention(attention, masking, precision))
