"""`Tag`: a text in, its labeled spans out, with the intent of the text if rows have one."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from manyheads import corpora
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.metrics import Decisions, Score, SpanCard, Tally, f1_tally, label_card, span_card, span_decisions
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.labels import MAX_TAGS, check_label_metadata, refuse_many_labels
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.lens_output import LensOutput
from manyheads.tasks.model_inputs import ModelInput, encoder_input, shift_spans
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.tag.crf import States
from manyheads.tasks.tag.linear_tagger import LinearTagger
from manyheads.tasks.tag.tag_commands import QUICKSTART, TagDoctor, TagInit
from manyheads.tasks.tag.tag_training import Mentions, Tagger, TagSettings, TagTrainingTask, WordBatch, iob2_spans
from manyheads.tasks.tag.tagging import (
    Entity,
    Scores,
    Shares,
    TaggedWords,
    Tagging,
    TagProbe,
    WordTagger,
    tokenize_words,
)
from manyheads.tasks.task import AnswerForm, LabelingTask, Progress, TrainingData, ValidationResult
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row
from manyheads.text.reading.tag_schemes import Span, TagFaultError, tags_to_spans
from manyheads.text.reading.tagged_readers import TAGGED_FILES, read_tagged
from manyheads.text.tokens.tokenizer import Tokenizer
from manyheads.text.tokens.words import SplitBy, choose_split_by, is_blank, split_text

logger = logging.getLogger(__name__)

_MAX_SHOWN = 5
_MOST = 0.5  # of the sentences: if more are faulty, the scheme or the column is most likely wrong


@dataclass
class TagFaults:
    """The faults of one file."""

    file: str
    n_faults: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: DataError) -> None:
        """Count a fault."""
        self.n_faults += 1
        if len(self.first) < _MAX_SHOWN:
            self.first.append(self._described(error))

    def _described(self, error: DataError) -> str:
        """Return what is wrong, without the file and without advice, which the report has once."""
        if not isinstance(error, TagFaultError):
            return str(error)
        where = str(error.where).removeprefix(self.file).lstrip(", ")
        return _("{where}: {fault}", where=where, fault=error.fault)

    def reported(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows; log a warning after the last if there were faults, and raise if most rows had one."""
        n_rows = n_faulty = n_before = 0
        for row in rows:
            n_rows += 1
            n_faulty += self.n_faults > n_before
            n_before = self.n_faults
            yield row
        if n_faulty > max(1, _MOST * n_rows):
            raise DataError(
                _(
                    "{file}: the tags of {n_faulty:,} of {n_rows:,} sentences are not valid: {listed}. Choose the "
                    "column that holds the tags, or set task.scheme (init: --scheme).",
                    file=self.file,
                    n_faulty=n_faulty,
                    n_rows=n_rows,
                    listed=self._listed,
                )
            )
        if n_faulty:
            _warn_once(
                _(
                    "{file}: the tags of {n_faulty:,} of {n_rows:,} sentences are not valid and were repaired "
                    "as conlleval reads them: {listed}.",
                    file=self.file,
                    n_faulty=n_faulty,
                    n_rows=n_rows,
                    listed=self._listed,
                )
            )

    @property
    def _listed(self) -> str:
        n_more = self.n_faults - len(self.first)
        return "; ".join([*self.first, *([_("and {n_more:,} more", n_more=n_more)] if n_more else [])])


@lru_cache(64)
def _warn_once(message: str) -> None:
    """A run reads its files several times."""
    logger.warning(message)


_SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # of the linear tagger, to choose from


@dataclass(frozen=True)
class Tag(LabelingTask):
    """A model that finds spans; the scores of a long text are averaged over windows."""

    shape: ClassVar[str] = "encoder"
    answer_form: ClassVar[AnswerForm] = "spans"
    noun: ClassVar[str] = "tagged texts"
    loss_unit: ClassVar[str] = "words"
    metrics: ClassVar[tuple[str, ...]] = ("F1", "exact sentences", "intent accuracy", "accuracy")
    settings_type: ClassVar[type] = TagSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(is_annotated=True, tokenizer=tokenize_words)
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = TagInit()
    doctor: ClassVar[TaskDoctor] = TagDoctor()

    module: Tagger
    tokenizer: Tokenizer
    settings: TagSettings
    states: States
    intents: tuple[str, ...]
    split_by: SplitBy  # how raw text is split, as the training rows were
    calibration: Calibration = field(default_factory=Calibration)  # of intent probabilities
    linear: LinearTagger | None = None  # the baseline; None if the recipe does not want it
    shares: Shares = field(default_factory=Shares)  # of the linear tagger
    mentions: Mentions = field(default_factory=dict)  # for training only
    threshold: float = 0.0  # spans of a lower probability are left out

    @property
    def model(self) -> Transformer:
        """The Transformer."""
        return self.module.model

    @staticmethod
    def fields(settings: TagSettings) -> tuple[str, ...]:
        """Words, tags and, if set, an intent."""
        return ("text", "tags", "label") if settings.intents else ("text", "tags")

    @staticmethod
    def cleaning(settings: TagSettings) -> Fields:
        """Only the words are cleaned."""
        return Fields(n_fields=len(Tag.fields(settings)), n_texts=1)

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: TagSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read CoNLL columns, parallel files or one table; tags of any scheme become IOB2.

        Invalid sequences of tags are repaired and reported, unless most are invalid.
        """
        faults = TagFaults(files[0])
        rows = read_tagged(
            files,
            word_column=columns.get("text"),
            tag_column=columns.get("tags"),
            label_column=columns.get("label"),
            joint=settings.intents,
            scheme=None if settings.scheme == "auto" else settings.scheme,
            on_bad=on_bad,
            on_fault=faults.add,
        )
        return faults.reported(rows)

    @staticmethod
    def folder_files(folder: Path, table: Mapping[str, Any]) -> list[Path] | None:
        """seq.in, seq.out and, with intents, label; None if the folder lacks one of them."""
        names = TAGGED_FILES if table.get("intents") else TAGGED_FILES[:2]
        files = [folder / name for name in names]
        return files if all(path.is_file() for path in files) else None

    @staticmethod
    def builtin(settings: TagSettings, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Sentences with persons, things, locations and times, and their intents if set."""
        (language,) = languages
        return corpora.rows("intents" if settings.intents else "tag", language, split, count, seed)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: TagSettings) -> list[list[list[int]]]:
        """The token ids of each text, and the number of tokens of each word.

        A word is tokenized on its own, with a space before it, as within a text.
        """
        texts = [row[0].split(" ") for row in rows]
        words = list({word for text in texts for word in text})
        tokens = dict(zip(words, tokenizer.encode_words(words), strict=True))
        ids = [[token_id for word in text for token_id in tokens[word]] for text in texts]
        return [ids, [[len(tokens[word]) for word in text] for text in texts]]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: TagSettings) -> int:
        """One position is for BOS."""
        return model.max_length - 1

    @classmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, rows: Iterable[Row]) -> "Tag":
        """Create an untrained tagger; its labels and intents are those of the rows."""
        if (settings.ngrams or settings.baseline) and isinstance(rows, Iterator):
            raise TypeError("rows are read twice if task.baseline or task.ngrams is set: pass a list, not an iterator.")
        mentions: dict[str, list[tuple[str, ...]]] = {}
        intents: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        is_every_word = True
        for row in rows:
            words, tags = row[0].split(" "), row[1].split(" ")
            lengths.update(map(len, words))
            is_every_word = is_every_word and all(tag.startswith("B-") for tag in tags)
            for start, end, label in iob2_spans(tags):
                known = mentions.setdefault(label, [])
                if settings.swapping:
                    known.append(tuple(words[start:end]))
            intents.update(row[2:])
        if not mentions:
            raise DataError(_("Nothing to tag: every tag is O. Give rows with spans, or choose another column."))
        refuse_many_labels(sorted(mentions), MAX_TAGS)
        if settings.intents and len(intents) < 2:
            raise DataError(
                _("Every row has the intent “{intent}”. Set task.intents = false.", intent=next(iter(intents), ""))
            )
        metadata = {
            "labels": sorted(mentions),
            "intents": sorted(intents),
            "split_by": choose_split_by(lengths),
            "is_every_word": is_every_word,
            **Calibration().metadata(),
        }
        task = replace(cls.restore(model, tokenizer, settings, metadata), mentions=mentions)
        if task.module.ngrams is not None:
            task.module.ngrams.count(task.hash_words(rows))
        return replace(task, linear=task._fit_linear(rows)) if settings.baseline else task

    def _fit_linear(self, rows: Iterable[Row]) -> LinearTagger:
        texts, paths, intents = [], [], []
        for row in rows:
            texts.append(row[0].split(" "))
            paths.append(self.states.path_of(row[1].split(" ")))
            intents += [self.intents.index(row[2])] if self.settings.intents else []
        n_intents, are_characters = len(self.intents), self.split_by == "character"
        return LinearTagger.fit(texts, paths, self.states, intents, n_intents, are_characters=are_characters)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, metadata: Mapping[str, Any]
    ) -> "Tag":
        """Create the tagger with these labels and intents."""
        check_label_metadata(metadata, MAX_TAGS)
        if metadata["split_by"] not in get_args(SplitBy):
            raise ValueError(f"metadata.split_by is not one of {', '.join(get_args(SplitBy))}.")
        is_every_word = metadata.get("is_every_word", False) is True  # bundles of earlier versions lack it
        states = States(list(map(str, metadata["labels"])), is_every_word=is_every_word)
        intents = tuple(map(str, metadata["intents"]))
        module = Tagger(model, states, len(intents), settings)
        calibration, shares = Calibration.restore(metadata), Shares(**metadata.get("shares", {}))
        return cls(module, tokenizer, settings, states, intents, metadata["split_by"], calibration, shares=shares)

    def metadata(self) -> dict[str, Any]:
        """The labels, the intents, how text is split, the calibration, and the shares of the linear tagger."""
        return {
            "labels": list(self.states.kinds),
            "intents": list(self.intents),
            "split_by": self.split_by,
            "is_every_word": self.states.is_every_word,
            "shares": asdict(self.shares),
            **self.calibration.metadata(),
        }

    def sparse_weights(self) -> set[str]:
        """Evidence of n-grams: most hashes never occur."""
        return set() if self.module.ngrams is None else {"ngrams.evidence"}

    def hash_words(self, rows: Iterable[Row]) -> Iterator[Int[Tensor, "1 T"]]:
        """The word hashes of each row."""
        for row in rows:
            yield WordBatch.of([self.tokenizer.encode_words(row[0].split(" "))], torch.device("cpu")).word_hashes

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text read at once."""
        return self.model.settings.max_length - self.tokenizer.n_framing

    def training_task(self, data: TrainingData) -> TagTrainingTask:
        """The task as the training loop sees it."""
        return TagTrainingTask(
            self.module, self.tokenizer, self.settings, self.states, self.intents, self.mentions, data
        )

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of each word of a text, which must fit in one window."""
        tokens = (
            token
            for word in split_text(text, self.split_by)
            for token in shift_spans(self.tokenizer.word_tokens(word.text), word.start, word.end)
        )
        return encoder_input(self.tokenizer, text, answer, tokens, limit=self.limit)

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The spans and the intent with their probabilities."""
        return TagProbe.of(self, model_input).output()

    def lens_probe(self, model_input: ModelInput) -> TagProbe:
        """The predicted tags and intent, to be measured with other gates."""
        return TagProbe.of(self, model_input)

    @property
    def word_tagger(self) -> WordTagger:
        """The prediction of tags for words."""
        intents = self.intents if self.settings.intents else ()
        return WordTagger(self.module, self.tokenizer, self.states, intents, self.calibration, self.linear, self.shares)

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score the tags of rows by the Transformer and the linear tagger in equal shares."""
        predicted = replace(self, shares=Shares(0.5, 0.5))._tag_rows(rows)
        card = self._card(rows, predicted, n_resamples=1)
        scores = {score.name: score.value for score in card.scores}
        samples = [
            (row[0], _format_spans(row[0], words.spans), _format_spans(row[0], _gold_spans(row)))
            for row, words in zip(rows, predicted, strict=True)
        ]
        metric = metric if metric in scores else card.scores[0].name
        return ValidationResult(metric, scores[metric], samples)

    def calibrate(self, rows: Sequence[Row]) -> "Tag":
        """The tagger with the shares and the probabilities of intents that fit the valid rows."""
        if self.linear is None and not self.settings.intents:
            return self
        usable = list(self.usable(rows))
        return self._fitted(usable, *self._score_rows(usable))

    def _fitted(self, rows: Sequence[Row], own: Scores, linear: Scores | None) -> "Tag":
        """The tagger, calibrated on rows with these scores."""
        fitted = self
        if linear is not None:
            fitted = replace(self, shares=self._best_shares(rows, own, linear))
        if not self.settings.intents:
            return fitted
        return replace(fitted, calibration=self._fit_calibration(rows, fitted.word_tagger.decode(own, linear)))

    def _best_shares(self, rows: Sequence[Row], own: Scores, linear: Scores) -> Shares:
        """The shares with the highest F1 and intent accuracy; their curves are smoothed, since rows may be few."""
        if not rows:
            return Shares(0.5, 0.5)
        known = [index for index, row in enumerate(rows) if row[2:] and row[2] in self.intents]
        intents = torch.tensor([self.intents.index(rows[index][2]) for index in known])
        of_tags, of_intents = [], []
        for share in _SHARES:
            tagger = replace(self, shares=Shares(share, share)).word_tagger
            of_tags.append(self._tally(rows, tagger.decode(own, linear)).value)
            logits = own.mixed(linear, tagger.shares).intents[known]
            of_intents.append(float((logits.argmax(1) == intents).float().mean()) if known else 0.0)
        return Shares(_SHARES[_smooth_peak(of_tags)], _SHARES[_smooth_peak(of_intents)])

    def _fit_calibration(self, rows: Sequence[Row], predicted: Sequence[TaggedWords]) -> Calibration:
        known = [index for index, row in enumerate(rows) if row[2] in self.intents]
        if not known:
            return Calibration()
        numbers = torch.tensor([self.intents.index(rows[index][2]) for index in known])
        logits = torch.stack([predicted[index].intent_logits for index in known])
        return Calibration.fit(logits, F.one_hot(numbers, len(self.intents)).float())

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Tagging]:
        """Predict the spans of each text, as character offsets; a blank text has none, and no intent."""
        split = [[] if is_blank(text) else split_text(text, self.split_by) for text in texts]
        tagger = self.word_tagger
        predicted = self._confident(tagger.tag([[word.text for word in words] for words in split]))
        taggings = []
        for text, words, tagged in zip(texts, split, predicted, strict=True):
            entities = [
                Entity(start, end, span.label, text[start:end], probability)
                for span, probability in zip(tagged.spans, tagger.span_probabilities(tagged), strict=True)
                for start, end in [(words[span.start].start, words[span.end - 1].end)]
            ]
            taggings.append(Tagging(text, tuple(entities), tagged.intent, tagged.intents))
        return taggings

    def _tag_rows(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> list[TaggedWords]:
        return self._confident(self.word_tagger.tag([row[0].split(" ") for row in rows], progress))

    def _confident(self, predicted: Sequence[TaggedWords]) -> list[TaggedWords]:
        """The predictions without spans below the threshold."""
        if not self.threshold:
            return list(predicted)
        tagger = self.word_tagger
        return [
            replace(
                tagged,
                spans=[
                    span
                    for span, probability in zip(tagged.spans, tagger.span_probabilities(tagged), strict=True)
                    if probability >= self.threshold
                ],
            )
            for tagged in predicted
        ]

    def with_threshold(self, threshold: float) -> "Tag":
        """The same tagger, without spans that are less probable; intents do not change."""
        return replace(self, threshold=threshold)

    def decisions(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> Decisions:
        """The spans of rows with their probabilities, whatever the threshold."""
        tagger = self.word_tagger
        predicted = tagger.tag([row[0].split(" ") for row in rows], progress)
        spans = [list(zip(tagged.spans, tagger.span_probabilities(tagged), strict=True)) for tagged in predicted]
        return span_decisions([set(_gold_spans(row)) for row in rows], spans)

    def _score_rows(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> tuple[Scores, Scores | None]:
        return self.word_tagger.score([row[0].split(" ") for row in rows], progress)

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the F1 of spans, or of the accuracy of words."""
        return self._tally(rows, self._tag_rows(rows))

    def _tally(self, rows: Sequence[Row], predicted: Sequence[TaggedWords]) -> Tally:
        # If every word is a span, F1 is the share of words with the right tag.
        name = "accuracy" if self.states.is_every_word else "F1"
        return f1_tally(name, [set(_gold_spans(row)) for row in rows], [set(words.spans) for words in predicted])

    @property
    def baseline_name(self) -> str:
        """The linear CRF; "" if there is none."""
        return "" if self.linear is None else "linear CRF"

    def baseline_tensors(self) -> dict[str, Tensor]:
        """The numbers of the linear tagger; nothing if there is none."""
        return {} if self.linear is None else self.linear.tensors

    def with_baseline(self, tensors: Mapping[str, Tensor]) -> "Tag":
        """The task with the linear tagger of these tensors; ValueError if they do not fit."""
        n_states, n_intents, are_characters = len(self.states), len(self.intents), self.split_by == "character"
        linear = LinearTagger.from_tensors(tensors, n_states, n_intents, are_characters=are_characters)
        return replace(self, linear=linear)

    def baseline_alone(self) -> "Tag":
        """The linear tagger alone."""
        if self.linear is None:
            raise TypeError("this task has no baseline.")
        return replace(self, shares=Shares(1.0, 1.0))

    def baseline_tally(self, rows: Sequence[Row]) -> Tally:
        """The statistics of the linear tagger alone."""
        if self.linear is None:
            raise ValueError("This tagger has no baseline: task.baseline is false.")
        linear = Scores(*self.linear.scores([row[0].split(" ") for row in rows]))
        tagged = replace(self, shares=Shares(1.0, 1.0)).word_tagger.decode(linear, linear)
        return self._tally(rows, tagged)

    def baseline_share(self, rows: Sequence[Row]) -> float:
        """The share of the linear tagger in how far the best tag of each word is above the mean of all."""
        own, linear = self._score_rows(rows)
        if linear is None:
            return 0.0
        parts = [sum(float((words.amax(1) - words.mean(1)).sum()) for words in part.words) for part in (own, linear)]
        weighted = [parts[0] * (1.0 - self.shares.tags), parts[1] * self.shares.tags]
        return weighted[1] / (sum(weighted) or 1.0)

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> SpanCard:
        """Compare the predicted spans of every row with its own."""
        rows = list(rows)
        return self._card(rows, self._tag_rows(rows, progress))

    def score_calibrated(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> SpanCard:
        """The scorecard of the rows that it was calibrated on: each half is calibrated on the other half."""
        rows = list(rows)
        own, linear = self._score_rows(rows, progress)
        halves = [slice(1, None, 2), slice(0, None, 2)]  # the even rows are predicted as fitted to the odd ones
        both = [
            self._fitted(rows[half], own.part(half), None if linear is None else linear.part(half)).word_tagger
            for half in halves
        ]
        predicted = [tagger.decode(own, linear) for tagger in both]
        return self._card(rows, [predicted[row % 2][row] for row in range(len(rows))])

    def _card(self, rows: Sequence[Row], predicted: Sequence[TaggedWords], n_resamples: int = 1000) -> SpanCard:
        has_intents = self.settings.intents
        card = span_card(
            [row[0] for row in rows],
            [_gold_spans(row) for row in rows],
            [words.spans for words in predicted],
            [row[2] for row in rows] if has_intents else None,
            [words.intent for words in predicted] if has_intents else None,
            known=self.states.kinds,
            intents=self.settings.intent_rule,
            separator=self.settings.separator,
            n_resamples=n_resamples,
        )
        if self.states.is_every_word:
            f1, _, _, *others = card.scores
            card = replace(card, scores=[replace(f1, name="accuracy"), *others])
        if not has_intents:
            return card
        error = self._intent_calibration(rows, predicted, n_resamples)
        return replace(card, scores=[*card.scores, error])

    def _intent_calibration(self, rows: Sequence[Row], predicted: Sequence[TaggedWords], n_resamples: int) -> Score:
        """The calibration error of the intents."""
        probabilities = np.array([[words.intents.get(intent, 0.0) for intent in self.intents] for words in predicted])
        gold, found = [(row[2],) for row in rows], [(words.intent,) if words.intent else () for words in predicted]
        card = label_card([""] * len(rows), gold, found, probabilities, self.intents, n_resamples=n_resamples)
        error = next(score for score in card.scores if score.name == "calibration error")
        return replace(error, name="calibration error of intents")


def _smooth_peak(values: Sequence[float]) -> int:
    """The index of the highest value after each is averaged with its neighbors."""
    padded = [values[0], *values, values[-1]]
    means = [sum(padded[index : index + 3]) for index in range(len(values))]
    return max(range(len(values)), key=lambda index: (round(means[index], 6), -abs(index - len(values) // 2)))


def _gold_spans(row: Row) -> list[Span]:
    return tags_to_spans(row[1].split(" "), "IOB2")


def _format_spans(text: str, spans: Sequence[Span]) -> str:
    words = text.split(" ")
    return "; ".join(f"{' '.join(words[span.start : span.end])} ({span.label})" for span in spans)
