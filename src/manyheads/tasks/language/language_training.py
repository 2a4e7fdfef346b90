"""Training of language: packed batches of windows, and their loss."""

from dataclasses import dataclass

from torch import Tensor

from manyheads.model import Transformer, projected_loss
from manyheads.tasks.language.packed_batches import PackedBatch, Plan, hidden_of, make_rows, plan_rows, split_rows
from manyheads.tasks.monolingual_task import describe_windows, epoch_windows
from manyheads.tasks.task import TrainingData
from manyheads.text.tokens.tokenizer import Tokenizer


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
        return projected_loss(hidden[None], self.model.output.weight, written, 0.0)

    def describe(self, plan: Plan) -> str:
        """The number of windows in a batch, and the beginnings of the first three."""
        return describe_windows(self.data, self.tokenizer, plan[:, 1:])
