"""`Seq2Seq`: one text in, another out; translation, summaries, dialogue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import torch

from manyheads import corpora
from manyheads.data import plan_batches
from manyheads.data.cleaning import PAIR, Fields
from manyheads.decode import (
    NO_REPEAT_NGRAM,
    DecodeSettings,
    Engine,
    EngineSelector,
    Hypothesis,
    SpecialTokens,
    TorchEngine,
    generate,
    is_looping,
)
from manyheads.errors import DataError
from manyheads.metrics import (
    Answers,
    Tally,
    TranslationCard,
    bleu_tally,
    overlap_tally,
    quick_score,
    sentence_chrf,
    translation_card,
)
from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.tasks.lens_examples import LensExamples
from manyheads.tasks.model_inputs import check_fits, refuse_blank, special_token, with_output
from manyheads.tasks.quickstart import Quickstart
from manyheads.tasks.seq2seq.length_penalties import choose_length_penalty, is_open, tuning_rows
from manyheads.tasks.seq2seq.seq2seq_doctor import Seq2SeqDoctor
from manyheads.tasks.seq2seq.seq2seq_examples import PairExamples
from manyheads.tasks.seq2seq.seq2seq_init import Seq2SeqInit
from manyheads.tasks.seq2seq.seq2seq_quickstart import QUICKSTART
from manyheads.tasks.seq2seq.seq2seq_training import Seq2SeqTrainingTask
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings
from manyheads.tasks.seq2seq.translation_confidence import LOW_CONFIDENCE, Confidence
from manyheads.tasks.task import DecodingChoice, ModelInput, Progress, TrainingData, ValidationResult, one_line
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.files import OnBad
from manyheads.text.readers import Row, read_pairs, read_rows
from manyheads.text.row_spec import PAIR as PAIR_FIELDS
from manyheads.text.row_spec import join_turns
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from manyheads.text.words import is_blank

_N_MEASURED = 5000  # training pairs whose lengths are measured
_MAX_EXCESS = 2.0  # an output with more than this many times the tokens of training, and a few more, is suspect
_FEW_TOKENS = 10
_MIN_TUNED = 20  # with fewer rows, nothing is chosen
_SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))


@dataclass(frozen=True)
class Translation:
    """One candidate translation."""

    text: str
    log_probability: float
    score: float
    finished: bool  # False if it reached the maximum length
    mean_log_probability: float = 0.0  # of a token, EOS included


@dataclass(frozen=True)
class Translations:
    """The candidates for one text."""

    candidates: Sequence[Translation]  # best first
    # "repetition": the model was caught in a loop; the candidates are of a second search without repetition, if it
    # ended. "length": the best candidate is more than twice as long as in training.
    warnings: Sequence[str] = ()
    # Rank of the best candidate's mean log-probability among translations of the validation set, 0 to 1; None: unknown.
    confidence: float | None = None

    @property
    def is_low_confidence(self) -> bool:
        """Whether nearly all translations of the validation set had a higher log-probability."""
        return self.confidence is not None and self.confidence < LOW_CONFIDENCE

    @property
    def answer(self) -> str:
        """The best candidate."""
        return self.candidates[0].text

    def line(self) -> str:
        """The best candidate as one line; a model may generate line breaks."""
        return one_line(self.answer)


@dataclass(frozen=True)
class Seq2Seq:
    """A model that generates one text from another."""

    shape: ClassVar[str] = "encoder-decoder"
    noun: ClassVar[str] = "sentence pairs"
    loss_unit: ClassVar[str] = "tok"
    metrics: ClassVar[tuple[str, ...]] = ("BLEU", "chrF")
    settings_type: ClassVar[type] = Seq2SeqSettings
    lens_examples: ClassVar[LensExamples] = PairExamples()
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = Seq2SeqInit()
    doctor: ClassVar[TaskDoctor] = Seq2SeqDoctor()

    model: Transformer
    tokenizer: Tokenizer
    settings: Seq2SeqSettings
    engine: EngineSelector = field(default_factory=lambda: EngineSelector("torch"), compare=False)
    length_ratio: float | None = None  # of target to source tokens, EOS included: 99.9 % of training pairs are below
    confidence: Confidence | None = None  # None: not fitted

    @property
    def module(self) -> Transformer:
        """The model."""
        return self.model

    @staticmethod
    def fields(settings: Seq2SeqSettings) -> tuple[str, ...]:
        """Source and target."""
        return PAIR_FIELDS

    @staticmethod
    def cleaning(settings: Seq2SeqSettings) -> Fields:
        """Both fields are texts."""
        return PAIR

    @staticmethod
    def languages(settings: Seq2SeqSettings) -> tuple[str, ...]:
        """Source and target."""
        return settings.source_language, settings.target_language

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """Source and target language."""
        return dict(zip(("source_language", "target_language"), (*languages, ""), strict=False))

    @staticmethod
    def read(
        files: Sequence[str],
        columns: Mapping[str, str],
        settings: Seq2SeqSettings,
        on_bad: OnBad | None = None,
    ) -> Iterator[Row]:
        """Read pairs from two parallel files or from one table."""
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
        """Sentence pairs in two languages."""
        source, target = languages
        return corpora.pairs(source, target, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """Both sides, which share a vocabulary."""
        return chain.from_iterable(rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: Seq2SeqSettings) -> list[list[list[int]]]:
        """The token ids of each side."""
        return [tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Seq2SeqSettings) -> int:
        """One position is for EOS."""
        return model.max_length - 1

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, rows: Iterable[Row] = ()
    ) -> "Seq2Seq":
        """Create an untrained model; the first rows tell how long targets are."""
        sides = list(zip(*islice(rows, _N_MEASURED), strict=True))
        if not sides:
            return cls(model, tokenizer, settings)
        sources, targets = (np.array([len(ids) + 1 for ids in tokenizer.encode_batch(side)]) for side in sides)
        return cls(model, tokenizer, settings, length_ratio=float(np.quantile(targets / sources, 0.999)))

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, metadata: Mapping[str, Any]
    ) -> "Seq2Seq":
        """Create the model; bundles of earlier versions have no length ratio and no confidence."""
        ratio, confidence = metadata.get("length_ratio"), metadata.get("confidence")
        return cls(
            model,
            tokenizer,
            settings,
            length_ratio=None if ratio is None else float(ratio),
            confidence=None if confidence is None else Confidence.restore(confidence),
        )

    def metadata(self) -> dict[str, Any]:
        """The length ratio and the confidence, if they are known."""
        ratio = {} if self.length_ratio is None else {"length_ratio": self.length_ratio}
        return ratio if self.confidence is None else {**ratio, "confidence": self.confidence.metadata()}

    def training_task(self, data: TrainingData) -> Seq2SeqTrainingTask:
        """The task as the training loop sees it."""
        return Seq2SeqTrainingTask(self.model, self.tokenizer, self.settings, data)

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text; one position is for EOS."""
        return self.model.settings.max_length - 1

    def check(self, text: str, where: str) -> None:
        """Raise DataError if a text is too long for the model."""
        if not self.fits(text):
            self._refuse_long(self.tokenizer.encode(text), where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """Source: the tokens of the text and EOS; target: BOS and the tokens of the answer."""
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
        """The best translation of the text."""
        source = torch.tensor([[token.id for token in model_input.source]], device=self.model.device)
        hypotheses = generate(
            self.model,
            source,
            bos=BOS,
            eos=EOS,
            forbidden=_SPECIAL_TOKENS.forbidden,
            settings=settings,
            streams=[0],
            tap=tap,
        )
        best = hypotheses[0][0]
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
        # A token has at least one byte, and one may be the space before the text: most texts need no tokenizing.
        return len(text.encode(errors="replace")) < self.limit or len(self.tokenizer.encode(text)) <= self.limit

    def encode(self, text: str, where: str) -> list[int]:
        """The token ids of one text; a text too long for the model is refused, never truncated."""
        ids = self.tokenizer.encode(text)
        self._refuse_long(ids, where)
        return ids

    def _refuse_long(self, ids: Sequence[int], where: str) -> None:
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} tokens; this model reads at most {self.limit:,}. Split it up.")

    def predict(
        self,
        texts: Sequence[str],
        settings: DecodeSettings,
        first: int = 0,
        progress: Progress = lambda done: None,
    ) -> list[Translations]:
        """The candidates for each text; a blank text has blank candidates.

        A text whose best candidate is caught in a loop is decoded again without repetition. Samples are drawn by a
        text's index, which starts at `first`.
        """
        encoded = self.tokenizer.encode_batch(["" if is_blank(text) else text for text in texts])
        predictions = [Translations([Translation("", 0.0, 0.0, finished=True)] * settings.n_best)] * len(texts)
        for index, ids in enumerate(encoded):
            self._refuse_long(ids, f"text {first + index + 1}")
            if not ids:
                progress(1)
        engine, looping = self.engine_for(settings), list[int]()
        for row, hypotheses in self._decode(
            encoded, [row for row, ids in enumerate(encoded) if ids], engine, settings, first
        ):
            predictions[row] = self._translations(encoded[row], hypotheses)
            if "repetition" in predictions[row].warnings:
                looping.append(row)
            progress(1)
        if settings.repetition_guard and looping:
            # Always with PyTorch, so that the outputs of all engines are the same.
            torch_engine, guarded = (
                TorchEngine(self.model, _SPECIAL_TOKENS),
                replace(settings, no_repeat_ngram=NO_REPEAT_NGRAM),
            )
            for row, hypotheses in self._decode(encoded, looping, torch_engine, guarded, first):
                if hypotheses[0].finished:
                    again = self._translations(encoded[row], hypotheses)
                    predictions[row] = replace(again, warnings=["repetition", *again.warnings])
        if self.confidence is not None and settings.method != "sample":
            for row, ids in enumerate(encoded):
                if ids:
                    mean = predictions[row].candidates[0].mean_log_probability
                    predictions[row] = replace(predictions[row], confidence=self.confidence.of(mean))
        return predictions

    def _decode(
        self,
        encoded: Sequence[Sequence[int]],
        rows: Sequence[int],
        engine: Engine,
        settings: DecodeSettings,
        first: int,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the hypotheses of these rows; rows of similar length are decoded together."""
        lengths = np.array([[len(encoded[row]) + 1] for row in rows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            chosen = [rows[index] for index in batch.tolist()]
            sources, streams = [[*encoded[row], EOS] for row in chosen], [first + row for row in chosen]
            yield from zip(chosen, engine.generate(sources, settings, streams), strict=True)

    def _translations(self, source: Sequence[int], hypotheses: Sequence[Hypothesis]) -> Translations:
        best, warnings = hypotheses[0].ids, []
        if is_looping(best, source):
            warnings.append("repetition")
        if self.length_ratio is not None:
            usual = self.length_ratio * (len(source) + 1)
            if len(best) + 1 > _MAX_EXCESS * usual + _FEW_TOKENS:
                warnings.append("length")
        return Translations([self._translation(one) for one in hypotheses], warnings)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows with two sides and a source that the model can read."""
        return (row for row in rows if all(row) and self.fits(row[0]))

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score greedy translations."""
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        translations = [
            one.answer for one in self.predict(sources, DecodeSettings(method="greedy", repetition_guard=False))
        ]
        score = quick_score(metric, translations, references, self.settings.target_language)
        return ValidationResult(metric, score, list(zip(sources, translations, references, strict=True)))

    def calibrate(self, rows: Sequence[Row]) -> "Seq2Seq":
        """Nothing is calibrated."""
        return self

    def tune_decoding(
        self, rows: Sequence[Row], settings: DecodeSettings, metric: str
    ) -> tuple["Seq2Seq", DecodeSettings, DecodingChoice | None]:
        """Choose the length penalty on a few hundred rows, unless it is set, and fit the confidence to them."""
        chosen = tuning_rows(list(self.usable(rows)))
        if settings.method == "sample" or len(chosen) < _MIN_TUNED:
            return self, settings, None
        sources, references = ([row[side] for row in chosen] for side in (0, 1))
        task = replace(self, engine=EngineSelector("auto"), confidence=None)

        def translate(settings: DecodeSettings) -> list[Translations]:
            return task.predict(sources, replace(settings, n_best=1))

        def tally(translations: Sequence[Translations]) -> Tally:
            texts = [one.answer for one in translations]
            return overlap_tally(metric, texts, references, self.settings.target_language)

        choice = None
        if is_open(settings):
            choice, found = choose_length_penalty(settings, translate, tally)
            settings = replace(settings, length_penalty=choice.value)
        else:
            found = translate(settings)
        means = [one.candidates[0].mean_log_probability for one in found]
        confidence = Confidence.fit(means, sentence_chrf([one.answer for one in found], references))
        return replace(self, confidence=confidence), settings, choice

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of BLEU."""
        answers = self.answer(rows, settings)
        return bleu_tally(answers.texts, answers.references, self.settings.target_language)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> TranslationCard:
        """Translate every source and compare it with its reference."""
        answers = self.answer(rows, settings, progress)
        return translation_card(answers, self.settings.target_language, is_summary=self.settings.purpose == "summary")

    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Translate every source of a test set; a source too long for the model gets an empty translation."""
        rows = list(rows)
        if not rows:
            raise DataError("The test set is empty: there is nothing to score. Give rows.")
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        if not any(reference.strip() for reference in references):
            raise DataError("Every reference is empty: there is nothing to score. Give references.")
        readable = [source if self.fits(source) else "" for source in sources]
        best = [one.candidates[0] for one in self.predict(readable, settings, progress=progress)]
        return Answers(
            sources=sources,
            # As in a file with one line per text, so that other tools compute the same scores.
            texts=[one_line(translation.text) for translation in best],
            references=references,
            n_cut_off=sum(not translation.finished for translation in best),
            n_too_long=sum(text != source for text, source in zip(readable, sources, strict=True)),
        )

    def _translation(self, hypothesis: Hypothesis) -> Translation:
        text = self.tokenizer.decode(hypothesis.ids)
        mean = hypothesis.log_probability / max(1, len(hypothesis.ids) + hypothesis.finished)
        return Translation(text, hypothesis.log_probability, hypothesis.score, hypothesis.finished, mean)
