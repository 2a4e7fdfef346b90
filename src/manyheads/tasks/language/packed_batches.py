"""Rows that hold several windows of documents, one after another, of which none sees any other."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import Windows, pack
from manyheads.model import Transformer
from manyheads.model.masks import View
from manyheads.model.transformer import DecoderState
from manyheads.text.tokenizer import BOS, EOS, PAD

# A plan of a batch: of each window, the row it stands in, its document, its start and its end.
Plan = NDArray[np.int64]


@dataclass(frozen=True)
class PackedBatch:
    """Windows in rows. Each begins with BOS: what came before it is not known."""

    read: Int[Tensor, "B T"]
    written: Int[Tensor, "B T"]
    segment_ids: Int[Tensor, "B T"]  # which window of its row a place belongs to: 1, 2, 3 …; 0 is padding
    n_tokens: int


def plan_rows(
    windows: Windows, context: int, batch_tokens: int, *, seed: int, epoch: int, one_per_row: bool
) -> list[Plan]:
    """Batches of as many rows as fit into the budget; `one_per_row`: each window has a row of its own."""
    sizes = windows[:, 2] - windows[:, 1]
    rows = pack(sizes, 0 if one_per_row else context, seed=seed, epoch=epoch)
    n_rows = max(1, batch_tokens // context)
    return [
        np.array(
            [
                (number, *windows[index].tolist())
                for number, row in enumerate(rows[start : start + n_rows])
                for index in row
            ]
        )
        for start in range(0, len(rows), n_rows)
    ]


def make_rows(plan: Plan, ids_of: Callable[[int], NDArray[np.generic]], device: torch.device) -> PackedBatch:
    """The batch of a plan. A window that reaches past its document's last id writes EOS there."""
    sizes = np.bincount(plan[:, 0], weights=plan[:, 3] - plan[:, 2]).astype(np.int64)
    read, written = (np.full((len(sizes), sizes.max()), PAD, dtype=np.int64) for _ in range(2))
    segment_ids = np.zeros_like(read)
    filled, count = np.zeros_like(sizes), np.zeros_like(sizes)
    for row, document, start, end in plan.tolist():
        ids = ids_of(document)
        places = slice(filled[row], filled[row] + end - start)
        into = written[row, places]
        into[: len(ids) - start] = ids[start:end]
        if end > len(ids):
            into[-1] = EOS
        read[row, places.start] = BOS
        read[row, places.start + 1 : places.stop] = into[:-1]
        count[row] += 1
        segment_ids[row, places] = count[row]
        filled[row] = places.stop
    inputs, wanted, owners = (torch.from_numpy(array).to(device) for array in (read, written, segment_ids))
    return PackedBatch(inputs, wanted, owners, int(sizes.sum()))


def hidden_of(model: Transformer, batch: PackedBatch) -> tuple[Float[Tensor, "N W"], Int[Tensor, " N"]]:
    """The vectors of all real places, row by row, and what each has to foretell."""
    is_real = batch.segment_ids > 0
    state = DecoderState(None, None, is_real[:, :0], [])
    hidden = model.decode(batch.read, state, is_real=is_real, view=View.packed(batch.segment_ids))
    if is_real.all():
        return hidden.flatten(0, 1), batch.written.flatten()
    return hidden[is_real], batch.written[is_real]
