"""Training of language: windows of documents, packed into rows that do not attend to one another, and their loss."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import Windows, pack
from manyheads.model import Transformer, projected_loss
from manyheads.model.masks import View
from manyheads.model.transformer import DecoderState
from manyheads.tasks.document_task import describe_windows, epoch_windows
from manyheads.tasks.task import TrainingData
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, Tokenizer

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


@dataclass(frozen=True)
class LanguageTrainingTask:
    """Documents as the training loop sees them."""

    model: Transformer
    tokenizer: Tokenizer
    data: TrainingData

    def plan(self, epoch: int) -> list[Plan]:
        """Windows of the documents, cut differently in every epoch, packed into rows."""
        data, context = self.data, self.model.settings.max_length
        return plan_rows(
            epoch_windows(data, data.encoded.lengths[:, 0], context, epoch),
            context,
            data.batch_tokens,
            seed=data.seed,
            epoch=epoch,
            one_per_row=self.model.settings.mixes_positions,
        )

    def split(self, plan: Plan, n_parts: int) -> list[Plan]:
        """Divide the plan of a batch by its rows, numbered from 0 again in each part."""
        return split_rows(plan, n_parts)

    def make(self, plan: Plan, seed: int) -> PackedBatch:
        """Make one batch; nothing in it is random."""
        column = self.data.encoded.columns[0]
        batch = make_rows(plan, lambda index: column[index], self.model.device)
        self.data.encoded.release()
        return batch

    def loss(self, batch: PackedBatch, step: int) -> Tensor:
        """Cross-entropy per token, including EOS."""
        hidden, written = hidden_of(self.model, batch)
        return projected_loss(*self.model.output.factors(hidden[None]), written, 0.0)

    def describe(self, plan: Plan) -> str:
        """The number of windows in a batch, and the beginnings of the first three."""
        return describe_windows(self.data, self.tokenizer, plan[:, 1:])
