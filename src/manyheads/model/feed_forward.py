"""The position-wise feed-forward network."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model.dropout import Dropout
from manyheads.model.settings import ModelSettings


def _gelu_tanh(x: Tensor) -> Tensor:
    """GELU by the approximation of GPT-2 and T5."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": _gelu_tanh,
    "silu": F.silu,
}
GATES: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu, "geglu-tanh": _gelu_tanh}


class FeedForward(nn.Module):
    """f(x W_1 + b_1) W_2 + b_2, with f = ReLU in 2017."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        bias = settings.feed_forward_bias
        self.activation = ACTIVATIONS[settings.activation]
        self.inner = nn.Linear(settings.width, settings.feed_forward_width, bias)
        self.outer = nn.Linear(settings.feed_forward_width, settings.width, bias)
        self.dropout = Dropout(settings.feed_forward_dropout)

    def forward(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B Q W"]:
        """Transform each position independently."""
        return self.outer(self.dropout(self.activation(self.inner(x))))


class GatedFeedForward(nn.Module):
    """(f(x W_g) · x W_1) W_2: SwiGLU with f = swish, GEGLU with f = GELU (Shazeer 2020)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        bias = settings.feed_forward_bias
        self.activation = GATES[settings.activation]
        self.gate = nn.Linear(settings.width, settings.feed_forward_width, bias)
        self.inner = nn.Linear(settings.width, settings.feed_forward_width, bias)
        self.outer = nn.Linear(settings.feed_forward_width, settings.width, bias)
        self.dropout = Dropout(settings.feed_forward_dropout)

    def forward(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B Q W"]:
        """Transform each position independently."""
        return self.outer(self.dropout(self.activation(self.gate(x)) * self.inner(x)))


def make_feed_forward(settings: ModelSettings) -> nn.Module:
    """The feed-forward network that the settings name."""
    return GatedFeedForward(settings) if settings.activation in GATES else FeedForward(settings)
