"""`Masked`: a masked language model, which predicts the tokens that are masked in a text.

An encoder pretrained on a user's own text knows its words before it is trained on labels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import Windows, choose_examples, cut_windows, pad, plan_batches
from manyheads.data.texts import chunks
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.metrics import MaskedCard, Tally, masked_card, share_tally
from manyheads.model import Transformer, evaluating, projected_loss
from manyheads.tasks.document_task import DocumentTask
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.masked.masked_init import MaskedInit
from manyheads.tasks.masked.settings import MaskedSettings
from manyheads.tasks.model_inputs import encoder_input, shift_spans
from manyheads.tasks.quickstart import Quickstart
from manyheads.tasks.task import ModelInput, Progress, TrainingData, ValidationResult
from manyheads.tasks.task_init import TaskInit
from manyheads.text.readers import Row
from manyheads.text.tokenizer import BOS, EOS, METASPACE, PAD, UNK, Token, Tokenizer
from manyheads.text.words import WordTable

MASK_TEXT = "[MASK]"  # marks a masked token in a text for `predict`
# Text is never encoded as UNK, since bytes spell unknown characters: its embedding is free for the mask.
MASK = UNK
ACCURACY = "accuracy of masked tokens"

_FIRST_TOKEN = EOS + 1  # after the special tokens
_MASKED, _REPLACED = 0.8, 0.1  # shares of the chosen tokens; the others stay unchanged (Devlin 2019)
_BATCH_TOKENS = 4096
_VALIDATION_TOKENS = 20_000  # tokens
_GUESSES = 5
_SAMPLES = 4
_SHOWN = 200  # characters of a sample


@dataclass(frozen=True)
class Guess:
    """A candidate token for a mask, with its probability."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filling:
    """A text with its masks filled in."""

    text: str
    gaps: Sequence[Sequence[Guess]]  # for each mask, the most probable tokens, best first

    @property
    def answer(self) -> str:
        """The text with the best token for each mask."""
        return self.text

    def line(self) -> str:
        """The text as one line."""
        return self.text.replace("\r", " ").replace("\n", " ")


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

    @classmethod
    def of(cls, tokenizer: Tokenizer, settings: MaskedSettings) -> "Masker":
        """Create a masker for a tokenizer."""
        words = WordTable.of(tokenizer) if settings.whole_words else None
        return cls(settings, tokenizer.vocab_size, words)

    def mask(self, texts: Sequence[NDArray[np.integer]], seed: int, device: torch.device) -> MaskedBatch:
        """Mask a batch of texts, each after BOS; the result depends on the arguments only."""
        rng = np.random.default_rng(seed)
        ids = pad(texts, before=BOS)
        is_masked = np.zeros(ids.shape, dtype=np.bool_)
        for row, text in enumerate(texts):
            is_masked[row, 1 : len(text) + 1] = self._choose(text, rng)
        originals = ids[is_masked]
        draw = rng.random(len(originals))
        others = rng.integers(_FIRST_TOKEN, self.vocab_size, size=len(originals))
        ids[is_masked] = np.where(draw < _MASKED, MASK, np.where(draw < _MASKED + _REPLACED, others, originals))
        return MaskedBatch(*(torch.from_numpy(array).to(device) for array in (ids, is_masked, originals)))

    def _choose(self, text: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Choose about the given share of a text's tokens, at least one; with a word table, whole words."""
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
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        lengths = data.encoded.lengths[:, 0] - 1
        lengths = lengths if chosen is None else lengths[chosen]
        windows = cut_windows(lengths, self.task.limit, seed=data.seed, epoch=epoch)
        if chosen is not None:
            windows[:, 0] = chosen[windows[:, 0]]
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
        return projected_loss(hidden[batch.is_masked][None], model.output.weight, batch.masked_ids, 0.0)

    def describe(self, plan: Windows) -> str:
        """The number of windows in a batch, and the beginnings of the first three."""
        column = self.data.encoded.columns[0]
        beginnings = [column[document][start : start + 20] for document, start, _ in plan[:3].tolist()]
        texts = [self.task.tokenizer.decode(ids.tolist()) for ids in beginnings]
        return f"{len(plan)} windows, {', '.join(f'“{text}…”' for text in texts)}{' …' if len(plan) > 3 else ''}"


@dataclass(frozen=True)
class Masked(DocumentTask):
    """A model that predicts the masked tokens of a text."""

    shape: ClassVar[str] = "encoder"
    loss_unit: ClassVar[str] = "masked"
    metrics: ClassVar[tuple[str, ...]] = (ACCURACY,)
    settings_type: ClassVar[type] = MaskedSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(is_annotated=True)
    quickstart: ClassVar[Quickstart | None] = None
    init: ClassVar[TaskInit] = MaskedInit()

    model: Transformer
    tokenizer: Tokenizer
    settings: MaskedSettings

    @property
    def module(self) -> Transformer:
        """The model."""
        return self.model

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, rows: Iterable[Row] = ()
    ) -> "Masked":
        """Create an untrained model."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, metadata: Mapping[str, Any]
    ) -> "Masked":
        """Create the model; there is no metadata."""
        return cls(model, tokenizer, settings)

    def training_task(self, data: TrainingData) -> MaskedTrainingTask:
        """The task as the training loop sees it."""
        if data.sampling:
            raise RecipeError(
                f"tokenizer.sampling = {data.sampling}: a masked language model is trained on stored tokens. Use 0."
            )
        return MaskedTrainingTask(self, data)

    @cached_property
    def masker(self) -> Masker:
        """Chooses the tokens to mask."""
        return Masker.of(self.tokenizer, self.settings)

    @property
    def limit(self) -> int:
        """The maximum number of tokens read at once; one position is for BOS."""
        return self.model.settings.max_length - 1

    def check(self, text: str, where: str) -> None:
        """Raise DataError if a text has no [MASK] or is too long for the model."""
        self._with_gaps(text, where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a text; each [MASK] is one token."""
        return encoder_input(self.tokenizer, text, answer, self._tokens(text), limit=self.limit)

    def calibrate(self, rows: Sequence[Row]) -> "Masked":
        """Nothing is calibrated."""
        return self

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Predict masked tokens, always the same ones, in the first rows."""
        windows, n_tokens = [], 0
        for window in self._windows(text for (text,) in rows):
            windows.append(window)
            n_tokens += len(window)
            if n_tokens >= _VALIDATION_TOKENS:
                break
        found = [part for part in self._find(windows) if len(part.masked_ids)]
        score = 100.0 * sum(part.n_right for part in found) / max(1, sum(len(part.masked_ids) for part in found))
        return ValidationResult(metric, score, [self._sample(part) for part in found[:_SAMPLES]])

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the accuracy of masked tokens."""
        n_right, n_masked, _ = self._count(rows)
        return share_tally("accuracy of masked tokens", n_right, n_masked)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> MaskedCard:
        """Predict masked tokens, always the same ones, in every document."""
        how = f"mask_probability:{self.settings.mask_probability}{'|whole words' if self.settings.whole_words else ''}"
        n_right, n_masked, nats = self._count(rows, progress)
        return masked_card(n_right, n_masked, nats, context=how)

    def _count(self, rows: Iterable[Row], progress: Progress = lambda done: None) -> list[list[float]]:
        """For each document: the correct predictions, the masked tokens, and their nats."""
        counts: list[NDArray[np.float64]] = []
        for chunk in chunks(row for row in rows if row[0]):
            texts = [list(self._windows([text])) for (text,) in chunk]
            owners = [number for number, windows in enumerate(texts) for _ in windows]
            sums = np.zeros((len(texts), 3))
            for owner, part in zip(
                owners, self._find([window for windows in texts for window in windows]), strict=True
            ):
                sums[owner] += (part.n_right, len(part.masked_ids), float(part.nats.sum()))
            counts += list(sums)
            progress(len(texts))
        columns: list[list[float]] = np.stack(counts).T.tolist() if counts else [[], [], []]
        return columns

    def _windows(self, texts: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """The token ids of each text in windows that the model can read."""
        for text in texts:
            ids = np.array(self.tokenizer.encode(text), dtype=np.int64)
            yield from (ids[start : start + self.limit] for start in range(0, len(ids), self.limit))

    def _find(self, windows: Sequence[NDArray[np.int64]]) -> list["_Found"]:
        """Predict the masked tokens of each window; windows are masked independently of one another."""
        device = self.model.device
        # One by one, so that the masks do not depend on other windows or their order.
        single = [self.masker.mask([window], crc32(window.tobytes()), device) for window in windows]
        found: list[_Found | None] = [None] * len(windows)
        sizes = np.array([[len(window) + 1] for window in windows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(sizes, _BATCH_TOKENS, seed=0, epoch=0):
            rows = [single[index] for index in batch.tolist()]
            ids = torch.from_numpy(pad([row.ids[0].cpu().numpy() for row in rows])).to(device)
            vectors = self._vectors(ids)
            for index, row, vector in zip(batch.tolist(), rows, vectors, strict=True):
                logs = self._log_probabilities(vector[: row.ids.size(1)][row.is_masked[0]])
                nats = -logs.gather(1, row.masked_ids[:, None]).squeeze(1)
                found[index] = _Found(row.ids[0], row.masked_ids, logs.argmax(-1), nats)
        return [part for part in found if part is not None]

    def _vectors(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B S W"]:
        with evaluating(self.model):
            return self.model.encode(ids, ids != PAD)

    def _log_probabilities(self, vectors: Float[Tensor, "N W"]) -> Float[Tensor, "N V"]:
        """The log-probability of every token but the special ones."""
        logits = self.model.output.logits(vectors).detach().float()
        logits[:, :_FIRST_TOKEN] = -torch.inf
        return logits.log_softmax(-1)

    def _sample(self, part: "_Found") -> tuple[str, str, str]:
        """The masked text, the predicted tokens, the original tokens."""
        text = MASK_TEXT.join(self.tokenizer.decode(run) for run in _split(part.ids[1:].tolist()))
        guessed, originals = (
            " ".join(self.tokenizer.decode([number]) for number in numbers.tolist())
            for numbers in (part.guessed, part.masked_ids)
        )
        return text[:_SHOWN], guessed[:_SHOWN], originals[:_SHOWN]

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Filling]:
        """Fill in the most probable token for each mask."""
        encoded = [self._with_gaps(text, f"text {number}") for number, text in enumerate(texts, start=first + 1)]
        sizes = np.array([[len(ids)] for ids in encoded], dtype=np.int64).reshape(-1, 1)
        found: dict[int, Filling] = {}
        for batch in plan_batches(sizes, _BATCH_TOKENS, seed=0, epoch=0):
            rows = batch.tolist()
            ids = torch.from_numpy(pad([encoded[row] for row in rows], before=BOS)).to(self.model.device)
            for row, vectors, own in zip(rows, self._vectors(ids), ids, strict=True):
                found[row] = self._fill(encoded[row], self._log_probabilities(vectors[own == MASK]))
        return [found[row] for row in range(len(texts))]

    def _fill(self, ids: Sequence[int], logs: Float[Tensor, "N V"]) -> Filling:
        best = logs.topk(min(_GUESSES, logs.size(1)))
        chosen = iter(best.indices[:, 0].tolist())
        text = self.tokenizer.decode([next(chosen) if token_id == MASK else token_id for token_id in ids])
        gaps = [
            [
                Guess(self.tokenizer.id_to_token(token_id).replace(METASPACE, " "), probability)
                for token_id, probability in zip(*guesses, strict=True)
            ]
            for guesses in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        ]
        return Filling(text, gaps)

    def _with_gaps(self, text: str, where: str) -> list[int]:
        """The ids of a text; each [MASK] is one token, which includes the space before it."""
        if MASK_TEXT not in text:
            raise DataError(f"{where} has no {MASK_TEXT}: write it where a token is to be predicted.")
        ids = [token.id for token in self._tokens(text)]
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} tokens; this model reads at most {self.limit:,}. Split it up.")
        return ids

    def _tokens(self, text: str) -> Iterator[Token]:
        """The tokens of a text with their offsets; each [MASK] is one token."""
        parts = text.split(MASK_TEXT)
        start = 0
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            kept = part if is_last else self._without_space(part)
            ids = self.tokenizer.encode_continuation(kept) if number else self.tokenizer.encode(kept)
            yield from shift_spans(self.tokenizer.tokens_from_ids(ids, is_continuation=number > 0), start, len(text))
            if not is_last:
                end = start + len(part) + len(MASK_TEXT)
                yield Token(MASK_TEXT, MASK, start + len(kept), end)
                start = end

    def _without_space(self, text: str) -> str:
        """Text before a mask, without the space that belongs to the masked token if tokens include their space."""
        return text.removesuffix(" ") if self.tokenizer.has_prefix else text


@dataclass(frozen=True)
class _Found:
    """One window: its masked input, the original and predicted tokens, and the nats of the original ones."""

    ids: Int[Tensor, " S"]
    masked_ids: Int[Tensor, " N"]
    guessed: Int[Tensor, " N"]
    nats: Float[Tensor, " N"]

    @property
    def n_right(self) -> int:
        """The number of correct predictions."""
        return int((self.guessed == self.masked_ids).sum())


def _split(ids: Sequence[int]) -> list[list[int]]:
    """The ids between masks."""
    runs: list[list[int]] = [[]]
    for token_id in ids:
        if token_id == MASK:
            runs.append([])
        else:
            runs[-1].append(token_id)
    return runs
