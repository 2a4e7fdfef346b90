"""Masked language models: some tokens of a text are hidden, and the model says which they were.

An encoder that has learnt this on a user's own text knows that text's words before it learns a task from labels.
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

MASK_TEXT = "[MASK]"  # how a text for `predict` says what is to be found
# No text is ever encoded to UNK, since bytes spell what is not in the vocabulary: its vector is free.
MASK = UNK
ACCURACY = "accuracy of masked tokens"

_FIRST_TOKEN = EOS + 1  # before it are the special ones
_MASKED, _REPLACED = 0.8, 0.1  # of the hidden tokens; the others stay as they are (Devlin 2019)
_TOKENS_AT_ONCE = 4096
_VALIDATION_TOKENS = 20_000  # tokens
_GUESSES = 5
_SAMPLES = 4
_SHOWN = 200  # characters of a sample


@dataclass(frozen=True)
class Guess:
    """A token that may stand where something was hidden, and how probable the model finds it."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filling:
    """A text with its gaps filled."""

    text: str
    gaps: Sequence[Sequence[Guess]]  # for each gap, the most probable tokens, best first

    @property
    def answer(self) -> str:
        """The text with the best token in each gap."""
        return self.text

    def line(self) -> str:
        """The text in one line."""
        return self.text.replace("\r", " ").replace("\n", " ")


@dataclass(frozen=True)
class MaskedBatch:
    """Texts with some of their tokens hidden."""

    ids: Int[Tensor, "B S"]
    is_masked: Bool[Tensor, "B S"]
    masked_ids: Int[Tensor, " N"]  # the tokens that were there, row by row

    @property
    def n_tokens(self) -> int:
        """Those that are to be found: what the loss is averaged over."""
        return len(self.masked_ids)


@dataclass(frozen=True)
class Masker:
    """Chooses what is hidden."""

    settings: MaskedSettings
    vocab_size: int
    words: WordTable | None  # where whole words are hidden

    @classmethod
    def of(cls, tokenizer: Tokenizer, settings: MaskedSettings) -> "Masker":
        """One for a tokenizer's tokens."""
        words = WordTable.of(tokenizer) if settings.whole_words else None
        return cls(settings, tokenizer.vocab_size, words)

    def mask(self, texts: Sequence[NDArray[np.integer]], seed: int, device: torch.device) -> MaskedBatch:
        """A batch of these texts after BOS: a pure function of its arguments."""
        rng = np.random.default_rng(seed)
        ids = pad(texts, before=BOS)
        is_masked = np.zeros(ids.shape, dtype=np.bool_)
        for row, text in enumerate(texts):
            is_masked[row, 1 : len(text) + 1] = self._choose(text, rng)
        hidden = ids[is_masked]
        fate = rng.random(len(hidden))
        others = rng.integers(_FIRST_TOKEN, self.vocab_size, size=len(hidden))
        ids[is_masked] = np.where(fate < _MASKED, MASK, np.where(fate < _MASKED + _REPLACED, others, hidden))
        return MaskedBatch(*(torch.from_numpy(array).to(device) for array in (ids, is_masked, hidden)))

    def _choose(self, text: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.bool_]:
        """About the share of a text's tokens, one at least: those of the words whose lots come first."""
        wanted = max(1, round(self.settings.mask_probability * len(text)))
        numbers = np.arange(len(text)) if self.words is None else self.words.word_ids(text)
        lots = rng.permutation(int(numbers[-1]) + 1 if len(numbers) else 0)
        # Of the words in the order of their lots, as many as are needed.
        sizes = np.bincount(numbers)[np.argsort(lots)]
        n_words = int(np.searchsorted(np.cumsum(sizes), wanted)) + 1
        return np.asarray(lots[numbers] < n_words)


@dataclass(frozen=True)
class MaskedTrainingTask:
    """What the training loop sees of this task."""

    task: "Masked"
    data: TrainingData

    def plan(self, epoch: int) -> list[Windows]:
        """Windows of the documents, those of like length together."""
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
        """One batch; what is hidden in it is a function of the seed."""
        column = self.data.encoded.columns[0]
        texts = [column[document][start:end].astype(np.int64) for document, start, end in plan.tolist()]
        batch = self.task.masker.mask(texts, seed, self.task.model.device)
        self.data.encoded.release()
        return batch

    def loss(self, batch: MaskedBatch, step: int) -> Tensor:
        """Cross-entropy per hidden token; no other is even projected."""
        model = self.task.model
        hidden = model.encode(batch.ids, batch.ids != PAD)
        return projected_loss(hidden[batch.is_masked][None], model.output.weight, batch.masked_ids, 0.0)

    def describe(self, plan: Windows) -> str:
        """How many windows a batch has, and how the first three begin."""
        column = self.data.encoded.columns[0]
        beginnings = [column[document][start : start + 20] for document, start, _ in plan[:3].tolist()]
        texts = [self.task.tokenizer.decode(ids.tolist()) for ids in beginnings]
        return f"{len(plan)} windows, {', '.join(f'“{text}…”' for text in texts)}{' …' if len(plan) > 3 else ''}"


@dataclass(frozen=True)
class Masked(DocumentTask):
    """A model that finds what is hidden in a text."""

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
        """All that learns is the model itself."""
        return self.model

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, rows: Iterable[Row] = ()
    ) -> "Masked":
        """A model that has learnt nothing yet."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, metadata: Mapping[str, Any]
    ) -> "Masked":
        """There is nothing to know besides."""
        return cls(model, tokenizer, settings)

    def training_task(self, data: TrainingData) -> MaskedTrainingTask:
        """What the training loop sees of it."""
        if data.sampling:
            raise RecipeError(
                f"tokenizer.sampling = {data.sampling}: a masked language model learns from stored tokens. Use 0."
            )
        return MaskedTrainingTask(self, data)

    @cached_property
    def masker(self) -> Masker:
        """What chooses the tokens that are hidden."""
        return Masker.of(self.tokenizer, self.settings)

    @property
    def limit(self) -> int:
        """How many tokens are read at once: one place is for BOS."""
        return self.model.settings.max_length - 1

    def check(self, text: str, where: str) -> None:
        """Refuse a text without a gap, or too long for the model."""
        self._with_gaps(text, where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a text, in which any [MASK] is one."""
        return encoder_input(self.tokenizer, text, answer, self._tokens(text), limit=self.limit)

    def calibrate(self, rows: Sequence[Row]) -> "Masked":
        """There is nothing more to learn."""
        return self

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Find what is hidden, always the same tokens, in as much of the rows as is looked at quickly."""
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
        """The share of hidden tokens that are found."""
        n_right, n_masked, _ = self._count(rows)
        return share_tally("accuracy of masked tokens", n_right, n_masked)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> MaskedCard:
        """Find what is hidden in every document, always the same tokens."""
        how = f"mask_probability:{self.settings.mask_probability}{'|whole words' if self.settings.whole_words else ''}"
        n_right, n_masked, nats = self._count(rows, progress)
        return masked_card(n_right, n_masked, nats, context=how)

    def _count(self, rows: Iterable[Row], progress: Progress = lambda done: None) -> list[list[float]]:
        """Of each document: how many hidden tokens are found, how many there are, how many nats they cost."""
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
        """The tokens of each text, cut where the model cannot read on."""
        for text in texts:
            ids = np.array(self.tokenizer.encode(text), dtype=np.int64)
            yield from (ids[start : start + self.limit] for start in range(0, len(ids), self.limit))

    def _find(self, windows: Sequence[NDArray[np.int64]]) -> list["_Found"]:
        """What the model takes the hidden tokens of each window for; each window is hidden from by itself."""
        device = self.model.device
        # One by one, so that neither neighbours nor order change what is hidden.
        single = [self.masker.mask([window], crc32(window.tobytes()), device) for window in windows]
        found: list[_Found | None] = [None] * len(windows)
        sizes = np.array([[len(window) + 1] for window in windows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(sizes, _TOKENS_AT_ONCE, seed=0, epoch=0):
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
        """Of every token; special ones are none."""
        logits = self.model.output.logits(vectors).detach().float()
        logits[:, :_FIRST_TOKEN] = -torch.inf
        return logits.log_softmax(-1)

    def _sample(self, part: "_Found") -> tuple[str, str, str]:
        """The text with its gaps, what the model put there, what was there."""
        text = MASK_TEXT.join(self.tokenizer.decode(run) for run in _split(part.ids[1:].tolist()))
        guessed, hidden = (
            " ".join(self.tokenizer.decode([number]) for number in numbers.tolist())
            for numbers in (part.guessed, part.masked_ids)
        )
        return text[:_SHOWN], guessed[:_SHOWN], hidden[:_SHOWN]

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Filling]:
        """Each text with the most probable token in every gap."""
        encoded = [self._with_gaps(text, f"text {number}") for number, text in enumerate(texts, start=first + 1)]
        sizes = np.array([[len(ids)] for ids in encoded], dtype=np.int64).reshape(-1, 1)
        found: dict[int, Filling] = {}
        for batch in plan_batches(sizes, _TOKENS_AT_ONCE, seed=0, epoch=0):
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
        """The ids of a text, each [MASK] in it being one hidden token; the space before it is the token's own."""
        if MASK_TEXT not in text:
            raise DataError(f"{where} has no {MASK_TEXT}: write it where a token is to be found.")
        ids = [token.id for token in self._tokens(text)]
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} tokens; this model reads at most {self.limit:,}. Split it up.")
        return ids

    def _tokens(self, text: str) -> Iterator[Token]:
        """The tokens of a text with their places, each [MASK] in it being one."""
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
        """Of text before a gap: where words are tokens with their space, that belongs to what is hidden."""
        return text.removesuffix(" ") if self.tokenizer.has_prefix else text


@dataclass(frozen=True)
class _Found:
    """One window: what the model read of it, what was hidden, what it took that for, and how surprised it was."""

    ids: Int[Tensor, " S"]
    masked_ids: Int[Tensor, " N"]
    guessed: Int[Tensor, " N"]
    nats: Float[Tensor, " N"]

    @property
    def n_right(self) -> int:
        """How many were found."""
        return int((self.guessed == self.masked_ids).sum())


def _split(ids: Sequence[int]) -> list[list[int]]:
    """The runs of ids between gaps."""
    runs: list[list[int]] = [[]]
    for token_id in ids:
        if token_id == MASK:
            runs.append([])
        else:
            runs[-1].append(token_id)
    return runs
