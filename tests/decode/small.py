"""Small subjects for decoding: steppers over tables, and random models."""

from functools import cache
from typing import Any

import numpy
import torch
from torch import Tensor

from manyheads.model import ModelSettings, Transformer

PAD, UNK, BOS, EOS = range(4)
FORBIDDEN = (PAD, UNK)
SPECIAL = {"bos": BOS, "eos": EOS, "forbidden": FORBIDDEN}


class TableStepper:
    """A random model: its log-probabilities are a function of (seed, name, prefix)."""

    device = torch.device("cpu")

    def __init__(self, seed: int, names: list[int], vocab_size: int = 8, spread: float = 2.0) -> None:
        self.rows = [(name, ()) for name in names]
        self.calls: list[int] = []  # how many rows each step had
        self.n_selects = 0

        @cache
        def table(name: int, prefix: tuple[int, ...]) -> list[float]:
            logits = numpy.random.default_rng([seed, name, *prefix]).normal(size=vocab_size) * spread
            return torch.from_numpy(logits).log_softmax(0).tolist()

        self.table = table

    def step(self, ids: Tensor) -> Tensor:
        self.rows = [(name, (*prefix, i)) for (name, prefix), i in zip(self.rows, ids.tolist(), strict=True)]
        self.calls.append(len(self.rows))
        return torch.tensor([self.table(*row) for row in self.rows], dtype=torch.float64)

    def select(self, rows: Tensor) -> None:
        self.n_selects += 1
        chosen = [[self.rows[r] for r in group] for group in rows.tolist()]
        assert all(len({name for name, _ in group}) == 1 for group in chosen), "a group is of one sentence"
        self.rows = [row for group in chosen for row in group]


class FixedStepper:
    """The same log-probabilities at every step."""

    device = torch.device("cpu")

    def __init__(self, log_probabilities: list[float]) -> None:
        self.log_probabilities = torch.tensor(log_probabilities, dtype=torch.float64)
        self.n_steps = 0

    def step(self, ids: Tensor) -> Tensor:
        self.n_steps += 1
        return self.log_probabilities.repeat(len(ids), 1)

    def select(self, rows: Tensor) -> None:
        pass


def random_model(seed: int = 0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 9, "width": 16, "feed_forward_width": 24, "n_heads": 4, "max_length": 40}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 2, "tie_output": False}
    model = Transformer(ModelSettings(**{**sizes, **layers, **changes})).double().eval()
    with torch.no_grad():
        model.output.weight.mul_(3.0)  # so that the choices are clear
    return model


def random_sources(seed: int, lengths: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 9, (len(lengths), max(lengths)), generator=generator)
    is_real = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return source.masked_fill(~is_real, PAD), is_real


KINDS: dict[str, dict[str, Any]] = {
    "2017": {},
    "learned, pre": {"positions": "learned", "norm_placement": "pre"},
    "rotary, grouped, rms": {"positions": "rotary", "n_key_heads": 2, "norm": "rms"},
    "alibi, one key head, pre": {"positions": "alibi", "n_key_heads": 1, "norm_placement": "pre"},
    "no positions, batch norm": {"positions": "none", "norm": "batch"},
    "dense synthesizer": {"scores": "dense-synthesizer"},
    "random synthesizer": {"scores": "random-synthesizer"},
    "additive": {"scores": "additive"},
}
