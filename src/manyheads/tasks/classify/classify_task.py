"""Classification: a text in, its label out, or as many labels as apply."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from manyheads import corpora
from manyheads.data import choose_examples, pad, plan_batches
from manyheads.data.cleaning import Fields
from manyheads.data.texts import chunks
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.metrics import LabelCard, Tally, f1_tally, label_card, share_tally
from manyheads.model import ModelSettings, Transformer, symmetric_kl
from manyheads.tasks.classify.classify_init import ClassifyInit
from manyheads.tasks.classify.classify_quickstart import QUICKSTART
from manyheads.tasks.classify.settings import ClassifySettings
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.model_inputs import (
    batches_by_length,
    encoder_input,
    fit_temperature,
    label_log_probabilities,
    windows,
)
from manyheads.tasks.ngrams import NgramClassifier
from manyheads.tasks.pooling import Pool
from manyheads.tasks.quickstart import Quickstart
from manyheads.tasks.task import ModelInput, Progress, TrainingData, ValidationResult
from manyheads.tasks.task_init import TaskInit
from manyheads.text.files import OnBad
from manyheads.text.readers import Row, read_rows
from manyheads.text.row_spec import join_labels, label_text
from manyheads.text.suggestions import shortened
from manyheads.text.tokenizer import BOS, PAD, Tokenizer

UNSURE = "?"  # what stands in a line where no label was given


@dataclass(frozen=True)
class Classification:
    """What one text was found to be."""

    labels: tuple[str, ...]  # one; of a model of several labels any number; none where it is not sure enough
    probability: float  # of the label, or that the labels are these and no others
    probabilities: Mapping[str, float]  # of every label, the likeliest first; of a blank text, none
    separator: str = "|"

    @property
    def answer(self) -> str:
        """The label, or several with the separator between them."""
        return self.separator.join(self.labels)

    def line(self) -> str:
        """Label and probability, with a tab between them."""
        return f"{self.answer or UNSURE}\t{self.probability:.4f}"


class Classifier(nn.Module):
    """A Transformer that reads, one linear layer that judges and, where wanted, phrases that judge beside them."""

    def __init__(self, model: Transformer, n_labels: int, settings: ClassifySettings) -> None:
        super().__init__()
        self.model = model
        self.pool = Pool(settings.pooling, model.settings.width)
        self.dropout = nn.Dropout(settings.head_dropout)
        self.output = nn.Linear(self.pool.width, n_labels)
        self.ngrams = NgramClassifier(n_labels, settings.ngrams) if settings.ngrams else None

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The logits of each label: of several judges, the sum."""
        return torch.stack(self.branch_logits(ids)).sum(0)

    def branch_logits(self, ids: Int[Tensor, "B S"]) -> list[Float[Tensor, "B C"]]:
        """The logits by what the Transformer reads and, where they count, by phrases."""
        is_real: Bool[Tensor, "B S"] = ids != PAD
        read = self.output(self.dropout(self.pool(self.model.encode(ids, is_real), is_real)))
        return [read] if self.ngrams is None else [read, self.ngrams(ids)]


@dataclass(frozen=True)
class LabeledBatch:
    """Texts as ids, and how much each label is theirs: 1 or 0."""

    ids: Int[Tensor, "B S"]
    wanted: Float[Tensor, "B C"]

    @property
    def n_tokens(self) -> int:
        """Texts: what the loss is averaged over."""
        return len(self.ids)


@dataclass(frozen=True)
class ClassifyTrainingTask:
    """What the training loop sees of this task."""

    task: "Classify"
    data: TrainingData

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of like lengths, as indices."""
        data = self.data
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        lengths = data.encoded.lengths[:, :1].clip(max=self.task.limit + 1)
        return plan_batches(lengths, data.batch_tokens, seed=data.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> LabeledBatch:
        """One batch, its tokens sampled anew where the recipe asks for it; a long text is a window of it."""
        encoded, task = self.data.encoded, self.task
        rng = random.Random(seed)
        texts: Sequence[ArrayLike] = encoded.ids(0, plan)
        if self.data.sampling:
            raw = [encoded.text(0, row) for row in plan.tolist()]
            texts = task.tokenizer.sample_batch(raw, self.data.sampling, seed)
        labels = [task.settings.labels_of(encoded.text(1, row)) for row in plan.tolist()]
        batch = LabeledBatch(task.to_ids([_window(ids, task.limit, rng) for ids in texts]), task.targets(labels))
        encoded.release()
        return batch

    def loss(self, batch: LabeledBatch, step: int) -> Tensor:
        """Cross-entropy per text, and R-Drop's term where the settings want it; the mean of all judges.

        Each judge learns by itself: of a sum of both, the faster one would leave the other nothing to learn.
        """
        n_passes = 2 if self.task.settings.consistency else 1
        judged = self.task.module.branch_logits(batch.ids.repeat(n_passes, 1))
        return torch.stack([self._loss(logits.chunk(n_passes), batch.wanted) for logits in judged]).mean()

    def _loss(self, passes: Sequence[Float[Tensor, "B C"]], wanted: Float[Tensor, "B C"]) -> Tensor:
        settings = self.task.settings
        loss = torch.stack([self._entropy(logits, wanted) for logits in passes]).mean()
        if len(passes) == 1:
            return loss
        one, other = passes
        if settings.multi_label:  # of each label on its own, as of two outcomes
            differ = 0.5 * ((one.sigmoid() - other.sigmoid()) * (one - other)).sum(-1).mean()
        else:
            differ = symmetric_kl(one, other)
        return loss + 0.5 * settings.consistency * differ

    def _entropy(self, logits: Float[Tensor, "B C"], wanted: Float[Tensor, "B C"]) -> Tensor:
        settings, weights = self.task.settings, self.task.label_weights
        if settings.multi_label:
            soft = wanted * (1.0 - settings.smoothing) + settings.smoothing / 2
            return F.binary_cross_entropy_with_logits(logits, soft, pos_weight=weights)
        return F.cross_entropy(logits, wanted.argmax(-1), weight=weights, label_smoothing=settings.smoothing)

    def describe(self, plan: NDArray[np.int64]) -> str:
        """How many texts a batch has, and its first three."""
        encoded = self.data.encoded
        told = ", ".join(f"“{shortened(encoded.text(0, row))}” ({encoded.text(1, row)})" for row in plan[:3].tolist())
        return f"{len(plan)} texts, {told}{' …' if len(plan) > 3 else ''}"


@dataclass(frozen=True)
class Classify:
    """A model that labels texts. Texts longer than the model reads are read in windows whose logits are averaged."""

    shape: ClassVar[str] = "encoder"
    noun: ClassVar[str] = "labelled texts"
    loss_unit: ClassVar[str] = "texts"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro-F1", "micro-F1")
    settings_type: ClassVar[type] = ClassifySettings
    lens_examples: ClassVar[LensExamples] = TextExamples()
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = ClassifyInit()

    module: Classifier
    tokenizer: Tokenizer
    settings: ClassifySettings
    labels: tuple[str, ...]
    counts: tuple[int, ...]  # how often each was seen
    n_rows: int
    temperature: float = 1.0

    @property
    def model(self) -> Transformer:
        """The Transformer inside."""
        return self.module.model

    @staticmethod
    def fields(settings: ClassifySettings) -> tuple[str, ...]:
        """What is read and what it is."""
        return ("text", "label")

    @staticmethod
    def cleaning(settings: ClassifySettings) -> Fields:
        """A label is no text; of several, there may be none."""
        return Fields(n_fields=2, n_texts=1, may_be_blank=(1,) if settings.multi_label else ())

    @staticmethod
    def languages(settings: ClassifySettings) -> tuple[str, ...]:
        """The task has one language."""
        return ()

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """No setting depends on the language."""
        return {}

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: ClassifySettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Rows of one file with columns, or of a file of texts and one of labels."""
        fields = Classify.fields(settings)
        convert = join_labels(settings.separator) if settings.multi_label else label_text
        chosen = [columns.get(field) for field in fields] if columns else []
        return read_rows(files, fields, chosen, converters={"label": convert}, on_bad=on_bad)

    @staticmethod
    def builtin(
        settings: ClassifySettings, languages: Sequence[str], split: str, count: int, seed: int
    ) -> Iterable[Row]:
        """Opinions: positive, negative, mixed or neutral."""
        (language,) = languages
        return corpora.rows("classify", language, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The texts; labels are never read."""
        return (row[0] for row in rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: ClassifySettings) -> list[list[list[int]]]:
        """The tokens of each text."""
        return [tokenizer.encode_batch([row[0] for row in rows])]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: ClassifySettings) -> int | None:
        """Any: of a long text one window is learnt from, another each time."""
        return None

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: ClassifySettings, rows: Iterable[Row]
    ) -> "Classify":
        """A classifier that has learnt nothing yet; its labels are those of the rows."""
        if settings.ngrams and isinstance(rows, Iterator):
            raise TypeError("rows are read twice where phrases count: pass a list, not an iterator.")
        counts: Counter[str] = Counter()
        n_rows = 0
        for row in rows:
            counts.update(settings.labels_of(row[1]))
            n_rows += 1
        labels = sorted(counts)
        if len(labels) < 2 and not (settings.multi_label and labels):
            told = f"every row has the label “{labels[0]}”" if labels else "no row has a label"
            raise DataError(f"There is nothing to tell apart: {told}. Give rows of at least two labels.")
        metadata = {
            "labels": labels,
            "counts": [counts[label] for label in labels],
            "n_rows": n_rows,
            "temperature": 1.0,
        }
        task = cls.restore(model, tokenizer, settings, metadata)
        if task.module.ngrams is not None:
            task.module.ngrams.count(task.whole_rows(rows))
        return task

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: ClassifySettings, metadata: Mapping[str, Any]
    ) -> "Classify":
        """The classifier with these labels."""
        module = Classifier(model, len(metadata["labels"]), settings)
        labels, counts = tuple(map(str, metadata["labels"])), tuple(map(int, metadata["counts"]))
        return cls(module, tokenizer, settings, labels, counts, int(metadata["n_rows"]), float(metadata["temperature"]))

    def metadata(self) -> dict[str, Any]:
        """The labels, how often each was learnt from, and the temperature of the probabilities."""
        return {
            "labels": list(self.labels),
            "counts": list(self.counts),
            "n_rows": self.n_rows,
            "temperature": self.temperature,
        }

    @property
    def limit(self) -> int:
        """How many tokens are read at once: one place is for BOS."""
        return self.model.settings.max_length - 1

    @property
    def label_weights(self) -> Float[Tensor, " C"] | None:
        """How much each label counts; of several labels, how much having it counts against not having it."""
        if self.settings.class_weights == "none":
            return None
        counts = torch.tensor(self.counts, dtype=torch.float32, device=self.module.output.weight.device)
        if self.settings.multi_label:
            return ((self.n_rows - counts) / counts).clamp(min=1e-3)
        return self.n_rows / (len(self.counts) * counts)

    def training_task(self, data: TrainingData) -> ClassifyTrainingTask:
        """What the training loop sees of it."""
        return ClassifyTrainingTask(self, data)

    def to_ids(self, texts: Sequence[ArrayLike]) -> Int[Tensor, "B S"]:
        """Tokens as the model reads them: after BOS, whose place is the one that "first" pools."""
        return torch.from_numpy(pad(texts, before=BOS)).to(self.module.output.weight.device)

    def targets(self, labels: Sequence[Sequence[str]]) -> Float[Tensor, "B C"]:
        """1 for each label of each text; labels that are not known are left out."""
        wanted = torch.zeros(len(labels), len(self.labels))
        places = {label: place for place, label in enumerate(self.labels)}
        for row, names in zip(wanted, labels, strict=True):
            row[[places[name] for name in names if name in places]] = 1.0
        return wanted.to(self.module.output.weight.device)

    def whole_rows(self, rows: Iterable[Row]) -> Iterator[tuple[Int[Tensor, "B S"], Float[Tensor, "B C"]]]:
        """All rows, each whole, however long, a batch at a time: for what is counted before anything is learnt."""
        for chunk in chunks(rows):
            ids = self.tokenizer.encode_batch([row[0] for row in chunk])
            for batch in batches_by_length([len(tokens) + 1 for tokens in ids]):
                labels = [self.settings.labels_of(chunk[row][1]) for row in batch]
                yield self.to_ids([ids[row] for row in batch]), self.targets(labels)

    def check(self, text: str, where: str) -> None:
        """Every text can be read."""

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a text, which fit into one window."""
        return encoder_input(self.tokenizer, text, answer, self.tokenizer.iter_tokens(text), limit=self.limit)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those that are not blank."""
        return (row for row in rows if row[0].strip())

    @torch.no_grad()
    def logits(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N C"]:
        """Of each text, the mean of its windows' logits."""
        encoded = self.tokenizer.encode_batch(texts)
        parts = [
            (text, start, ids[start:end])
            for text, ids in enumerate(encoded)
            for start, end in windows([1] * len(ids), self.limit)
        ]
        sums, n_parts = torch.zeros(len(texts), len(self.labels)), torch.zeros(len(texts), 1)
        for batch in batches_by_length([len(ids) + 1 for *_, ids in parts]):
            owners, starts, tokens = zip(*(parts[part] for part in batch), strict=True)
            sums.index_add_(0, torch.tensor(owners), self.module(self.to_ids(tokens)).float().cpu())
            n_parts.index_add_(0, torch.tensor(owners), torch.ones(len(batch), 1))
            progress(starts.count(0))
        return sums / n_parts

    def probabilities(self, texts: Sequence[str], progress: Progress = lambda done: None) -> NDArray[np.float64]:
        """Of each label of each text, with the temperature that made them fit the valid rows."""
        logits = self.logits(texts, progress) / self.temperature
        return label_log_probabilities(logits, multi_label=self.settings.multi_label).exp().double().numpy()

    def choose(self, probabilities: Sequence[float]) -> tuple[str, ...]:
        """The labels to give for these probabilities."""
        threshold = self.settings.threshold
        if self.settings.multi_label:
            return tuple(
                label
                for label, probability in zip(self.labels, probabilities, strict=True)
                if probability >= (threshold or 0.5)
            )
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        return (self.labels[best],) if probabilities[best] >= threshold else ()

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Label each row."""
        card, found = self._card(rows, n_resamples=1)
        scores = {score.name: score.value for score in card.scores}
        if metric not in scores:
            metric = "exact match" if self.settings.multi_label else "accuracy"
        told = map(self.settings.separator.join, found)
        samples = [(row[0], answer, row[1]) for row, answer in zip(rows, told, strict=True)]
        return ValidationResult(metric, scores[metric], samples)

    def calibrate(self, rows: Sequence[Row]) -> "Classify":
        """With the temperature that makes the probabilities of the valid rows likeliest."""
        known = [row for row in self.usable(rows) if set(self.settings.labels_of(row[1])) <= set(self.labels)]
        logits = self.logits([row[0] for row in known])
        wanted = self.targets([self.settings.labels_of(row[1]) for row in known]).cpu()
        return replace(self, temperature=fit_temperature(logits, wanted, multi_label=self.settings.multi_label))

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Classification]:
        """The labels of each text; a blank text has none."""
        probabilities = self.probabilities(texts)
        return [
            self._classification(row.tolist()) if text.strip() else Classification((), 0.0, {}, self.settings.separator)
            for text, row in zip(texts, probabilities, strict=True)
        ]

    def _classification(self, probabilities: Sequence[float]) -> Classification:
        labels = self.choose(probabilities)
        by_label = dict(zip(self.labels, probabilities, strict=True))
        if self.settings.multi_label:
            probability = math.prod(p if label in labels else 1.0 - p for label, p in by_label.items())
        else:
            probability = max(probabilities)
        ranked = dict(sorted(by_label.items(), key=lambda item: -item[1]))
        return Classification(labels, probability, ranked, self.settings.separator)

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """Accuracy; of several labels a text, F1 of all of them."""
        found = [set(one.labels) for one in self.predict([row[0] for row in rows], settings)]
        gold = [set(self.settings.labels_of(row[1])) for row in rows]
        if self.settings.multi_label:
            return f1_tally("micro-F1", gold, found)
        return share_tally(
            "accuracy", [one == wanted for one, wanted in zip(found, gold, strict=True)], [1] * len(rows)
        )

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> LabelCard:
        """Label every text and compare."""
        return self._card(list(rows), progress=progress)[0]

    def _card(
        self, rows: Sequence[Row], progress: Progress = lambda done: None, n_resamples: int = 1000
    ) -> tuple[LabelCard, list[tuple[str, ...]]]:
        texts = [row[0] for row in rows]
        probabilities = self.probabilities(texts, progress)
        found = [
            self.choose(row.tolist()) if text.strip() else () for text, row in zip(texts, probabilities, strict=True)
        ]
        card = label_card(
            texts,
            [self.settings.labels_of(row[1]) for row in rows],
            found,
            probabilities,
            self.labels,
            multi_label=self.settings.multi_label,
            n_resamples=n_resamples,
        )
        return card, found


def _window(ids: ArrayLike, limit: int, rng: random.Random) -> ArrayLike:
    """The ids, or one of the windows of too many."""
    length = len(np.asarray(ids))
    start, end = rng.choice(windows([1] * length, limit)) if length > limit else (0, length)
    return np.asarray(ids)[start:end]
