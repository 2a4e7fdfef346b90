"""What depth does to an untrained model: how much gradient reaches the first layer, how alike the tokens become."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from manyheads.lab.setup import Setup
from manyheads.lab.trial import counted_logits, make_model, train_model

_N_ROWS = 64
_TINY = 1e-30  # the gradient of a deep stack without residual connections can underflow; a logarithm needs more than 0


def residual_path(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, and the gradient and the similarity of tokens before training."""
    return {
        "accuracy": train_model(setup, seed).test_scores()["accuracy"],
        "gradient": gradient_ratio(setup, seed),
        "similarity": token_similarity(setup, seed),
    }


def gradient_ratio(setup: Setup, seed: int) -> float:
    """The gradient norm of the first encoder block's weights divided by that of the last block's."""
    model: Any = make_model(setup, seed)
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    F.cross_entropy(counted_logits(model, batch), batch.expected[batch.is_counted]).backward()
    return max(_gradient_norm(model.encoder[0]), _TINY) / max(_gradient_norm(model.encoder[-1]), _TINY)


@torch.no_grad()
def token_similarity(setup: Setup, seed: int) -> float:
    """The mean cosine between the outputs of different positions of a row, after the last encoder block."""
    model: Any = make_model(setup, seed)
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    outputs: list[Tensor] = []
    model.encoder[-1].register_forward_hook(lambda _block, _inputs, output: outputs.append(output))
    counted_logits(model, batch)
    directions = F.normalize(outputs[0].double(), dim=-1)
    cosines = directions @ directions.mT
    n_tokens = cosines.size(-1)
    return float((cosines.sum((1, 2)) - n_tokens).mean() / (n_tokens * (n_tokens - 1)))


def _gradient_norm(block: nn.Module) -> float:
    gradients = [parameter.grad for parameter in block.parameters()]
    return float(sum(float(grad.double().square().sum()) for grad in gradients if grad is not None)) ** 0.5
