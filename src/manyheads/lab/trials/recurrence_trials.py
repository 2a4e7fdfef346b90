"""An LSTM language model as the rival of a decoder, and how well each reaches back to a far token."""

import math
import time
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import LabBatch
from manyheads.lab.setup import Setup
from manyheads.lab.trial import counted_logits, make_model, train_model
from manyheads.model import Transformer
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.masks import View, count_positions
from manyheads.model.tap import Tap

_N_ROWS = 64
_N_TIMED = 20


def recurrence(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, the gradient at a far token, and the time of a training step."""
    start = make_model(setup, seed)
    gradient = far_gradient(start, setup, seed)
    milliseconds = 1000 * step_seconds(start, setup, seed)
    trained = train_model(setup, seed)
    return {**trained.outcome(), "gradient": gradient, "milliseconds": milliseconds}


class RecurrentModel(nn.Module):
    """An LSTM; with attention, tanh(W_c [context; state]) with the scores state · W_a · earlier state (Luong 2015).

    It has the interface of a Transformer of shape "decoder", and ties the embedding to the output as that does.
    """

    def __init__(self, vocab_size: int, width: int, hidden_width: int, *, has_attention: bool) -> None:
        super().__init__()
        self.output = TokenEmbedding(vocab_size, width)
        self.scale = math.sqrt(width)
        self.lstm = nn.LSTM(width, hidden_width, batch_first=True)
        self.attention = nn.Linear(hidden_width, hidden_width, bias=False) if has_attention else None
        self.projection = nn.Linear(hidden_width * (2 if has_attention else 1), width)
        _open_forget_gates(self.lstm)

    def hidden(
        self,
        source: Int[Tensor, "B S"] | None = None,
        target: Int[Tensor, "B T"] | None = None,
        *,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        target_is_real: Bool[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T W"]:
        """The vectors from which `output.logits` computes the logits; a source or a tap is not supported."""
        if target is None or source is not None or tap is not None:
            raise TypeError("A RecurrentModel reads a target only, and has nothing to observe.")
        states, _ = self.lstm(self.scale * self.output(target))
        if self.attention is not None:
            is_real = torch.ones_like(target, dtype=torch.bool) if target_is_real is None else target_is_real
            states = torch.cat([self._context(states, is_real), states], dim=-1)
        return torch.tanh(self.projection(states)) * self.scale

    def _context(self, states: Float[Tensor, "B T H"], is_real: Bool[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """What each position finds among the states up to its own."""
        assert self.attention is not None
        visible = View.causal(is_real, count_positions(is_real), is_real.size(1)).visible[:, 0]
        scores = self.attention(states) @ states.mT
        return scores.masked_fill(~visible, -torch.inf).softmax(-1) @ states

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


def as_lstm(model: nn.Module, *, has_attention: bool) -> nn.Module:
    """An LSTM with the vocabulary, the embedding width and, as nearly as possible, the parameter count of a decoder."""
    assert isinstance(model, Transformer)
    vocab_size, width = model.settings.vocab_size, model.settings.width

    def distance(hidden_width: int) -> int:
        return abs(_count(vocab_size, width, hidden_width, has_attention) - model.n_parameters)

    return RecurrentModel(vocab_size, width, min(range(1, 16 * width), key=distance), has_attention=has_attention)


def _count(vocab_size: int, width: int, hidden: int, has_attention: bool) -> int:
    """The number of parameters of a RecurrentModel."""
    gates = 4 * hidden * (width + hidden + 2)
    attention = hidden * hidden if has_attention else 0
    return vocab_size * width + gates + attention + (hidden * (2 if has_attention else 1) + 1) * width


@torch.no_grad()
def _open_forget_gates(lstm: Any) -> None:
    """Start with a forget bias of 1, so that the state lasts longer, as is usual (Jozefowicz 2015)."""
    hidden = lstm.hidden_size
    lstm.bias_ih_l0[hidden : 2 * hidden] = 1.0
    lstm.bias_hh_l0[hidden : 2 * hidden] = 0.0


def far_gradient(model: nn.Module, setup: Setup, seed: int) -> float:
    """The gradient of the loss at the first token of a row, divided by that at the last token, which asks."""
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    vectors: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        output.retain_grad()
        vectors.append(output)

    handles = [part.register_forward_hook(keep) for part in model.modules() if isinstance(part, TokenEmbedding)]
    _loss(model, batch).backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    gradient = vectors[0].grad
    assert gradient is not None
    norms = gradient.double().norm(dim=-1).mean(0)
    return float(norms[0] / norms[-1])


def step_seconds(model: nn.Module, setup: Setup, seed: int) -> float:
    """CPU seconds of one forward and backward pass over a training batch: the shortest of twenty.

    CPU time, and the shortest, because other processes may share the machine.
    """
    batch = setup.task.batch(setup.n_rows, Generator().manual_seed(seed))
    times = []
    for _ in range(_N_TIMED):
        started = time.process_time()
        _loss(model, batch).backward()
        times.append(time.process_time() - started)
    model.zero_grad()
    return min(times)


def _loss(model: nn.Module, batch: LabBatch) -> Tensor:
    return F.cross_entropy(counted_logits(model, batch), batch.expected[batch.is_counted])
