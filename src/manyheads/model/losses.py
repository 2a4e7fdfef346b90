"""Losses: label-smoothed cross-entropy as the 2017 code had it, and R-Drop's, which has two passes agree.

`smoothed_cross_entropy` and `symmetric_kl` say what they are. `projected_loss` gives the same numbers from the
vectors before the output matrix, some rows at a time: the logits of a whole batch, the largest thing a small
model makes, never exist, and the loss and its gradient took 0.75 s where 2.0 s had gone (R-Drop, 8,000 rows,
6,000 words, one thread).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

_ROWS_AT_ONCE = 256  # fewer multiply slower (128: by a seventh), more no faster


def smoothed_cross_entropy(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], smoothing: float
) -> Float[Tensor, ""]:
    """Mean over N real tokens; the right class is worth 1 − ε, every other ε / (V − 1).

    PyTorch spreads its ε over all V classes, the right one included; ε V / (V − 1) makes the two the same.
    """
    n_classes = logits.size(-1)
    return F.cross_entropy(logits, targets, label_smoothing=smoothing * n_classes / (n_classes - 1))


def symmetric_kl(one: Float[Tensor, "N V"], other: Float[Tensor, "N V"]) -> Float[Tensor, ""]:
    """The Kullback–Leibler divergences in both directions, halved: ½ Σ (p − q)(ln p − ln q), the mean over N."""
    one, other = one.log_softmax(-1), other.log_softmax(-1)
    return 0.5 * ((one.exp() - other.exp()) * (one - other)).sum(-1).mean()


def projected_loss(
    hidden: Float[Tensor, "P N W"],
    weight: Float[Tensor, "V W"],
    targets: Int[Tensor, " N"],
    smoothing: float,
    consistency: float = 0.0,
) -> Float[Tensor, ""]:
    """The mean smoothed cross-entropy of P passes (1 or 2) over the same N positions; of two also α/2 · symmetric_kl."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):  # which knows nothing of functions such as ours
        hidden = hidden.to(torch.get_autocast_dtype(device))
    loss: Tensor = _ProjectedLoss.apply(hidden, weight, targets, smoothing, consistency)  # type: ignore[no-untyped-call]
    return loss


class _ProjectedLoss(torch.autograd.Function):
    """Finds the gradient together with the loss, while a few rows' probabilities are at hand.

    With p the softmax of a row's logits and y its smoothed target, ∂ cross-entropy / ∂ logits = p − y. With q the
    other pass's p, d = ln p − ln q and KL = Σ p d, ∂ symmetric_kl / ∂ logits = ½ (p (d − KL) + p − q).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Float[Tensor, "P N W"],
        weight: Float[Tensor, "V W"],
        targets: Int[Tensor, " N"],
        smoothing: float,
        consistency: float,
    ) -> Float[Tensor, ""]:
        n_passes, n_rows, _ = hidden.shape
        off = smoothing / (weight.size(0) - 1)  # y of a wrong word; the right one has `off + more`
        more = 1.0 - smoothing - off
        matrix = weight.to(hidden.dtype)
        hidden_gradient, weight_gradient = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=weight.dtype, device=weight.device)
        # Two tables a pass, used again for every part: fresh memory would have to be fetched each time.
        room = weight.new_empty(2, n_passes, min(_ROWS_AT_ONCE, n_rows), weight.size(0))
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
            right = targets[rows].unsqueeze(-1)
            tables = room[:, :, : rows.stop - start]
            passes = [_Probabilities.of(one[rows], matrix, *tables[:, index]) for index, one in enumerate(hidden)]
            for each in passes:
                total += each.normalizer.sum() - more * each.logits.gather(1, right).sum()
            if n_passes == 2 and consistency:
                divergence, gradients = _agree(passes[0], passes[1], consistency / 2)
                total += divergence
            else:
                gradients = [each.probabilities for each in passes]
            for index, gradient in enumerate(gradients):
                gradient.scatter_add_(1, right, gradient.new_full(right.shape, -more))
                gradient = gradient.to(hidden.dtype)
                torch.mm(gradient, matrix, out=hidden_gradient[index, rows])
                if hidden.dtype == weight.dtype:
                    weight_gradient.addmm_(gradient.mT, hidden[index, rows])
                else:
                    weight_gradient += gradient.mT @ hidden[index, rows]
        # What every word has of y, the same everywhere, need not go through the tables: sums do.
        all_hidden, all_words = hidden.sum((0, 1), dtype=weight.dtype), weight.sum(0)
        total -= off * (all_hidden @ all_words)
        hidden_gradient -= off * all_words.to(hidden.dtype)
        weight_gradient -= off * all_hidden
        n_terms = n_passes * n_rows
        ctx.save_for_backward(hidden_gradient.div_(n_terms), weight_gradient.div_(n_terms))
        return total / n_terms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        (upstream,) = gradients
        return hidden_gradient * upstream, weight_gradient * upstream, None, None, None


@dataclass(frozen=True, slots=True)
class _Probabilities:
    """Some rows' logits, their softmax p, and the normalizer z: ln p = logits − z."""

    logits: Float[Tensor, "N V"]
    probabilities: Float[Tensor, "N V"]
    normalizer: Float[Tensor, " N"]

    @classmethod
    def of(
        cls,
        hidden: Float[Tensor, "N W"],
        matrix: Float[Tensor, "V W"],
        logits: Float[Tensor, "N V"],
        probabilities: Float[Tensor, "N V"],
    ) -> "_Probabilities":
        """Computed into these two tables, with one exponential: z is the largest logit less ln of its p."""
        if hidden.dtype == logits.dtype:
            torch.mm(hidden, matrix.mT, out=logits)
        else:
            logits.copy_(hidden @ matrix.mT)
        torch.softmax(logits, -1, out=probabilities)
        return cls(logits, probabilities, logits.amax(-1) - probabilities.amax(-1).log())


def _agree(
    one: _Probabilities, other: _Probabilities, strength: float
) -> tuple[Float[Tensor, ""], list[Float[Tensor, "N V"]]]:
    """Both directions' divergence, summed; p of each pass with the divergence's gradient added. `one` is used up."""
    p, q = one.probabilities, other.probabilities
    difference = one.logits.sub_(other.logits).sub_((one.normalizer - other.normalizer).unsqueeze(-1))
    forth, back = (p * difference).sum(-1, keepdim=True), -(q * difference).sum(-1, keepdim=True)
    gradients = [
        (difference - forth).mul_(p).add_(p).sub_(q).mul_(strength).add_(p),
        difference.neg_().sub_(back).mul_(q).add_(q).sub_(p).mul_(strength).add_(q),
    ]
    return strength * (forth.sum() + back.sum()), gradients
