"""`Head`: one head of one attention, and how people write it: `encoder.0.self/2`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.errors import LensError
from manyheads.model import Transformer
from manyheads.settings import did_you_mean

_FORM = re.compile(r"(?P<attention>[a-z]+\.\d+\.[a-z]+)/(?P<number>\d+)")


@dataclass(frozen=True)
class Head:
    """A head by its attention's name and its number there, from 0, in the model at hand."""

    attention: str
    number: int

    def __str__(self) -> str:
        return f"{self.attention}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that is written so."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise LensError(f"{text!r} is not a head. Write attention/number, like encoder.0.self/2.")
        return cls(found["attention"], int(found["number"]))


def heads_of(model: Transformer) -> list[Head]:
    """Every head, in the order a forward pass meets them."""
    return [Head(one.name, number) for one in model.attentions() for number in range(one.heads.n_heads)]


def find_heads(model: Transformer, wanted: Iterable[Head | str]) -> list[Head]:
    """These heads of a model, each once, in the model's order; one that it does not have is refused.

    An attention's name alone, like `encoder.0.self`, means all of its heads.
    """
    n_heads = {attention.name: attention.heads.n_heads for attention in model.attentions()}
    found: set[Head] = set()
    for one in wanted:
        if isinstance(one, str) and one.strip() in n_heads:
            found.update(Head(one.strip(), number) for number in range(n_heads[one.strip()]))
            continue
        head = Head.parse(one) if isinstance(one, str) else one
        if head.attention not in n_heads:
            raise LensError(f"There is no head {head}. {did_you_mean(head.attention, n_heads)}")
        if not 0 <= head.number < n_heads[head.attention]:
            last = n_heads[head.attention] - 1
            raise LensError(f"There is no head {head}: {head.attention} has heads 0 to {last}.")
        found.add(head)
    return [head for head in heads_of(model) if head in found]


def ablation_gates(model: Transformer, heads: Iterable[Head]) -> dict[str, Tensor]:
    """Gates of 0 for these heads and of 1 for the other heads of their attentions, to pass to `gated`."""
    n_heads = {attention.name: attention.heads.n_heads for attention in model.attentions()}
    gates: dict[str, Tensor] = {}
    for head in heads:
        gates.setdefault(head.attention, torch.ones(n_heads[head.attention], device=model.device))[head.number] = 0.0
    return gates
