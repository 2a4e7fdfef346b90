"""`Masked`: a masked language model, which predicts the tokens that are masked in a text.

An encoder pretrained on text without labels is a better start for classify and tag (init_from).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.data.texts import chunks
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.metrics import MaskedCard, Tally, masked_card, share_tally
from manyheads.model import evaluating
from manyheads.tasks.data_files import DataFiles
from manyheads.tasks.document_task import (
    DocumentDoctor,
    DocumentInit,
    DocumentTask,
    characters_per_token,
    count_document_epochs,
    document_budget,
    document_choices,
    refuse_sampling,
    subword_choices,
)
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.lens_output import LensOutput
from manyheads.tasks.masked.masked_lens import MaskedProbe, with_mask
from manyheads.tasks.masked.masked_training import (
    FIRST_TOKEN,
    MASK,
    MASK_TEXT,
    MaskedSettings,
    MaskedTrainingTask,
    Masker,
)
from manyheads.tasks.model_inputs import ModelInput, batches_by_length, encoder_input, shift_spans
from manyheads.tasks.proposal import (
    Choice,
    Proposal,
    Quickstart,
    Survey,
    layers_of_width,
    stable_choices,
    training_choices,
)
from manyheads.tasks.task import AnswerForm, Progress, TrainingData, ValidationResult, one_line
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import BOS, METASPACE, PAD, Token
from manyheads.text.tokens.words import is_blank


class MaskedInit(DocumentInit):
    """Recognizes nothing by itself: text alone is proposed for a language model."""

    kind = "masked"
    cli_name = "masked"
    order = 40

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """A table's texts, if the user requested this task."""
        return self.requested_table(files, request) if files.is_table and self.is_requested(request) else None

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """An encoder of the size that classify and tag use, to start them from with init_from."""
        size = survey.n_characters
        choices = [
            *subword_choices(survey),
            Choice("task.kind", "masked", "predict masked tokens; start other tasks from it with init_from"),
            *document_choices(survey),
            Choice("model.width", 128, "the width of the classifiers and taggers that start from it"),
            Choice("model.n_encoder_layers", 3),
            Choice("model.n_heads", 4),
            Choice("model.feed_forward_width", 256),
            Choice("model.activation", "gelu"),
            *stable_choices(survey, 0.1),
            Choice("model.max_length", 256, "tokens read at once"),
            *training_choices(
                batch_tokens=2048,
                learning_rate=2e-3,
                validation_reason="steps between validations, on part of the valid text",
                weight_decay=0.05,
            ),
        ]
        # Only a part of the tokens is masked in each epoch.
        n_epochs = 2 * count_document_epochs(size / characters_per_token(survey), 11.0)
        return Proposal(tuple(choices), n_epochs, layers_of_width(3, 128), budget=document_budget(size) / 2)


ACCURACY = "accuracy of masked tokens"

_VALIDATION_TOKENS = 20_000
_GUESSES = 5  # tokens returned for each mask
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
        return one_line(self.text)

    def cells(self) -> dict[str, str | float | None]:
        """The filled text."""
        return {"answer": self.text}


@dataclass(frozen=True)
class Masked(DocumentTask):
    """A model that predicts the masked tokens of a text."""

    shape: ClassVar[str] = "encoder"
    answer_form: ClassVar[AnswerForm] = "masks"
    mask_text: ClassVar[str] = MASK_TEXT
    loss_unit: ClassVar[str] = "masked"
    metrics: ClassVar[tuple[str, ...]] = (ACCURACY,)
    settings_type: ClassVar[type] = MaskedSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(is_annotated=True, suggest=with_mask)
    quickstart: ClassVar[Quickstart | None] = None
    init: ClassVar[TaskInit] = MaskedInit()
    doctor: ClassVar[TaskDoctor] = DocumentDoctor()

    settings: MaskedSettings

    def training_task(self, data: TrainingData) -> MaskedTrainingTask:
        """The task as the training loop sees it."""
        refuse_sampling(data, _("a masked language model"))
        return MaskedTrainingTask(self, data)

    @cached_property
    def masker(self) -> Masker:
        """Chooses the tokens to mask."""
        return Masker.of(self.tokenizer, self.settings)

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text read at once."""
        return self.model.settings.max_length - self.tokenizer.n_framing

    def check(self, text: str, where: str) -> None:
        """Raise DataError if a text has no [MASK] or is too long for the model."""
        self._encode(text, where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a text; each [MASK] is one token."""
        return encoder_input(self.tokenizer, text, answer, self._tokens(text), limit=self.limit)

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The tokens that could fill each mask."""
        return MaskedProbe.of(self, model_input).output()

    def lens_probe(self, model_input: ModelInput) -> MaskedProbe:
        """The predicted tokens, to be measured with other gates."""
        return MaskedProbe.of(self, model_input)

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Predict masked tokens, always the same ones, in the first rows."""
        windows, n_tokens = [], 0
        for window in self._windows(text for (text,) in rows):
            windows.append(window)
            n_tokens += len(window)
            if n_tokens >= _VALIDATION_TOKENS:
                break
        predicted = [window for window in self._predict_windows(windows) if len(window.masked_ids)]
        n_masked = sum(len(window.masked_ids) for window in predicted)
        score = 100.0 * sum(window.n_correct for window in predicted) / max(1, n_masked)
        return ValidationResult(metric, score, [self._sample(window) for window in predicted[:_SAMPLES]])

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the accuracy of masked tokens."""
        n_correct, n_masked, _ = self._count(rows)
        return share_tally(ACCURACY, n_correct, n_masked)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> MaskedCard:
        """Predict masked tokens, always the same ones, in every document."""
        context = (
            f"mask_probability:{self.settings.mask_probability}{'|whole words' if self.settings.whole_words else ''}"
        )
        n_correct, n_masked, nats = self._count(rows, progress)
        return masked_card(n_correct, n_masked, nats, context=context)

    def _count(self, rows: Iterable[Row], progress: Progress = lambda done: None) -> list[list[float]]:
        """For each document: the correct predictions, the masked tokens, and their nats."""
        counts: list[NDArray[np.float64]] = []
        for chunk in chunks(row for row in rows if row[0]):
            texts = [list(self._windows([text])) for (text,) in chunk]
            owners = [number for number, windows in enumerate(texts) for _ in windows]
            sums = np.zeros((len(texts), 3))
            predicted = self._predict_windows([window for windows in texts for window in windows])
            for owner, window in zip(owners, predicted, strict=True):
                sums[owner] += (window.n_correct, len(window.masked_ids), float(window.nats.sum()))
            counts += list(sums)
            progress(len(texts))
        columns: list[list[float]] = np.stack(counts).T.tolist() if counts else [[], [], []]
        return columns

    def _windows(self, texts: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """The token ids of each text in windows that the model can read."""
        for text in texts:
            ids = np.array(self.tokenizer.encode(text), dtype=np.int64)
            yield from (ids[start : start + self.limit] for start in range(0, len(ids), self.limit))

    def _predict_windows(self, windows: Sequence[NDArray[np.int64]]) -> list["_MaskedWindow"]:
        """Mask and predict tokens of each window; the masks of a window do not depend on other windows."""
        single = [self.masker.mask([window], crc32(window.tobytes()), self.model.device) for window in windows]
        predicted = self._predict_masks([batch.ids[0] for batch in single], [batch.is_masked[0] for batch in single])
        return [
            _MaskedWindow(
                batch.ids[0],
                batch.masked_ids,
                log_probabilities.argmax(-1),
                -log_probabilities.gather(1, batch.masked_ids[:, None]).squeeze(1),
            )
            for batch, log_probabilities in zip(single, predicted, strict=True)
        ]

    def _predict_masks(
        self, texts: Sequence[Int[Tensor, " _"]], is_masked: Sequence[Bool[Tensor, " _"]]
    ) -> Iterator[Float[Tensor, "_ V"]]:
        """The log-probabilities of every token at the masked positions of each text, which begins with BOS."""
        vectors: dict[int, Tensor] = {}
        for batch in batches_by_length([len(ids) for ids in texts]):
            ids = nn.utils.rnn.pad_sequence([texts[index] for index in batch], batch_first=True, padding_value=PAD)
            with evaluating(self.model):
                hidden = self.model.encode(ids, ids != PAD)
            for index, row in zip(batch, hidden, strict=True):
                vectors[index] = row[: len(texts[index])][is_masked[index]]
        # The logits of many windows do not fit in memory at once.
        return (self.log_probabilities(vectors.pop(index)) for index in range(len(texts)))

    @torch.inference_mode()
    def log_probabilities(self, vectors: Float[Tensor, "N W"]) -> Float[Tensor, "N V"]:
        """The log-probability of every token but the special ones."""
        logits = self.model.output.logits(vectors).float()
        logits[:, :FIRST_TOKEN] = -torch.inf
        return logits.log_softmax(-1)

    def _sample(self, window: "_MaskedWindow") -> tuple[str, str, str]:
        """The masked text, the predicted tokens, the original tokens."""
        text = MASK_TEXT.join(self.tokenizer.decode(run) for run in _split(window.ids[1:].tolist()))
        guessed, originals = (
            " ".join(self.tokenizer.decode([number]) for number in numbers.tolist())
            for numbers in (window.guessed, window.masked_ids)
        )
        return text[:_SHOWN], guessed[:_SHOWN], originals[:_SHOWN]

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Filling]:
        """Fill in the most probable token for each mask."""
        encoded = [
            self._encode(text, _("text {number}", number=number)) for number, text in enumerate(texts, start=first + 1)
        ]
        after = [] if self.tokenizer.closes is None else [self.tokenizer.closes]
        inputs = [torch.tensor([BOS, *ids, *after], device=self.model.device) for ids in encoded]
        predicted = self._predict_masks(inputs, [ids == MASK for ids in inputs])
        return [self._fill(ids, log_probabilities) for ids, log_probabilities in zip(encoded, predicted, strict=True)]

    def _fill(self, ids: Sequence[int], log_probabilities: Float[Tensor, "N V"]) -> Filling:
        best = log_probabilities.topk(min(_GUESSES, log_probabilities.size(1)))
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

    def _encode(self, text: str, where: str) -> list[int]:
        """The ids of a text, none if it is blank; each [MASK] is one token, which includes the space before it."""
        if is_blank(text):
            return []
        if MASK_TEXT not in text:
            raise DataError(
                _(
                    "{where} has no {mask}: write it where a token is to be predicted.",
                    where=where,
                    mask=MASK_TEXT,
                )
            )
        ids = [token.id for token in self._tokens(text)]
        if len(ids) > self.limit:
            raise DataError(
                _(
                    "{where} has {n_tokens:,} tokens; this model reads at most {limit:,}. Split it up.",
                    where=where,
                    n_tokens=len(ids),
                    limit=self.limit,
                )
            )
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
class _MaskedWindow:
    """A window with its masked input, the original and the predicted tokens, and the nats of the original ones."""

    ids: Int[Tensor, " S"]
    masked_ids: Int[Tensor, " N"]
    guessed: Int[Tensor, " N"]
    nats: Float[Tensor, " N"]

    @property
    def n_correct(self) -> int:
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
