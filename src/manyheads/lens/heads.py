"""`Head`: one attention head and its name, such as `encoder.0.self/2`."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.errors import LensError
from manyheads.messages import _
from manyheads.model import Transformer

_NAME = re.compile(r"(?P<attention>[a-z]+\.\d+\.[a-z]+)/(?P<number>\d+)")


@dataclass(frozen=True)
class Head:
    """One head of one attention.

    `number` counts from 0 among the heads that the model has. In a pruned model it differs from the original number.
    """

    attention: str
    number: int

    def __str__(self) -> str:
        return f"{self.attention}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read a head from its name."""
        match = _NAME.fullmatch(text.strip())
        if match is None:
            raise LensError(_("{text!r} is not a head. Write attention/number, like encoder.0.self/2.", text=text))
        return cls(match["attention"], int(match["number"]))


def heads_of(model: Transformer) -> list[Head]:
    """Return every head of a model, in the order of a forward pass."""
    return [
        Head(attention.name, number) for attention in model.attentions() for number in range(attention.heads.n_heads)
    ]


def check_head(head: Head, n_heads: Mapping[str, int]) -> None:
    """Raise `LensError` for a head that does not exist; `n_heads` are those of each attention."""
    if head.attention not in n_heads:
        close = difflib.get_close_matches(head.attention, n_heads, n=1)
        if not close:
            raise LensError(
                _("There is no head {head}. Attentions: {attentions}.", head=head, attentions=", ".join(n_heads))
            )
        number = min(head.number, n_heads[close[0]] - 1)
        raise LensError(_("There is no head {head}. Did you mean {close}?", head=head, close=Head(close[0], number)))
    if not 0 <= head.number < n_heads[head.attention]:
        last = n_heads[head.attention] - 1
        raise LensError(
            _(
                "There is no head {head}: {attention} has heads 0 to {last}.",
                head=head,
                attention=head.attention,
                last=last,
            )
        )


def find_heads(model: Transformer, selection: Iterable[Head | str]) -> list[Head]:
    """Return the selected heads without duplicates, in the order of a forward pass.

    The name of an attention, such as `encoder.0.self`, selects all of its heads. Raises `LensError` for a head that the
    model does not have.
    """
    n_heads = {attention.name: attention.heads.n_heads for attention in model.attentions()}
    selected: set[Head] = set()
    for item in selection:
        if isinstance(item, str) and item.strip() in n_heads:
            selected.update(Head(item.strip(), number) for number in range(n_heads[item.strip()]))
            continue
        head = Head.parse(item) if isinstance(item, str) else item
        check_head(head, n_heads)
        selected.add(head)
    return [head for head in heads_of(model) if head in selected]


def ablation_gates(model: Transformer, heads: Iterable[Head]) -> dict[str, Tensor]:
    """Return gates for `gated`: 0 for these heads, 1 for the other heads of their attentions.

    The heads must exist; `find_heads` checks that.
    """
    n_heads = {attention.name: attention.heads.n_heads for attention in model.attentions()}
    gates: dict[str, Tensor] = {}
    for head in heads:
        gates.setdefault(head.attention, torch.ones(n_heads[head.attention], device=model.device))[head.number] = 0.0
    return gates
