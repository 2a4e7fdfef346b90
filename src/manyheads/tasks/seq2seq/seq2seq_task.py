"""`Seq2Seq`: one text in, another out; translation, summaries, dialogue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from manyheads import corpora
from manyheads.data.cleaning import PAIR, Fields
from manyheads.decode import (
    DecodeSettings,
    Engine,
    EngineSelector,
    Hypothesis,
    SpecialTokens,
    TorchEngine,
    generate,
)
from manyheads.errors import DataError
from manyheads.messages import Message, _
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
from manyheads.tasks.lens_output import LensOutput, WriterProbe
from manyheads.tasks.model_inputs import ModelInput, check_fits, refuse_blank, special_token, with_output
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.seq2seq.seq2seq_commands import QUICKSTART, Seq2SeqDoctor, Seq2SeqInit
from manyheads.tasks.seq2seq.seq2seq_lens import PairExamples, probe_writing, text_to_read
from manyheads.tasks.seq2seq.seq2seq_training import Seq2SeqTrainingTask
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings, TextOptions, options_per_text
from manyheads.tasks.seq2seq.translation_parts import (
    Part,
    PartReader,
    Translation,
    has_layout,
    join_candidates,
    masked_tokens,
    part_spans,
    with_copied_spans,
)
from manyheads.tasks.seq2seq.translation_search import (
    LOW_CONFIDENCE,
    Confidence,
    PartSearch,
    choose_length_penalty,
    is_open,
    tuning_rows,
)
from manyheads.tasks.task import (
    AnswerForm,
    DecodingChoice,
    PairTask,
    Progress,
    TrainingData,
    ValidationResult,
    one_line,
)
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.markup.copyable_spans import copyable_spans, restore
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row, read_pairs, read_rows
from manyheads.text.reading.row_spec import PAIR as PAIR_FIELDS
from manyheads.text.reading.row_spec import Converter, turns_converter
from manyheads.text.tokens.sentence_splitting import split_sentences
from manyheads.text.tokens.text_profile import TextProfile
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from manyheads.text.tokens.words import is_blank

_N_EXAMINED = 20_000  # training sources whose writing is examined
_N_MEASURED = 5000  # training pairs whose lengths are measured
_MAX_EXCESS = 2.0  # an output with more than this many times the tokens of training, and a few more, is suspect
_FEW_TOKENS = 10
_MIN_TUNED = 20  # with fewer rows, nothing is chosen
_MIN_SHARE = 0.75  # a translation with less than this share of the tokens of training is suspect
_STREAMS_PER_PART = 1 << 40  # random streams of texts
_SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))


@dataclass(frozen=True)
class Translations:
    """The candidates for one text.

    A text with more sentences than usual in training, or longer than any, is translated in parts. Its candidates are
    the combinations with the highest mean score.
    """

    candidates: Sequence[Translation]  # best first
    # "repetition": the model was caught in a loop; the candidates are of a second search without repetition, if it
    # ended. "length": the best candidate is more than twice as long as in training. "short": a part is shorter than
    # in training, or sentences were left out. "missing", "glossary": see below.
    warnings: Sequence[str] = ()
    # What the best candidate lacks: code, markup, URLs and the like that it should repeat ("missing"), and terms that
    # the options of the text require ("glossary").
    missing: Sequence[str] = ()
    # Of a text translated in parts: (start, end) of each in the text, (start, end) of its translation.
    parts: Sequence[tuple[int, int, int, int]] = ()
    # Rank of the best candidate's mean log-probability among translations of the validation set, 0 to 1; None: unknown.
    confidence: float | None = None
    abstained: bool = False  # the confidence is below `DecodeSettings.abstain`, so that there is no answer

    @property
    def is_low_confidence(self) -> bool:
        """Whether nearly all translations of the validation set had a higher log-probability."""
        return self.confidence is not None and self.confidence < LOW_CONFIDENCE

    @property
    def answer(self) -> str:
        """The best candidate; empty if the model abstains."""
        return "" if self.abstained else self.candidates[0].text

    def line(self) -> str:
        """The answer as one line; a model may generate line breaks."""
        return one_line(self.answer)

    def cells(self) -> dict[str, str | float | None]:
        """The answer and its confidence."""
        return {"answer": self.answer, "confidence": self.confidence}


@dataclass(frozen=True)
class Seq2Seq(PairTask):
    """A model that generates one text from another."""

    shape: ClassVar[str] = "encoder-decoder"
    answer_form: ClassVar[AnswerForm] = "text"
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
    min_length_ratio: float | None = None  # 99.9 % are above
    longest_source: int | None = None  # tokens of the longest training source
    profile: TextProfile | None = None  # what training sources looked like; only for translation
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
        return read_rows(
            files, PAIR_FIELDS, chosen, converters={"source": turns_converter(settings.turns)}, on_bad=on_bad
        )

    @staticmethod
    def text_converter(settings: Seq2SeqSettings) -> Converter:
        """Join the turns of a dialogue."""
        return turns_converter(settings.turns)

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
        """The token ids of each side; placeholders stand for what is copied."""
        masked = [tokenizer.placeholders.mask_pair(*row) for row in rows]
        sides = (tokenizer, tokenizer.target)
        return [own.encode_batch([row[side] for row in masked]) for side, own in enumerate(sides)]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Seq2SeqSettings) -> int:
        """One position is for EOS."""
        return model.max_length - 1

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, rows: Iterable[Row] = ()
    ) -> "Seq2Seq":
        """Create an untrained model; a sample of the rows tells how long targets are and what sources look like."""
        rows = list(_sample(rows))
        if not rows:
            return cls(model, tokenizer, settings)
        sources, targets = (
            np.array([len(ids) + 1 for ids in side])
            for side in cls.encode_rows(rows[:: -(-len(rows) // _N_MEASURED)], tokenizer, settings)
        )
        is_translation = settings.purpose == "translation"
        return cls(
            model,
            tokenizer,
            settings,
            length_ratio=float(np.quantile(targets / sources, 0.999)),
            min_length_ratio=float(np.quantile(targets / sources, 0.001)),
            longest_source=int(sources.max()) - 1,
            profile=TextProfile.of((row[0] for row in rows), settings.source_language) if is_translation else None,
        )

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: Seq2SeqSettings, metadata: Mapping[str, Any]
    ) -> "Seq2Seq":
        """Create the model; bundles of earlier versions do not tell what training texts were like."""
        ratios = [metadata.get(name) for name in ("length_ratio", "min_length_ratio")]
        longest, profile = metadata.get("longest_source"), metadata.get("text_profile")
        confidence = metadata.get("confidence")
        return cls(
            model,
            tokenizer,
            settings,
            length_ratio=None if ratios[0] is None else float(ratios[0]),
            min_length_ratio=None if ratios[1] is None else float(ratios[1]),
            longest_source=None if longest is None else max(1, int(longest)),
            profile=None if profile is None else TextProfile.from_table(profile),
            confidence=None if confidence is None else Confidence.restore(confidence),
        )

    def metadata(self) -> dict[str, Any]:
        """What training pairs looked like and the confidence, as far as they are known."""
        known = {
            "length_ratio": self.length_ratio,
            "min_length_ratio": self.min_length_ratio,
            "longest_source": self.longest_source,
            "text_profile": None if self.profile is None else self.profile.to_table(),
            "confidence": None if self.confidence is None else self.confidence.metadata(),
        }
        return {name: value for name, value in known.items() if value is not None}

    def training_task(self, data: TrainingData) -> Seq2SeqTrainingTask:
        """The task as the training loop sees it."""
        return Seq2SeqTrainingTask(self.model, self.tokenizer, self.settings, data)

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text; one position is for EOS."""
        return self.model.settings.max_length - 1 - max(len(self.tokenizer.opens), len(self.tokenizer.leads))

    @property
    def is_translation(self) -> bool:
        """Whether targets are translations, so that a text can be translated sentence by sentence."""
        return self.settings.purpose == "translation"

    @property
    def has_confidence(self) -> bool:
        """Whether a confidence was fitted to validation rows."""
        return self.confidence is not None

    @property
    def part_reader(self) -> PartReader:
        """How a text to translate is prepared for the model."""
        longest = self.limit if self.longest_source is None else min(self.limit, self.longest_source)
        return PartReader(self.tokenizer, longest, self.profile, self.settings.source_language)

    def check(self, text: str, where: str) -> None:
        """Raise DataError if a text is too long for the model; a text to translate never is."""
        if not self.fits(text):
            self._refuse_long(self.tokenizer.encode(text), where)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """Source: the tokens of the text and EOS; target: BOS and the tokens of the answer.

        Placeholders stand for what is copied. The text is not divided into sentences.
        """
        refuse_blank(text)
        copied = None if answer is None else [answer[start:end] for start, end in copyable_spans(answer)]
        assigned = self.tokenizer.placeholders.assign(text, copied)
        opens, leads = (
            tuple(special_token(self.tokenizer, number) for number in ids)
            for ids in (self.tokenizer.opens, self.tokenizer.leads)
        )
        source = (
            *opens,
            *check_fits(masked_tokens(self.tokenizer, text, assigned), self.limit),
            special_token(self.tokenizer, EOS, len(text)),
        )
        model_input = ModelInput(text, source=source, target=(special_token(self.tokenizer, BOS), *leads))
        if answer is None:
            return model_input
        tokens = check_fits(masked_tokens(self.tokenizer.target, answer, assigned), self.limit, _("The answer"))
        return replace(
            model_input,
            answer=answer,
            target=(*model_input.target, *tokens),
            last=special_token(self.tokenizer, EOS, len(answer)),
        )

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
            prompt=self._prompt(len(source)),
            streams=[0],
            tap=tap,
        )
        best = hypotheses[0][0]
        output = self.tokenizer.decode(best.ids)
        written = with_output(model_input, self.tokenizer, output, best.ids, has_ended=best.finished)
        assigned = self.tokenizer.placeholders.assign(model_input.text)
        return best, with_copied_spans(written, restore(output, assigned)) if assigned else written

    def _prompt(self, n_rows: int) -> Int[Tensor, "B P"] | None:
        leads = self.tokenizer.leads
        return torch.tensor([leads] * n_rows, device=self.model.device) if leads else None

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The tokens of the input's target, with their probabilities and alternatives."""
        return probe_writing(self, model_input).output()

    def lens_probe(self, model_input: ModelInput) -> WriterProbe:
        """The input's target, to be measured with other gates."""
        return probe_writing(self, model_input)

    def text_to_read(self, text: str) -> tuple[str, tuple[Message, ...]]:
        """The text as `predict` has the model read it, and what `predict` does besides."""
        return text_to_read(self, text)

    def with_engine(self, engine: EngineSelector) -> "Seq2Seq":
        """The same task, decoding with this engine."""
        return replace(self, engine=engine)

    def engine_for(self, settings: DecodeSettings, n_texts: int = 1) -> Engine:
        """The engine that decodes this many texts with these settings."""
        special_tokens = replace(_SPECIAL_TOKENS, leads=self.tokenizer.leads)
        return self.engine.select(self.model, special_tokens, settings, n_texts)

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for the model; a text to translate is divided if it is not."""
        if self.is_translation:
            return True
        # A token has at least one byte, and one may be the space before the text: most texts need no tokenizing.
        return len(text.encode(errors="replace")) < self.limit or len(self.tokenizer.encode(text)) <= self.limit

    def encode(self, text: str, where: str) -> list[int]:
        """The token ids of one text; a text too long for the model is refused, never truncated."""
        ids = self.tokenizer.encode(text)
        self._refuse_long(ids, where)
        return ids

    def _refuse_long(self, ids: Sequence[int], where: str) -> None:
        if len(ids) > self.limit:
            raise DataError(
                _(
                    "{where} has {n_tokens:,} tokens; this model reads at most {limit:,}. Split it up.",
                    where=where,
                    n_tokens=len(ids),
                    limit=self.limit,
                )
            )

    def predict(
        self,
        texts: Sequence[str],
        settings: DecodeSettings,
        first: int = 0,
        progress: Progress = lambda done: None,
        options: Sequence[TextOptions] | None = None,
    ) -> list[Translations]:
        """The candidates for each text; a blank text has blank candidates, a text to translate without letters copies.

        A text whose best candidate is caught in a loop, lacks a span to copy or a term that its `options` require is
        decoded again, see `PartSearch`. Samples are drawn by a text's index, which starts at `first`. Texts to
        translate are read in parts, see `PartReader`.
        """
        options = options_per_text(options, len(texts))
        if options is not None:
            self._check_options(options, settings)
        ids_by_source: dict[str, list[int]] = {}
        parts = self._parts(texts, options, ids_by_source)
        rows = [(index, number) for index, own in enumerate(parts) for number in range(len(own))]
        flat = [parts[index][number] for index, number in rows]
        new = list(dict.fromkeys(part.source for part in flat if part.source not in ids_by_source))
        ids_by_source |= zip(new, self.tokenizer.encode_batch(new), strict=True)
        encoded = [ids_by_source[part.source] for part in flat]
        for (index, _text), ids in zip(rows, encoded, strict=True):
            if len(ids) > self.limit:
                self._refuse_long(ids, _("text {number}", number=first + index + 1))
        n_pending = [len(own) for own in parts]
        progress(n_pending.count(0))

        def part_done(row: int) -> None:
            index = rows[row][0]
            n_pending[index] -= 1
            if not n_pending[index]:
                progress(1)

        # The first part of a text draws the same samples as the text would.
        streams = [first + index + number * _STREAMS_PER_PART for index, number in rows]
        decoded = self._predict_parts(flat, encoded, streams, settings, part_done)
        own = iter(decoded)
        return [
            self._join(text, text_parts, [next(own) for _ in text_parts], settings)
            for text, text_parts in zip(texts, parts, strict=True)
        ]

    def _check_options(self, options: Sequence[TextOptions], settings: DecodeSettings) -> None:
        """Raise DataError if this model cannot satisfy any options, or not these."""
        if not self.is_translation:
            purpose = f'task.purpose = "{self.settings.purpose}"'
            raise DataError(
                _("glossary, keep and prefix are for translation; this model has {purpose}.", purpose=purpose)
            )
        if settings.method == "sample":
            raise DataError(_('glossary, keep and prefix are not for samples. Use decode.method = "beam" or "greedy".'))
        for prefix in dict.fromkeys(option.prefix for option in options):
            n_tokens = len(self.tokenizer.encode(prefix))
            if n_tokens >= self.limit:
                raise DataError(
                    _(
                        "The prefix has {n_tokens:,} tokens; this model generates at most {limit:,}. Shorten it.",
                        n_tokens=n_tokens,
                        limit=self.limit,
                    )
                )

    def _parts(
        self,
        texts: Sequence[str],
        options: Sequence[TextOptions] | None = None,
        ids_by_source: dict[str, list[int]] | None = None,
    ) -> list[list[Part]]:
        if not self.is_translation:
            return [[] if is_blank(text) else [Part(0, len(text), text)] for text in texts]
        return self.part_reader.parts(texts, options, {} if ids_by_source is None else ids_by_source)

    def _predict_parts(
        self,
        parts: Sequence[Part],
        encoded: Sequence[Sequence[int]],
        streams: Sequence[int],
        settings: DecodeSettings,
        done: Progress,
    ) -> list[Translations]:
        """The candidates for each part."""
        search = PartSearch(
            parts,
            encoded,
            streams,
            settings,
            self.tokenizer,
            self.engine_for(settings, len(parts)),
            TorchEngine(self.model, _SPECIAL_TOKENS),
        )
        found, looping = search.run(done)
        hypotheses = [found[row] for row in range(len(parts))]
        outputs = iter(self.tokenizer.decode_batch(one.ids for own in hypotheses for one in own))
        confidences: Sequence[float | None] = [None] * len(parts)
        if self.confidence is not None and settings.method != "sample":
            means = self.confidence.of_all([_mean_log_probability(own[0]) for own in hypotheses])
            confidences = [mean if ids else None for mean, ids in zip(means, encoded, strict=True)]
        predictions = []
        for row, (part, ids, own) in enumerate(zip(parts, encoded, hypotheses, strict=True)):
            lacking = search.lacking(row, own[0]) if part.has_requirements else []
            candidates = [self._translation(part, one, next(outputs)) for one in own]
            predictions.append(
                self._translations(part, ids, own, candidates, lacking, row in looping, confidences[row])
            )
        return predictions

    def _translations(
        self,
        part: Part,
        source: Sequence[int],
        hypotheses: Sequence[Hypothesis],
        candidates: Sequence[Translation],
        lacking: Sequence[str],
        is_looping: bool,
        confidence: float | None,
    ) -> Translations:
        warnings = ["repetition"] if is_looping else []
        n_source, n_best = len(source) + 1, len(hypotheses[0].ids) + 1
        if self.length_ratio is not None and n_best > _MAX_EXCESS * self.length_ratio * n_source + _FEW_TOKENS:
            warnings.append("length")
        answer = candidates[0].text
        if self.is_translation and self._is_short(part, answer, n_best / n_source):
            warnings.append("short")
        missing = part.missing(answer)
        terms = [term for term in lacking if term in part.terms]
        warnings += [name for name, lost in (("missing", missing), ("glossary", terms)) if lost]
        lost = list(dict.fromkeys([*missing, *terms])) if missing or terms else []
        return Translations(candidates, warnings, lost, confidence=confidence)

    @staticmethod
    def _translation(part: Part, one: Hypothesis, output: str) -> Translation:
        mean = _mean_log_probability(one)
        return Translation(part.finish(output), one.log_probability, one.score, one.finished, mean)

    def _is_short(self, part: Part, answer: str, ratio: float) -> bool:
        """Whether a translation is too short to be complete."""
        if self.min_length_ratio is not None and ratio < _MIN_SHARE * self.min_length_ratio:
            return True
        if is_blank(answer):
            return True
        n_sentences = len(split_sentences(part.source, self.settings.source_language))
        return n_sentences > 2 and n_sentences > 2 * len(split_sentences(answer, self.settings.target_language))

    def _join(
        self, text: str, parts: Sequence[Part], predictions: Sequence[Translations], settings: DecodeSettings
    ) -> Translations:
        """The prediction for a text from those for its parts."""
        if not parts:  # blank, or nothing to translate
            copy = text if self.is_translation and not is_blank(text) else ""
            return Translations([Translation(copy, 0.0, 0.0, finished=True)] * settings.n_best)
        is_plain = not self.is_translation or not has_layout(text, parts)
        joined = predictions[0] if is_plain else self._joined(text, parts, predictions, settings)
        if settings.abstain is None or joined.confidence is None or joined.confidence >= settings.abstain:
            return joined
        return replace(joined, parts=(), abstained=True)

    def _joined(
        self, text: str, parts: Sequence[Part], predictions: Sequence[Translations], settings: DecodeSettings
    ) -> Translations:
        return Translations(
            join_candidates(
                text,
                parts,
                [part.candidates for part in predictions],
                settings.n_best,
                are_samples=settings.method == "sample",
            ),
            list(dict.fromkeys(warning for part in predictions for warning in part.warnings)),
            list(dict.fromkeys(span for part in predictions for span in part.missing)),
            part_spans(text, parts, [part.candidates[0] for part in predictions]),
            min((part.confidence for part in predictions if part.confidence is not None), default=None),
        )

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows with two sides and a source that the model can read."""
        return (row for row in rows if all(row) and self.fits(row[0]))

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score greedy translations."""
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        translations = [
            prediction.answer
            for prediction in self.predict(sources, DecodeSettings(method="greedy", repetition_guard=False))
        ]
        score = quick_score(metric, translations, references, self.settings.target_language)
        return ValidationResult(metric, score, list(zip(sources, translations, references, strict=True)))

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
            return task.predict(sources, replace(settings, n_best=1, abstain=None))

        def tally(translations: Sequence[Translations]) -> Tally:
            texts = [translation.answer for translation in translations]
            return overlap_tally(metric, texts, references, self.settings.target_language)

        choice = None
        if is_open(settings):
            choice, found = choose_length_penalty(settings, translate, tally)
            settings = replace(settings, length_penalty=choice.value)
        else:
            found = translate(settings)
        means = [translation.candidates[0].mean_log_probability for translation in found]
        confidence = Confidence.fit(means, sentence_chrf([translation.answer for translation in found], references))
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
        return translation_card(
            answers,
            self.settings.target_language,
            is_summary=self.settings.purpose == "summary",
            is_translation=self.is_translation,
        )

    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Answer every source of a test set; one that is too long for the model gets an empty answer."""
        rows = list(rows)
        if not rows:
            raise DataError(_("The test set is empty: there is nothing to score. Give rows."))
        sources, references = ([row[side] for row in rows] for side in (0, 1))
        if not any(reference.strip() for reference in references):
            raise DataError(_("Every reference is empty: there is nothing to score. Give references."))
        readable = [source if self.fits(source) else "" for source in sources]
        best = [prediction.candidates[0] for prediction in self.predict(readable, settings, progress=progress)]
        return Answers(
            sources=sources,
            # As in a file with one line per text, so that other tools compute the same scores.
            texts=[one_line(translation.text) for translation in best],
            references=references,
            n_cut_off=sum(not translation.finished for translation in best),
            n_too_long=sum(text != source for text, source in zip(readable, sources, strict=True)),
        )


def _mean_log_probability(one: Hypothesis) -> float:
    """The mean log-probability of a token, EOS included."""
    return one.log_probability / max(1, len(one.ids) + one.finished)


def _sample(rows: Iterable[Row]) -> Iterable[Row]:
    """At most `_N_EXAMINED` rows, from everywhere if their number is known: files are often sorted by length."""
    step = -(-len(rows) // _N_EXAMINED) if isinstance(rows, Sized) else 1
    return islice(rows, 0, _N_EXAMINED * max(1, step), max(1, step))
