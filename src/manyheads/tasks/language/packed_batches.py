"""Packed batches: rows of several windows of documents that do not attend to one another."""

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
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD

# The plan of a batch: row, document, start and end of each window.
Plan = NDArray[np.int64]


@dataclass(frozen=True)
class PackedBatch:
    """Windows packed into rows; each begins with BOS."""

    read: Int[Tensor, "B T"]
    written: Int[Tensor, "B T"]
    segment_ids: Int[Tensor, "B T"]  # the window of its row that a position belongs to: 1, 2, 3 …; 0 is padding
    n_tokens: int


def plan_rows(
    windows: Windows, context: int, batch_tokens: int, *, seed: int, epoch: int, one_per_row: bool
) -> list[Plan]:
    """Pack windows into rows and rows into batches; with `one_per_row`, each window has a row of its own."""
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


def split_rows(plan: Plan, n_parts: int) -> list[Plan]:
    """Divide the rows of a plan among this many plans; some are empty if there are too few rows."""
    parts = np.array_split(np.unique(plan[:, 0]), n_parts)
    chosen = [plan[np.isin(plan[:, 0], rows)] for rows in parts]
    return [np.column_stack([np.unique(part[:, 0], return_inverse=True)[1], part[:, 1:]]) for part in chosen]


def make_rows(plan: Plan, ids_of: Callable[[int], NDArray[np.generic]], device: torch.device) -> PackedBatch:
    """Make the batch of a plan; a window that reaches past its document's last id ends in EOS."""
    sizes = np.bincount(plan[:, 0], weights=plan[:, 3] - plan[:, 2]).astype(np.int64)
    read, written = (np.full((len(sizes), sizes.max()), PAD, dtype=np.int64) for _ in range(2))
    segment_ids = np.zeros_like(read)
    filled, count = np.zeros_like(sizes), np.zeros_like(sizes)
    for row, document, start, end in plan.tolist():
        ids = ids_of(document)
        positions = slice(filled[row], filled[row] + end - start)
        into = written[row, positions]
        into[: len(ids) - start] = ids[start:end]
        if end > len(ids):
            into[-1] = EOS
        read[row, positions.start] = BOS
        read[row, positions.start + 1 : positions.stop] = into[:-1]
        count[row] += 1
        segment_ids[row, positions] = count[row]
        filled[row] = positions.stop
    inputs, outputs, owners = (torch.from_numpy(array).to(device) for array in (read, written, segment_ids))
    return PackedBatch(inputs, outputs, owners, int(sizes.sum()))


def hidden_of(model: Transformer, batch: PackedBatch) -> tuple[Float[Tensor, "N W"], Int[Tensor, " N"]]:
    """The hidden vectors of all positions that are not padding, and the token each has to predict."""
    is_real = batch.segment_ids > 0
    state = DecoderState(None, None, is_real[:, :0], [])
    hidden = model.decode(batch.read, state, is_real=is_real, view=View.packed(batch.segment_ids))
    if is_real.all():
        return hidden.flatten(0, 1), batch.written.flatten()
    return hidden[is_real], batch.written[is_real]
