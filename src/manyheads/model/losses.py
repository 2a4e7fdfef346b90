"""Losses: label-smoothed cross-entropy as the 2017 code had it, and R-Drop's, which has two passes agree.

`smoothed_cross_entropy` and `disagreement` say what they are. `projected_loss` gives the same numbers from the
vectors before the output matrix, some rows at a time: the logits of a whole batch, the largest thing a small
model makes, never exist, and the loss and its gradient took 0.75 s where 2.0 s had gone (R-Drop, 8,000 rows,
6,000 words, one thread).
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

_ROWS_AT_ONCE = 128


def smoothed_cross_entropy(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], smoothing: float
) -> Float[Tensor, ""]:
    """Mean over N real tokens; the right class is worth 1 − ε, every other ε / (V − 1).

    PyTorch spreads its ε over all V classes, the right one included; ε V / (V − 1) makes the two the same.
    """
    n_classes = logits.size(-1)
    return F.cross_entropy(logits, targets, label_smoothing=smoothing * n_classes / (n_classes - 1))


def disagreement(one: Float[Tensor, "N V"], other: Float[Tensor, "N V"]) -> Float[Tensor, ""]:
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
    """The mean smoothed cross-entropy of P passes (1 or 2) over the same N places; of two also α/2 · disagreement."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):  # which knows nothing of functions such as ours
        hidden = hidden.to(torch.get_autocast_dtype(device))
    loss: Tensor = _ProjectedLoss.apply(hidden, weight, targets, smoothing, consistency)  # type: ignore[no-untyped-call]
    return loss


class _ProjectedLoss(torch.autograd.Function):
    """Finds the gradient together with the loss, while a few rows' probabilities are at hand.

    With p the softmax of a row's logits and y its smoothed target, ∂ cross-entropy / ∂ logits = p − y. With q the
    other pass's p, d = ln p − ln q and KL = Σ p d, ∂ disagreement / ∂ logits = ½ (p (d − KL) + p − q).
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
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
            right = targets[rows].unsqueeze(-1)
            logs, chances = zip(
                *(_log_softmax((one[rows] @ matrix.mT).to(weight.dtype)) for one in hidden), strict=True
            )
            for log in logs:
                total -= more * log.gather(1, right).sum() + off * log.sum()
            if n_passes == 2 and consistency:
                divergence, gradients = _agree(logs, chances, consistency / 2)
                total += divergence
            else:
                gradients = list(chances)
            for index, gradient in enumerate(gradients):
                gradient.sub_(off).scatter_add_(1, right, gradient.new_full(right.shape, -more))
                gradient = gradient.to(hidden.dtype)
                torch.mm(gradient, matrix, out=hidden_gradient[index, rows])
                if hidden.dtype == weight.dtype:
                    weight_gradient.addmm_(gradient.mT, hidden[index, rows])
                else:
                    weight_gradient += gradient.mT @ hidden[index, rows]
        n_terms = n_passes * n_rows
        ctx.save_for_backward(hidden_gradient.div_(n_terms), weight_gradient.div_(n_terms))
        return total / n_terms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        (upstream,) = gradients
        return hidden_gradient * upstream, weight_gradient * upstream, None, None, None


def _log_softmax(logits: Float[Tensor, "N V"]) -> tuple[Float[Tensor, "N V"], Float[Tensor, "N V"]]:
    """ln p and p, from one exponential: with m the largest logit, ln p = logits − (m − ln p_m). `logits` is used up."""
    chances = logits.softmax(-1)
    largest, where = logits.max(-1, keepdim=True)
    return logits.sub_(largest - chances.gather(1, where).log()), chances


def _agree(
    logs: Sequence[Float[Tensor, "N V"]], chances: Sequence[Float[Tensor, "N V"]], strength: float
) -> tuple[Float[Tensor, ""], list[Float[Tensor, "N V"]]]:
    """Both directions' divergence, summed; p of each pass with the divergence's gradient added. `logs` are used up."""
    p, q = chances
    difference = logs[0].sub_(logs[1])
    forth, back = (p * difference).sum(-1, keepdim=True), -(q * difference).sum(-1, keepdim=True)
    gradients = [
        (difference - forth).mul_(p).add_(p).sub_(q).mul_(strength).add_(p),
        difference.neg_().sub_(back).mul_(q).add_(q).sub_(p).mul_(strength).add_(q),
    ]
    return strength * (forth.sum() + back.sum()), gradients
