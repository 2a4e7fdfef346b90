"""`Language`: a text in, its continuation out."""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from manyheads.data.texts import chunks
from manyheads.decode import DecodeSettings, Hypothesis
from manyheads.errors import DataError, RecipeError
from manyheads.messages import Message, _
from manyheads.metrics import GenerationSample, LanguageCard, Tally, language_card, rate_tally
from manyheads.model import Tap, Transformer
from manyheads.settings import Range, raise_faults, type_faults
from manyheads.tasks.document_task import DocumentTask, refuse_sampling
from manyheads.tasks.language.generation import Generation, TextGenerator
from manyheads.tasks.language.language_commands import QUICKSTART, LanguageDoctor, LanguageInit
from manyheads.tasks.language.language_training import LanguageTrainingTask
from manyheads.tasks.language.perplexity import sliding_windows, token_nll, window_nll
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.lens_output import LensOutput, WriterProbe
from manyheads.tasks.model_inputs import ModelInput
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.task import AnswerForm, GenerativeTask, Progress, TaskSettings, TrainingData, ValidationResult
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import EOS, Tokenizer
from manyheads.text.tokens.words import is_chinese_or_kana, split_text

_OPENING = 5  # words; twice as many characters of Chinese or Japanese text


@dataclass(frozen=True, kw_only=True)
class LanguageSettings(TaskSettings):
    """What a document is, and how text is scored; the context is model.max_length."""

    kind: Literal["language"] = "language"  # continue a text, token by token
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    # Tokens by which the scoring window moves; by default half the context.
    stride: Annotated[int, Range(1, 1_000_000, hint="Leave it out for half the context.")] | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))


def opening(task: Any, text: str) -> str:
    """Return the first words of a text, for the model to continue; at most half of them."""
    words = split_text(text, "word")
    if not words:
        return text
    n_words = 2 * _OPENING if is_chinese_or_kana(words[0].text[0]) else _OPENING
    return text[: words[min(n_words, (len(words) + 1) // 2) - 1].end]


def probe_continuation(task: "Language", model_input: ModelInput) -> WriterProbe:
    """Return the probe of the continuation; a note says so if the context was too short for it."""
    first = len(task.model_input(model_input.text).target) - 1
    notes = []
    last, context = model_input.last, task.model.settings.max_length
    if len(model_input.target) >= context and (last is None or last.id != EOS):
        notes.append(
            Message(
                "The answer ends where the context of {context:,} tokens is full; `manyheads predict` can slide it.",
                context=context,
            )
        )
    return WriterProbe("language", task.model, task.tokenizer, model_input, first, tuple(notes))


NATS = "nats per character"

_VALIDATION_WINDOWS = 64
_VALIDATION_CHARACTERS = 200_000  # from which the windows are taken
_SAMPLES = 4
_PROMPT, _SHOWN = 32, 48  # tokens of a sample
_FEW_DOCUMENTS = 30  # with fewer, the bootstrap resamples blocks of documents instead
_BLOCKS = 200
_WORD = re.compile(r"\S+|\n")  # a line break counts as a word, as in published results on WikiText


@dataclass(frozen=True)
class Language(DocumentTask, GenerativeTask):
    """A model that continues a text."""

    shape: ClassVar[str] = "decoder"
    answer_form: ClassVar[AnswerForm] = "continuation"
    loss_unit: ClassVar[str] = "tok"
    metrics: ClassVar[tuple[str, ...]] = (NATS,)
    settings_type: ClassVar[type] = LanguageSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(suggest=opening)
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = LanguageInit()
    doctor: ClassVar[TaskDoctor] = LanguageDoctor()

    settings: LanguageSettings

    @classmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row] = ()) -> "Language":
        """Create an untrained model."""
        if settings.stride is not None and settings.stride > model.settings.max_length:
            raise RecipeError(
                _(
                    "task.stride = {stride} would skip tokens: the context, model.max_length, is {max_length}. Use "
                    "at most that.",
                    stride=settings.stride,
                    max_length=model.settings.max_length,
                )
            )
        return cls(model, tokenizer, settings)

    def training_task(self, data: TrainingData) -> LanguageTrainingTask:
        """The task as the training loop sees it."""
        refuse_sampling(data, _("a language model"))
        return LanguageTrainingTask(self.model, self.tokenizer, data)

    @property
    def stride(self) -> int:
        """The number of tokens by which the scoring window moves."""
        if self.settings.stride is not None:
            return self.settings.stride
        return max(1, self.model.settings.max_length // 2)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS, the tokens of a text and of its continuation."""
        return TextGenerator(self.model, self.tokenizer).model_input(text, answer)

    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best continuation of the text."""
        return TextGenerator(self.model, self.tokenizer).generate_one(model_input, settings, tap)

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The tokens of the continuation, with their probabilities and alternatives."""
        return probe_continuation(self, model_input).output()

    def lens_probe(self, model_input: ModelInput) -> WriterProbe:
        """The continuation, to be measured with other gates."""
        return probe_continuation(self, model_input)

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score windows spread evenly over the documents, and continue a few prompts greedily.

        The score is the log-likelihood per character, the negative of the nats: higher is better.
        """
        most = max(1000, _VALIDATION_CHARACTERS // len(rows))
        documents = self.tokenizer.encode_batch([text[:most] for (text,) in rows])
        context = self.model.settings.max_length
        windows = [
            (number, *window)
            for number, ids in enumerate(documents)
            for window in sliding_windows(len(ids), context, max(1, context // 2))
        ]
        windows = _spread(windows, _VALIDATION_WINDOWS)
        nats = sum(part.sum() for part in window_nll(self.model, documents, windows))
        n_characters = sum(
            len(self.tokenizer.decode_continuation(documents[number][:first], documents[number][first:end]))
            for number, _, first, end in windows
        )
        return ValidationResult(metric, -float(nats) / max(1, n_characters), self._samples(documents))

    def _samples(self, documents: Sequence[Sequence[int]]) -> list[tuple[str, str, str]]:
        """Prompts from the documents, with the model's and the document's continuation."""
        size = _PROMPT + _SHOWN
        prompts_at = [(ids, start) for ids in documents for start in range(0, max(1, len(ids) - size), size)]
        chosen = _spread(prompts_at, _SAMPLES)
        decode = self.tokenizer.decode
        prompts = [decode(ids[start : start + _PROMPT]) for ids, start in chosen]
        wholes = [decode(ids[start : start + size]) for ids, start in chosen]
        predictions = self.predict(prompts, DecodeSettings(method="greedy", max_new_tokens=_SHOWN))
        return [
            (prediction.prompt, prediction.answer, whole[len(prediction.prompt) :])
            for prediction, whole in zip(predictions, wholes, strict=True)
        ]

    def stream(self, prompt: str, settings: DecodeSettings, number: int = 0) -> Generator[str, None, bool]:
        """Yield the continuation of a prompt in parts, which together are what `predict` returns.

        The generator returns whether the continuation is finished.
        """
        return TextGenerator(self.model, self.tokenizer).stream(prompt, settings, number)

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Generation]:
        """Continue each text."""
        return TextGenerator(self.model, self.tokenizer).generate(texts, settings, first)

    def nats(self, text: str) -> NDArray[np.float64]:
        """−ln p of each token of a text."""
        return token_nll(self.model, [self.tokenizer.encode(text)], self.stride)[0]

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of nats per character."""
        texts = [text for (text,) in rows if text]
        nats_of_texts = token_nll(self.model, self.tokenizer.encode_batch(texts), self.stride)
        blocks = [self._blocks(text, nats) for text, nats in zip(texts, nats_of_texts, strict=True)]
        counted = _resampled(blocks)
        return rate_tally(NATS, [block[0] for block in counted], [block[2] for block in counted])

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> LanguageCard:
        """Score every token of every document, and continue a few of their beginnings."""
        texts: list[str] = []
        blocks: list[list[_Block]] = []
        for chunk in chunks(row for row in rows if row[0]):
            part = [text for (text,) in chunk]
            nats = token_nll(self.model, self.tokenizer.encode_batch(part), self.stride)
            for text, of_tokens in zip(part, nats, strict=True):
                blocks.append(self._blocks(text, of_tokens))
                progress(1)
            texts += [text[:1000] for text in part[: _SAMPLES - len(texts)]]
        if not blocks:
            raise DataError(_("The test set is empty: there is nothing to score. Give rows."))
        # Prompt and continuation each get half the context, so that any decoding method fits.
        half = max(1, self.model.settings.max_length // 2)
        prompts = [self.tokenizer.decode(self.tokenizer.encode(text)[: min(_PROMPT, half - 1)]) for text in texts]
        brief = replace(settings, max_new_tokens=min(settings.max_length(), half))
        return language_card(
            *zip(*_resampled(blocks), strict=True),
            item="blocks" if len(blocks) < _FEW_DOCUMENTS else "documents",
            context=f"context:{self.model.settings.max_length}|stride:{self.stride}|words:with line ends",
            samples=[
                GenerationSample(prediction.prompt, prediction.answer) for prediction in self.predict(prompts, brief)
            ],
        )

    def _blocks(self, text: str, nats: NDArray[np.float64]) -> list["_Block"]:
        """The sums of nats, tokens, characters, words and bytes of blocks of similar size."""
        ends = np.fromiter((token.end for token in self.tokenizer.iter_tokens(text)), np.int64)
        borders = np.flatnonzero(np.diff(ends)) + 1  # between characters: byte tokens of one character share its end
        limits = [0, *_spread(borders.tolist(), _BLOCKS - 1), len(ends)]
        words = np.array([word.start() for word in _WORD.finditer(text)])
        blocks = []
        for start, end in pairwise(limits):
            characters = (int(ends[start - 1]) if start else 0, int(ends[end - 1]))
            n_words = int(np.diff(np.searchsorted(words, characters))[0])
            part = text[slice(*characters)]
            blocks.append((float(nats[start:end].sum()), end - start, len(part), n_words, len(part.encode())))
        return blocks


_Block = tuple[float, int, int, int, int]  # nats, tokens, characters, words, bytes


def _resampled(documents: Sequence[Sequence[_Block]]) -> list[_Block]:
    """What the bootstrap resamples: documents, or their blocks if there are few documents."""
    if len(documents) < _FEW_DOCUMENTS:
        return [block for blocks in documents for block in blocks]
    return [_sum(blocks) for blocks in documents]


def _sum(blocks: Sequence[_Block]) -> _Block:
    nats, *counts = zip(*blocks, strict=True)
    n_tokens, n_characters, n_words, n_bytes = map(sum, counts)
    return sum(nats), n_tokens, n_characters, n_words, n_bytes


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most `most` items, spread evenly."""
    if len(items) <= most:
        return list(items)
    return [items[int(index)] for index in np.linspace(0, len(items) - 1, most)]
