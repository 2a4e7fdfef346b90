"""Settings and training of masked: which tokens are masked, batches of masked texts, and their loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import Windows, pad, plan_batches
from manyheads.model import projected_loss
from manyheads.settings import Range, raise_faults, type_faults
from manyheads.tasks.document_task import describe_windows, epoch_windows
from manyheads.tasks.task import TaskSettings, TrainingData
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from manyheads.text.tokens.words import WordTable

if TYPE_CHECKING:
    from manyheads.tasks.masked.masked_task import Masked


# Text is never encoded as UNK, since bytes spell unknown characters: its embedding is free for the mask.
MASK = UNK
MASK_TEXT = "[MASK]"  # a masked token in a text for `predict`
FIRST_TOKEN = EOS + 1  # after the special tokens

_MASKED, _REPLACED = 0.8, 0.1  # shares of the chosen tokens; the others stay unchanged (Devlin 2019)


@dataclass(frozen=True, kw_only=True)
class MaskedSettings(TaskSettings):
    """Which tokens of a text are masked."""

    kind: Literal["masked"] = "masked"  # predict masked tokens
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    mask_probability: Annotated[float, Range(greater_than=0, at_most=0.4)] = 0.15  # share of the tokens that are masked
    whole_words: bool = False  # mask all tokens of a word together

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))


@dataclass(frozen=True)
class MaskedBatch:
    """Texts with some tokens masked."""

    ids: Int[Tensor, "B S"]
    is_masked: Bool[Tensor, "B S"]
    masked_ids: Int[Tensor, " N"]  # the original tokens, row by row

    @property
    def n_tokens(self) -> int:
        """The number of masked tokens, over which the loss is averaged."""
        return len(self.masked_ids)


@dataclass(frozen=True)
class Masker:
    """Chooses the tokens to mask."""

    settings: MaskedSettings
    vocab_size: int
    words: WordTable | None  # if whole words are masked
    closes: int | None = None  # the id after a text

    @classmethod
    def of(cls, tokenizer: Tokenizer, settings: MaskedSettings) -> "Masker":
        """Create a masker for a tokenizer."""
        words = WordTable.of(tokenizer) if settings.whole_words else None
        return cls(settings, tokenizer.vocab_size, words, tokenizer.closes)

    def mask(self, texts: Sequence[NDArray[np.integer]], seed: int, device: torch.device) -> MaskedBatch:
        """Mask a batch of texts, each after BOS; the result depends on the arguments only."""
        rng = np.random.default_rng(seed)
        ids = pad(texts, before=BOS, after=self.closes)
        is_masked = np.zeros(ids.shape, dtype=np.bool_)
        for row, text in enumerate(texts):
            is_masked[row, 1 : len(text) + 1] = self._choose(text, rng)
        originals = ids[is_masked]
        draws = rng.random(len(originals))
        others = rng.integers(FIRST_TOKEN, self.vocab_size, size=len(originals))
        ids[is_masked] = np.where(draws < _MASKED, MASK, np.where(draws < _MASKED + _REPLACED, others, originals))
        return MaskedBatch(*(torch.from_numpy(array).to(device) for array in (ids, is_masked, originals)))

    def _choose(self, text: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Choose about `mask_probability` of a text's tokens, at least one; with a word table, whole words."""
        n_tokens = max(1, round(self.settings.mask_probability * len(text)))
        numbers = np.arange(len(text)) if self.words is None else self.words.word_ids(text)
        ranks = rng.permutation(int(numbers[-1]) + 1 if len(numbers) else 0)
        sizes = np.bincount(numbers)[np.argsort(ranks)]
        n_words = int(np.searchsorted(np.cumsum(sizes), n_tokens)) + 1
        return np.asarray(ranks[numbers] < n_words)


@dataclass(frozen=True)
class MaskedTrainingTask:
    """Documents as the training loop sees them."""

    task: "Masked"
    data: TrainingData

    def plan(self, epoch: int) -> list[Windows]:
        """Windows of the documents in batches of similar length."""
        data = self.data
        windows = epoch_windows(data, data.encoded.lengths[:, 0] - 1, self.task.limit, epoch)
        sizes = (windows[:, 2] - windows[:, 1] + 1)[:, None]
        batches = plan_batches(sizes, data.batch_tokens, seed=data.seed, epoch=epoch)
        return [windows[batch] for batch in batches]

    def make(self, plan: Windows, seed: int) -> MaskedBatch:
        """Make one batch; the masks depend on the seed only."""
        column = self.data.encoded.columns[0]
        texts = [column[document][start:end].astype(np.int64) for document, start, end in plan.tolist()]
        batch = self.task.masker.mask(texts, seed, self.task.model.device)
        self.data.encoded.release()
        return batch

    def loss(self, batch: MaskedBatch, step: int) -> Tensor:
        """Cross-entropy per masked token; other positions are not projected."""
        model = self.task.model
        hidden = model.encode(batch.ids, batch.ids != PAD)
        return projected_loss(*model.output.factors(hidden[batch.is_masked][None]), batch.masked_ids, 0.0)

    def describe(self, plan: Windows) -> str:
        """The number of windows in a batch, and the beginnings of the first three."""
        return describe_windows(self.data, self.task.tokenizer, plan)
