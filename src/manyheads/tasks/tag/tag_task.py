"""`Tag`: a text in, its labeled spans out, with the intent of the text if rows have one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads import corpora
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.metrics import SpanCard, Tally, f1_tally, span_card
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.model_inputs import batches_by_length, encoder_input, fit_temperature, shift_spans, windows
from manyheads.tasks.quickstart import Quickstart
from manyheads.tasks.seq2seq import one_line
from manyheads.tasks.tag.crf import States
from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.tag.tag_examples import tokenize_words
from manyheads.tasks.tag.tag_init import TagInit
from manyheads.tasks.tag.tag_model import Tagger, WordBatch
from manyheads.tasks.tag.tag_quickstart import QUICKSTART
from manyheads.tasks.tag.tag_training import Mentions, TagTrainingTask, iob2_spans
from manyheads.tasks.task import ModelInput, Progress, TrainingData, ValidationResult
from manyheads.tasks.task_init import TaskInit
from manyheads.text.files import OnBad
from manyheads.text.readers import Row
from manyheads.text.tag_schemes import Span, tags_to_spans
from manyheads.text.tagged_readers import read_tagged
from manyheads.text.tokenizer import Tokenizer
from manyheads.text.words import SplitBy, choose_split_by, split_text


@dataclass(frozen=True)
class Entity:
    """A labeled span of a raw text, from character `start` to `end`."""

    start: int
    end: int
    label: str
    text: str
    probability: float  # of exactly this span with this label


@dataclass(frozen=True)
class Tagging:
    """The spans of one text, and its intent."""

    text: str
    spans: tuple[Entity, ...]
    label: str = ""  # the intent, if the model predicts intents
    probabilities: Mapping[str, float] = field(default_factory=dict)  # of every intent, the likeliest first

    @property
    def answer(self) -> tuple[Entity, ...]:
        """The spans."""
        return self.spans

    def line(self) -> str:
        """The text with its spans marked [like this](label), after the intent and a tab if there is an intent."""
        parts, end = [], 0
        for span in self.spans:
            parts += [self.text[end : span.start], f"[{span.text}]({span.label})"]
            end = span.end
        marked = one_line("".join([*parts, self.text[end:]]))
        return f"{self.label}\t{marked}" if self.label else marked


@dataclass(frozen=True)
class TagScores:
    """The scores of one text's words, the best path through them, and the intent's logits."""

    path: Sequence[int]
    scores: Float[Tensor, "T K"]
    intent_logits: Float[Tensor, " C"]


@dataclass(frozen=True)
class Tag:
    """A model that finds spans; the scores of a long text are averaged over windows."""

    shape: ClassVar[str] = "encoder"
    noun: ClassVar[str] = "tagged texts"
    loss_unit: ClassVar[str] = "words"
    metrics: ClassVar[tuple[str, ...]] = ("F1", "exact sentences", "intent accuracy")
    settings_type: ClassVar[type] = TagSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(is_annotated=True, tokenizer=tokenize_words)
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = TagInit()

    module: Tagger
    tokenizer: Tokenizer
    settings: TagSettings
    states: States
    intents: tuple[str, ...]
    split_by: SplitBy  # how raw text is split, as the training rows were
    temperature: float = 1.0  # of intent probabilities
    mentions: Mentions = field(default_factory=dict)  # for training only

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
    def languages(settings: TagSettings) -> tuple[str, ...]:
        """The task has one language."""
        return ()

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """No setting depends on the language."""
        return {}

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: TagSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read CoNLL columns, parallel files or one table; tags of any scheme become IOB2."""
        return read_tagged(
            files,
            word_column=columns.get("text"),
            tag_column=columns.get("tags"),
            label_column=columns.get("label"),
            joint=settings.intents,
            on_bad=on_bad,
        )

    @staticmethod
    def builtin(settings: TagSettings, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Sentences with persons, things, locations and times, and their intents if set."""
        (language,) = languages
        return corpora.rows("intents" if settings.intents else "tag", language, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The texts."""
        return (row[0] for row in rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: TagSettings) -> list[list[list[int]]]:
        """The token ids of each text, and the number of tokens of each word.

        A word is tokenized on its own, with a space before it, as within a text.
        """
        texts = [row[0].split(" ") for row in rows]
        words = list({word for text in texts for word in text})
        tokens = dict(zip(words, tokenizer.encode_batch(words), strict=True))
        ids = [[number for word in text for number in tokens[word]] for text in texts]
        return [ids, [[len(tokens[word]) for word in text] for text in texts]]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: TagSettings) -> int:
        """One position is for BOS."""
        return model.max_length - 1

    @classmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, rows: Iterable[Row]) -> "Tag":
        """Create an untrained tagger; its labels and intents are those of the rows."""
        if settings.ngrams and isinstance(rows, Iterator):
            raise TypeError("rows are read twice if task.ngrams is set: pass a list, not an iterator.")
        mentions: dict[str, list[tuple[str, ...]]] = {}
        intents: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        for row in rows:
            words = row[0].split(" ")
            lengths.update(map(len, words))
            for start, end, label in iob2_spans(row[1].split(" ")):
                known = mentions.setdefault(label, [])
                if settings.swapping:
                    known.append(tuple(words[start:end]))
            intents.update(row[2:])
        if not mentions:
            raise DataError("Nothing to tag: every tag is O. Give rows with spans, or choose another column.")
        if settings.intents and len(intents) < 2:
            raise DataError(f"Every row has the intent “{next(iter(intents), '')}”. Set task.intents = false.")
        metadata = {
            "labels": sorted(mentions),
            "intents": sorted(intents),
            "split_by": choose_split_by(lengths),
            "temperature": 1.0,
        }
        task = replace(cls.restore(model, tokenizer, settings, metadata), mentions=mentions)
        if task.module.ngrams is not None:
            task.module.ngrams.count(task.hash_words(rows))
        return task

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, metadata: Mapping[str, Any]
    ) -> "Tag":
        """Create the tagger with these labels and intents."""
        states, intents = States(list(map(str, metadata["labels"]))), tuple(map(str, metadata["intents"]))
        module = Tagger(model, states, len(intents), settings)
        return cls(module, tokenizer, settings, states, intents, metadata["split_by"], float(metadata["temperature"]))

    def metadata(self) -> dict[str, Any]:
        """The labels, the intents, how text is split, and the temperature."""
        return {
            "labels": list(self.states.kinds),
            "intents": list(self.intents),
            "split_by": self.split_by,
            "temperature": self.temperature,
        }

    def hash_words(self, rows: Iterable[Row]) -> Iterator[Int[Tensor, "1 T"]]:
        """The word hashes of each row."""
        for row in rows:
            yield WordBatch.of([self.tokenizer.encode_batch(row[0].split(" "))], torch.device("cpu")).word_hashes

    @property
    def limit(self) -> int:
        """The maximum number of tokens read at once; one position is for BOS."""
        return self.model.settings.max_length - 1

    def intent_number(self, intent: str) -> int:
        """The index of an intent; −1 if it is unknown."""
        return self.intents.index(intent) if intent in self.intents else -1

    def training_task(self, data: TrainingData) -> TagTrainingTask:
        """The task as the training loop sees it."""
        return TagTrainingTask(
            self.module, self.tokenizer, self.settings, self.states, self.intents, self.mentions, data
        )

    def check(self, text: str, where: str) -> None:
        """Any text can be read."""

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of each word of a text, which must fit in one window."""
        tokens = (
            token
            for word in split_text(text, self.split_by)
            for token in shift_spans(self.tokenizer.iter_tokens(word.text), word.start, word.end)
        )
        return encoder_input(self.tokenizer, text, answer, tokens, limit=self.limit)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not blank."""
        return (row for row in rows if row[0].strip())

    @torch.no_grad()
    def score_words(self, texts: Sequence[Sequence[str]], progress: Progress = lambda done: None) -> list[TagScores]:
        """Score texts, given as their words; a text without words has an empty path."""
        names = list({word for words in texts for word in words})
        tokens = dict(zip(names, self.tokenizer.encode_batch(names), strict=True))
        cut = [[tokens[word] for word in words] for words in texts]
        scores = [torch.zeros(len(words), len(self.states)) for words in texts]
        seen = [torch.zeros(len(words), 1) for words in texts]
        intents = torch.zeros(len(texts), len(self.intents))
        n_parts = torch.zeros(len(texts), 1)
        parts = [
            (text, start, end)
            for text, words in enumerate(cut)
            for start, end in windows([len(word) for word in words], self.limit)
            if words
        ]
        device = self.module.output.weight.device
        for batch in batches_by_length([1 + sum(map(len, cut[text][start:end])) for text, start, end in parts]):
            chosen = [parts[part] for part in batch]
            read = WordBatch.of([cut[text][start:end] for text, start, end in chosen], device)
            tag_scores, intent_logits = self.module(read.ids, read.words, read.word_hashes)
            for row, (text, start, end) in enumerate(chosen):
                scores[text][start:end] += tag_scores[row, : end - start].float().cpu()
                seen[text][start:end] += 1.0
                n_parts[text] += 1.0
                if intent_logits is not None:
                    intents[text] += intent_logits[row].float().cpu()
            progress(sum(start == 0 for _, start, _ in chosen))
        scores = [total / times for total, times in zip(scores, seen, strict=True)]
        paths = self._paths(scores)
        means = intents / n_parts.clamp(min=1.0)
        return [TagScores(path, own, mean) for path, own, mean in zip(paths, scores, means, strict=True)]

    def _paths(self, scores: Sequence[Float[Tensor, "_ K"]]) -> list[list[int]]:
        paths: list[list[int]] = [[] for _ in scores]
        indices = [index for index, words in enumerate(scores) if len(words)]
        for batch in batches_by_length([len(scores[index]) * (1 + len(self.states) // 16) for index in indices]):
            texts = [indices[number] for number in batch]
            padded, is_real = _padded([scores[text] for text in texts])
            device = self.module.output.weight.device
            for text, path in zip(
                texts, self.module.crf.best_paths(padded.to(device), is_real.to(device)), strict=True
            ):
                paths[text] = path
        return paths

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score the tags of rows."""
        card, answers = self._card(rows, n_resamples=1)
        scores = {score.name: score.value for score in card.scores}
        samples = [
            (row[0], _format_spans(row[0], answer), _format_spans(row[0], tags_to_spans(row[1].split(" "), "IOB2")))
            for row, answer in zip(rows, answers, strict=True)
        ]
        metric = metric if metric in scores else "F1"
        return ValidationResult(metric, scores[metric], samples)

    def calibrate(self, rows: Sequence[Row]) -> "Tag":
        """The tagger with the temperature that maximizes the likelihood of the valid rows' intents."""
        if not self.settings.intents:
            return self
        known = [row for row in self.usable(rows) if row[2] in self.intents]
        if not known:
            return self
        logits = torch.stack([found.intent_logits for found in self.score_words([row[0].split(" ") for row in known])])
        numbers = torch.tensor([self.intent_number(row[2]) for row in known])
        targets = F.one_hot(numbers, len(self.intents)).float()
        return replace(self, temperature=fit_temperature(logits, targets, multi_label=False))

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Tagging]:
        """Predict the spans of each text, as character offsets."""
        cut = [split_text(text, self.split_by) for text in texts]
        scored = self.score_words([[word.text for word in words] for words in cut])
        taggings = []
        for text, words, found in zip(texts, cut, scored, strict=True):
            spans = self.states.spans(found.path)
            probabilities = self._span_probabilities(found, spans)
            entities = [
                Entity(start, end, span.label, text[start:end], probability)
                for span, probability in zip(spans, probabilities, strict=True)
                for start, end in [(words[span.start].start, words[span.end - 1].end)]
            ]
            taggings.append(Tagging(text, tuple(entities), *self._intent(found, bool(words))))
        return taggings

    def _intent(self, found: TagScores, has_words: bool) -> tuple[str, dict[str, float]]:
        if not self.settings.intents or not has_words:
            return "", {}
        probabilities = (found.intent_logits / self.temperature).softmax(-1).tolist()
        ranked = dict(sorted(zip(self.intents, probabilities, strict=True), key=lambda item: -item[1]))
        return next(iter(ranked)), ranked

    @torch.no_grad()
    def _span_probabilities(self, found: TagScores, spans: Sequence[Span]) -> list[float]:
        """The probability of each span: that of the valid paths through all of its states."""
        if not spans:
            return []
        rows = found.scores.repeat(1 + len(spans), 1, 1)  # the first row is not constrained
        for row, span in zip(rows[1:], spans, strict=True):
            for position in range(span.start, span.end):
                others = torch.arange(len(self.states)) != found.path[position]
                row[position, others] = -torch.inf
        device = self.module.output.weight.device
        is_real = torch.ones(rows.shape[:2], dtype=torch.bool, device=device)
        totals = self.module.crf.log_partition(rows.to(device), is_real).cpu()
        return (totals[1:] - totals[0]).exp().clamp(max=1.0).tolist()

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the F1 of spans."""
        found = [set(self.states.spans(one.path)) for one in self.score_words([row[0].split(" ") for row in rows])]
        return f1_tally("F1", [set(tags_to_spans(row[1].split(" "), "IOB2")) for row in rows], found)

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> SpanCard:
        """Compare the predicted spans of every row with its own."""
        return self._card(list(rows), progress=progress)[0]

    def _card(
        self, rows: Sequence[Row], progress: Progress = lambda done: None, n_resamples: int = 1000
    ) -> tuple[SpanCard, list[list[Span]]]:
        scored = self.score_words([row[0].split(" ") for row in rows], progress)
        found = [self.states.spans(one.path) for one in scored]
        gold = [tags_to_spans(row[1].split(" "), "IOB2") for row in rows]
        has_intents = self.settings.intents
        card = span_card(
            [row[0] for row in rows],
            gold,
            found,
            [row[2] for row in rows] if has_intents else None,
            [self._intent(one, True)[0] for one in scored] if has_intents else None,
            known=self.states.kinds,
            intents=self.settings.intent_rule,
            separator=self.settings.separator,
            n_resamples=n_resamples,
        )
        return card, found


def _padded(rows: Sequence[Float[Tensor, "_ K"]]) -> tuple[Float[Tensor, "B T K"], Bool[Tensor, "B T"]]:
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return padded, torch.arange(padded.size(1)) < lengths[:, None]


def _format_spans(text: str, spans: Sequence[Span]) -> str:
    words = text.split(" ")
    return "; ".join(f"{' '.join(words[span.start : span.end])} ({span.label})" for span in spans)
