"""Sequence to sequence: one text in, another out. Translation first of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads import corpora
from manyheads.data import PairBatch, choose_examples, make_batch, plan_batches
from manyheads.data.cleaning import PAIR, Fields
from manyheads.decode import (
    DecodeSettings,
    Engine,
    EngineSelector,
    Hypothesis,
    SpecialTokens,
    generate,
)
from manyheads.errors import DataError
from manyheads.metrics import Answers, Tally, TranslationCard, bleu_tally, quick_score, translation_card
from manyheads.model import ModelSettings, Tap, Transformer, projected_loss
from manyheads.tasks.lens_examples import LensExamples
from manyheads.tasks.model_inputs import check_fits, refuse_blank, special_token, with_output
from manyheads.tasks.quickstart import Quickstart
from manyheads.tasks.seq2seq.seq2seq_examples import PairExamples
from manyheads.tasks.seq2seq.seq2seq_quickstart import QUICKSTART
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings
from manyheads.tasks.task import ModelInput, Progress, TrainingData, ValidationResult
from manyheads.text.files import OnBad
from manyheads.text.readers import Row, read_pairs, read_rows
from manyheads.text.row_spec import PAIR as PAIR_FIELDS
from manyheads.text.row_spec import join_turns
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

_SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))


@dataclass(frozen=True)
class Translation:
    """One candidate for one input."""

    text: str
    log_probability: float
    score: float
    finished: bool  # False: it was cut off at the maximum length


@dataclass(frozen=True)
class Translations:
    """What became of one input."""

    candidates: Sequence[Translation]  # best first

    @property
    def answer(self) -> str:
        """The best of them."""
        return self.candidates[0].text

    def line(self) -> str:
        """The best of them as one line: the bytes of a line break are tokens too."""
        return one_line(self.answer)


def one_line(text: str) -> str:
    """The text as it stands in a file of one line each."""
    return text.replace("\r", " ").replace("\n", " ")


@dataclass(frozen=True)
class TensorBatch:
    """A `PairBatch` on the model's device."""

    source: Int[Tensor, "B S"]
    target_input: Int[Tensor, "B T"]
    target_output: Int[Tensor, "B T"]
    n_tokens: int

    def twice(self) -> "TensorBatch":
        """Each row again, below all the others; it still counts once."""
        source, read, written = (torch.cat([ids, ids]) for ids in (self.source, self.target_input, self.target_output))
        return TensorBatch(source, read, written, self.n_tokens)


@dataclass(frozen=True)
class Seq2SeqTrainingTask:
    """What the training loop sees of this task."""

    model: Transformer
    tokenizer: Tokenizer
    settings: Seq2SeqSettings
    data: TrainingData

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of like lengths, as indices."""
        data = self.data
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        return plan_batches(data.encoded.lengths, data.batch_tokens, seed=data.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> TensorBatch:
        """One batch, its tokens sampled anew where the recipe asks for it."""
        sides = [self._sampled(side, plan, seed) for side in (0, 1)]
        batch = self._to_tensors(make_batch(*sides))
        self.data.encoded.release()
        return batch

    def _ids(self, side: int, plan: NDArray[np.int64]) -> list[NDArray[np.generic]]:
        return self.data.encoded.ids(side, plan)

    def _sampled(self, side: int, plan: NDArray[np.int64], seed: int) -> list[Any]:
        """Each text cut into tokens at random; one whose random tokens would be too many keeps its likeliest."""
        if not self.data.sampling:
            return self._ids(side, plan)
        texts = [self.data.encoded.text(side, row) for row in plan.tolist()]
        sampled = self.tokenizer.sample_batch(texts, self.data.sampling, 2 * seed + side)
        most = self.model.settings.max_length
        return [
            ids if len(ids) < most else likeliest for ids, likeliest in zip(sampled, self._ids(side, plan), strict=True)
        ]

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """Label-smoothed cross-entropy per real target token, and R-Drop's term where the settings want it.

        Padded places are never even projected.
        """
        has_to_agree = self.settings.consistency > 0 and step > self.settings.consistency_after
        passes = batch.twice() if has_to_agree else batch
        hidden = self.model.hidden(
            passes.source,
            passes.target_input,
            source_is_real=passes.source != PAD,
            target_is_real=passes.target_input != PAD,
        )
        is_real = batch.target_output != PAD
        return projected_loss(
            hidden.unflatten(0, (-1, len(is_real)))[:, is_real],
            self.model.output.weight,
            batch.target_output[is_real],
            self.settings.smoothing,
            self.settings.consistency,
        )

    def describe(self, plan: NDArray[np.int64]) -> str:
        """How many pairs a batch has, and its first three."""
        texts = [[_shortened(self.data.encoded.text(side, row)) for side in (0, 1)] for row in plan[:3].tolist()]
        told = ", ".join(f"“{source}” → “{target}”" for source, target in texts)
        return f"{len(plan)} pairs, {told}{' …' if len(plan) > 3 else ''}"

    def _to_tensors(self, batch: PairBatch) -> TensorBatch:
        device = self.model.device
        source, read, written = (
            torch.from_numpy(ids).to(device) for ids in (batch.source, batch.target_input, batch.target_output)
        )
        return TensorBatch(source, read, written, batch.n_tokens)


@dataclass(frozen=True)
class Seq2Seq:
    """A model that writes one text for another."""

    shape: ClassVar[str] = "encoder-decoder"
    noun: ClassVar[str] = "sentence pairs"
    loss_unit: ClassVar[str] = "tok"
    metrics: ClassVar[tuple[str, ...]] = ("BLEU", "chrF")
    settings_type: ClassVar[type] = Seq2SeqSettings
    lens_examples: ClassVar[LensExamples] = PairExamples()
    quickstart: ClassVar[Quickstart | None] = QUICKSTART

    model: Transformer
    tokenizer: Tokenizer
    settings: Seq2SeqSettings
    engine: EngineSelector = field(default_factory=lambda: EngineSelector("torch"), compare=False)

    @property
    def module(self) -> Transformer:
        """All that learns is the model itself."""
        return self.model

    @staticmethod
    def fields(settings: Seq2SeqSettings) -> tuple[str, ...]:
        """What is read and what is written."""
        return PAIR_FIELDS

    @staticmethod
    def cleaning(settings: Seq2SeqSettings) -> Fields:
        """Both are texts."""
        return PAIR

    @staticmethod
    def read(
        files: Sequence[str],
        columns: Mapping[str, str],
        settings: Seq2SeqSettings,
        on_bad: OnBad | None = None,
    ) -> Iterator[Row]:
        """Pairs from two parallel files, or from one that holds pairs."""
        if settings.purpose == "translation":
            return read_pairs(
                files, source_column=columns.get("source"), target_column=columns.get("target"), on_bad=on_bad
            )
        chosen = [columns.get(field) for field in PAIR_FIELDS]
        return read_rows(files, PAIR_FIELDS, chosen, converters={"source": join_turns(settings.turns)}, on_bad=on_bad)

    @staticmethod
    def builtin(
        settings: Seq2SeqSettings, languages: Sequence[str], split: str, count: int, seed: int
    ) -> Iterable[Row]:
        """Sentences in two languages."""
        source, target = languages
        return corpora.pairs(source, target, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """Both sides: they share their tokens."""
        return chain.from_iterable(rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: Seq2SeqSettings) -> list[list[list[int]]]:
        """The tokens of each side."""
        return [tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Seq2SeqSettings) -> int:
        """One place is for EOS."""
        return model.max_length - 1

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, rows: Iterable[Row] = ()
    ) -> "Seq2Seq":
        """A translator that has learnt nothing yet."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, metadata: Mapping[str, Any]
    ) -> "Seq2Seq":
        """There is nothing to know besides."""
        return cls(model, tokenizer, settings)

    def metadata(self) -> dict[str, Any]:
        """Nothing that is not in the settings."""
        return {}

    def training_task(self, data: TrainingData) -> Seq2SeqTrainingTask:
        """What the training loop sees of it."""
        return Seq2SeqTrainingTask(self.model, self.tokenizer, self.settings, data)

    @property
    def limit(self) -> int:
        """The longest text it reads, in tokens: one place is for EOS."""
        return self.model.settings.max_length - 1

    def check(self, text: str, where: str) -> None:
        """Refuse a text that is too long for the model."""
        if not self.fits(text):
            self._refuse_long(self.tokenizer.encode(text), where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """The tokens of a text and EOS; BOS and those of the answer."""
        refuse_blank(text)
        source = (
            *check_fits(self.tokenizer.iter_tokens(text), self.limit),
            special_token(self.tokenizer, EOS, len(text)),
        )
        model_input = ModelInput(text, source=source, target=(special_token(self.tokenizer, BOS),))
        if answer is None:
            return model_input
        tokens = check_fits(self.tokenizer.iter_tokens(answer), self.limit, "The answer")
        return with_output(model_input, self.tokenizer, answer, [token.id for token in tokens], has_ended=True)

    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best translation of a model_input's text."""
        source = torch.tensor([[token.id for token in model_input.source]], device=self.model.device)
        found = generate(
            self.model,
            source,
            bos=BOS,
            eos=EOS,
            forbidden=_SPECIAL_TOKENS.forbidden,
            settings=settings,
            streams=[0],
            tap=tap,
        )
        best = found[0][0]
        answer = self.tokenizer.decode(best.ids)
        return best, with_output(model_input, self.tokenizer, answer, best.ids, has_ended=best.finished)

    def with_engine(self, engine: EngineSelector) -> "Seq2Seq":
        """The same task, decoding with this engine."""
        return replace(self, engine=engine)

    def engine_for(self, settings: DecodeSettings) -> Engine:
        """The engine that decodes with these settings."""
        return self.engine.select(self.model, _SPECIAL_TOKENS, settings)

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for the model."""
        # A token has at least a byte, and one may stand for the space before the text: most need not be cut up to tell.
        return len(text.encode(errors="replace")) < self.limit or len(self.tokenizer.encode(text)) <= self.limit

    def encode(self, text: str, where: str) -> list[int]:
        """The tokens of one input; one too long for the model is an error that says where, never cut short."""
        ids = self.tokenizer.encode(text)
        self._refuse_long(ids, where)
        return ids

    def _refuse_long(self, ids: Sequence[int], where: str) -> None:
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} tokens; this model reads at most {self.limit:,}. Split it up.")

    def translate(
        self, texts: Sequence[str], settings: DecodeSettings, first: int = 0
    ) -> Iterator[tuple[int, list[Translation]]]:
        """Yield (index, candidates, best first) for each text, in whatever order they are done.

        Texts of like length are decoded together. A blank text gives blank candidates. `first` is the number of
        the first text where these are a part of many: samples are drawn by a text's number.
        """
        encoded = self.tokenizer.encode_batch([text if text.strip() else "" for text in texts])
        for index, ids in enumerate(encoded):
            self._refuse_long(ids, f"text {first + index + 1}")
            if not ids:
                yield index, [Translation("", 0.0, 0.0, finished=True)] * settings.n_best
        wanted = np.array([index for index, ids in enumerate(encoded) if ids], dtype=np.int64)
        lengths = np.array([[len(encoded[index]) + 1] for index in wanted], dtype=np.int64).reshape(-1, 1)
        engine = self.engine_for(settings)
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            rows = wanted[batch].tolist()
            found = engine.generate([[*encoded[row], EOS] for row in rows], settings, [first + row for row in rows])
            for row, candidates in zip(rows, found, strict=True):
                yield row, [self._translation(best) for best in candidates]

    def answers(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[list[Translation]]:
        """What `translate` yields, in the order of the texts."""
        found = dict(self.translate(texts, settings, first))
        return [found[index] for index in range(len(texts))]

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those with two sides, and a source that the model can read."""
        return (row for row in rows if all(row) and self.fits(row[0]))

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Translate greedily."""
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        found = [candidates[0].text for candidates in self.answers(sources, DecodeSettings(method="greedy"))]
        score = quick_score(metric, found, references, self.settings.target_language)
        return ValidationResult(metric, score, list(zip(sources, found, references, strict=True)))

    def calibrate(self, rows: Sequence[Row]) -> "Seq2Seq":
        """There is nothing more to learn."""
        return self

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Translations]:
        """The candidates for each text."""
        return [Translations(candidates) for candidates in self.answers(texts, settings, first)]

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """BLEU."""
        answers = self.answer(rows, settings)
        return bleu_tally(answers.texts, answers.references, self.settings.target_language)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> TranslationCard:
        """Translate every source and compare with its reference."""
        answers = self.answer(rows, settings, progress)
        return translation_card(answers, self.settings.target_language, is_summary=self.settings.purpose == "summary")

    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Translate every source of a test set; one too long for the model gets an empty translation."""
        rows = list(rows)
        if not rows:
            raise DataError("There is nothing to score: the test set is empty.")
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        if not any(reference.strip() for reference in references):
            raise DataError("There is nothing to score: every reference is empty.")
        readable = [source if self.fits(source) else "" for source in sources]
        found = {}
        for index, candidates in self.translate(readable, settings):
            found[index] = candidates[0]
            progress(1)
        return Answers(
            sources=sources,
            # As they stand in a file of one line each, so that other tools come to the same scores.
            texts=[one_line(found[index].text) for index in range(len(rows))],
            references=references,
            n_cut_off=sum(not translation.finished for translation in found.values()),
            n_too_long=sum(text != source for text, source in zip(readable, sources, strict=True)),
        )

    def _translation(self, best: Hypothesis) -> Translation:
        return Translation(self.tokenizer.decode(best.ids), best.log_probability, best.score, best.finished)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
