"""`Classify`: a text in, its label or labels out."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from manyheads import corpora
from manyheads.data import pad
from manyheads.data.cleaning import Fields
from manyheads.data.texts import chunks
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.metrics import (
    Decisions,
    LabelCard,
    Score,
    Tally,
    auroc,
    f1_tally,
    label_card,
    label_decisions,
    share_tally,
)
from manyheads.model import Transformer, evaluating
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.classify.classification import Classification, ClassifyProbe
from manyheads.tasks.classify.classify_commands import QUICKSTART, ClassifyDoctor, ClassifyInit
from manyheads.tasks.classify.classify_training import Classifier, ClassifySettings, ClassifyTrainingTask
from manyheads.tasks.classify.logistic_probe import (
    LogisticProbe,
    OutOfFold,
    assign_folds,
    fit_probe,
    label_loss,
    out_of_fold,
)
from manyheads.tasks.classify.logistic_probe import one_in as fitted_one_in
from manyheads.tasks.classify.ngram_svm import DECISION_SCALE, Mixture, NgramSVM, one_in
from manyheads.tasks.classify.out_of_scope import THRESHOLD, Scope, SeenNgrams, made_up_texts, stories
from manyheads.tasks.labels import MAX_LABELS, check_label_metadata, refuse_many_labels
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.lens_output import LensOutput
from manyheads.tasks.model_inputs import ModelInput, batches_by_length, encoder_input, windows
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.task import AnswerForm, LabelingTask, Progress, TrainingData, ValidationResult
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row, read_rows
from manyheads.text.reading.row_spec import labels_converter, single_label
from manyheads.text.tokens.tokenizer import BOS, Tokenizer
from manyheads.text.tokens.words import is_blank

_MAX_SCOPE_ROWS = 200_000  # training texts whose n-grams are remembered; of more texts, every second or third …
_MANY_FITTED = 2000  # rows; one fold chooses the penalty
_MAX_REFITTED = 6000  # rows; with more, the validation rows are too few to miss
_N_NEGATIVES = 100  # texts that are made up from, and stories, to score what is out of scope
_NEGATIVES = "negatives:shuffled letters, random letters, random words, built-in stories"


@dataclass(frozen=True)
class Classify(LabelingTask):
    """A model that labels texts; the logits of a long text are averaged over windows."""

    shape: ClassVar[str] = "encoder"
    answer_form: ClassVar[AnswerForm] = "labels"
    noun: ClassVar[str] = "labeled texts"
    loss_unit: ClassVar[str] = "texts"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro-F1", "micro-F1")
    settings_type: ClassVar[type] = ClassifySettings
    lens_examples: ClassVar[LensExamples] = TextExamples()
    quickstart: ClassVar[Quickstart | None] = QUICKSTART
    init: ClassVar[TaskInit] = ClassifyInit()
    doctor: ClassVar[TaskDoctor] = ClassifyDoctor()

    module: Classifier
    tokenizer: Tokenizer
    settings: ClassifySettings
    labels: tuple[str, ...]
    counts: tuple[int, ...]  # training rows of each label
    n_rows: int
    calibration: Calibration = field(default_factory=Calibration)
    scope: Scope | None = None  # None in bundles of older versions
    linear: NgramSVM | None = None  # the baseline; None if the recipe does not want it
    mixture: Mixture = field(default_factory=Mixture)
    trained_share: float | None = None  # of the way from the probe to the trained weights; None without a probe
    folds: OutOfFold | None = None  # within a run that fitted its validation rows too

    @property
    def model(self) -> Transformer:
        """The Transformer."""
        return self.module.model

    @staticmethod
    def fields(settings: ClassifySettings) -> tuple[str, ...]:
        """Text and label."""
        return ("text", "label")

    @staticmethod
    def cleaning(settings: ClassifySettings) -> Fields:
        """Only the text is cleaned; a row without labels is allowed if multi_label."""
        return Fields(n_fields=2, n_texts=1, may_be_blank=(1,) if settings.multi_label else ())

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: ClassifySettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read rows of one table, or of a file of texts and a file of labels."""
        fields = Classify.fields(settings)
        convert = labels_converter(settings.separator) if settings.multi_label else single_label
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
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: ClassifySettings) -> list[list[list[int]]]:
        """The token ids of each text."""
        return [tokenizer.encode_batch([row[0] for row in rows])]

    @classmethod
    def create(
        cls, model: Transformer, tokenizer: Tokenizer, settings: ClassifySettings, rows: Iterable[Row]
    ) -> "Classify":
        """Create an untrained classifier; its labels are those of the rows."""
        if settings.baseline and isinstance(rows, Iterator):
            raise TypeError("rows are read twice if task.baseline is set: pass a list, not an iterator.")
        counts, n_rows, scope = _read_training_rows(rows, tokenizer, settings)
        labels = sorted(counts)
        refuse_many_labels(labels, MAX_LABELS)
        if len(labels) < 2 and not (settings.multi_label and labels):
            reason = _("every row has the label “{label}”", label=labels[0]) if labels else _("no row has a label")
            raise DataError(
                _("Nothing to classify: {reason}. Give rows with at least two different labels.", reason=reason)
            )
        metadata = {
            "labels": labels,
            "counts": [counts[label] for label in labels],
            "n_rows": n_rows,
            **Calibration().metadata(),
        }
        task = replace(cls.restore(model, tokenizer, settings, metadata), scope=scope)
        return replace(task, linear=task.fit_linear(rows)) if settings.baseline else task

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: ClassifySettings, metadata: Mapping[str, Any]
    ) -> "Classify":
        """Create the classifier with these labels."""
        check_label_metadata(metadata, MAX_LABELS)
        module = Classifier(model, len(metadata["labels"]), settings)
        labels, counts = tuple(map(str, metadata["labels"])), tuple(map(int, metadata["counts"]))
        stored = metadata.get("out_of_scope")
        scope = Scope.restore(stored) if stored else None
        n_rows, calibration, mixture = int(metadata["n_rows"]), Calibration.restore(metadata), Mixture.restore(metadata)
        share = metadata.get("trained_share")
        return cls(
            module,
            tokenizer,
            settings,
            labels,
            counts,
            n_rows,
            calibration,
            scope,
            mixture=mixture,
            trained_share=None if share is None else float(share),
        )

    def metadata(self) -> dict[str, Any]:
        """The labels, their counts, the calibration, and what is in scope."""
        return {
            "labels": list(self.labels),
            "counts": list(self.counts),
            "n_rows": self.n_rows,
            **self.calibration.metadata(),
            "mixture": self.mixture.metadata(),
            **({} if self.trained_share is None else {"trained_share": self.trained_share}),
            "out_of_scope": self.scope.metadata() if self.scope and self.scope.is_fitted else None,
        }

    @property
    def baseline_name(self) -> str:
        """What the linear classifier is called."""
        return "n-gram SVM" if self.linear else ""

    def baseline_tensors(self) -> dict[str, Tensor]:
        """The numbers of the linear classifier; nothing if there is none."""
        return {name: torch.from_numpy(array) for name, array in self.linear.arrays.items()} if self.linear else {}

    def with_baseline(self, tensors: Mapping[str, Tensor]) -> "Classify":
        """The task with the linear classifier of these tensors; ValueError if they do not fit."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return replace(self, linear=NgramSVM.from_arrays(arrays, len(self.labels)))

    def baseline_alone(self) -> "Classify":
        """The linear classifier alone, with its own temperature; it does not tell what is in scope."""
        if self.linear is None:
            raise TypeError("this task has no baseline.")
        mixture, calibration = replace(self.mixture, share=1.0), replace(self.calibration, temperature=1.0)
        return replace(self, mixture=mixture, calibration=calibration, scope=None)

    def baseline_tally(self, rows: Sequence[Row]) -> Tally:
        """The statistics of the same score as `tally`, for the linear classifier alone."""
        return self._tally(rows, self.baseline_alone().predict([row[0] for row in rows], DecodeSettings()))

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text read at once."""
        return self.model.settings.max_length - self.tokenizer.n_framing

    @property
    def label_weights(self) -> Float[Tensor, " C"] | None:
        """The weight of each label in the loss; if multi_label, the weight of having it."""
        if self.settings.class_weights == "none":
            return None
        counts = torch.tensor(self.counts, dtype=torch.float32, device=self.model.device)
        if self.settings.multi_label:
            return ((self.n_rows - counts) / counts).clamp(min=1e-3)
        return self.n_rows / (len(self.counts) * counts)

    def training_task(self, data: TrainingData) -> ClassifyTrainingTask:
        """The task as the training loop sees it."""
        return ClassifyTrainingTask(self, data)

    def to_ids(self, texts: Sequence[ArrayLike]) -> Int[Tensor, "B S"]:
        """A batch of token ids after BOS, whose position the pooling "first" takes."""
        return torch.from_numpy(pad(texts, before=BOS, after=self.tokenizer.closes)).to(self.model.device)

    def targets(self, labels: Sequence[Sequence[str]]) -> Float[Tensor, "B C"]:
        """1 for each label of each text; unknown labels are left out."""
        targets = torch.zeros(len(labels), len(self.labels))
        indices = {label: index for index, label in enumerate(self.labels)}
        for row, names in zip(targets, labels, strict=True):
            row[[indices[name] for name in names if name in indices]] = 1.0
        return targets.to(self.model.device)

    def fit_head(self, rows: Iterable[Row]) -> None:
        """Fit the output layer by logistic regression, with the penalty that folds choose."""
        sample = list(islice(rows, 0, None, fitted_one_in(self.n_rows, len(self.labels))))
        vectors, targets = self._fitted_on(sample)
        folds = assign_folds(targets)
        if len(sample) > _MANY_FITTED:
            folds[folds > 0] = -1  # one fold tells enough
        probe, _logits = fit_probe(vectors, targets, folds, multi_label=self.settings.multi_label)
        self._load_probe(probe)

    def refit_head(self, train: Sequence[Row], valid: Sequence[Row]) -> "Classify":
        """Fit the output layer and the linear classifier on all rows; folds score them, and choose their mixture."""
        rows = [row for row in [*train, *valid] if set(self.settings.labels_of(row[1])) <= set(self.labels)]
        if len(rows) > _MAX_REFITTED:
            return self
        vectors, targets = self._fitted_on(rows)
        folds, texts = assign_folds(targets), [row[0] for row in rows]
        probe, transformer = fit_probe(vectors, targets, folds, multi_label=self.settings.multi_label)
        self._load_probe(probe)
        task, linear = self, np.zeros_like(transformer)
        if self.linear is not None:
            linear = DECISION_SCALE * out_of_fold(
                folds,
                len(self.labels),
                lambda fitted, others: NgramSVM.fit([texts[row] for row in fitted], targets[fitted]).decide(
                    [texts[row] for row in others]
                ),
            )
            task = replace(task, linear=NgramSVM.fit(texts, targets))
        scored = {texts[row]: number for number, row in enumerate(np.flatnonzero(folds >= 0).tolist())}
        parts = (torch.from_numpy(part[folds >= 0]) for part in (transformer, linear))
        task = replace(task, folds=OutOfFold(scored, *parts))
        return task._fit([row for row in rows if row[0] in scored])

    @property
    def is_refitted(self) -> bool:
        """Whether it knows the folds of a refit."""
        return self.folds is not None

    def _fitted_on(self, rows: Sequence[Row]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The vectors of rows and their targets."""
        targets = self.targets([self.settings.labels_of(row[1]) for row in rows]).cpu().numpy() > 0
        return self.vectors([row[0] for row in rows]).numpy(), targets

    @torch.no_grad()
    def _load_probe(self, probe: LogisticProbe) -> None:
        self.module.output.weight.copy_(torch.from_numpy(probe.weights))
        self.module.output.bias.copy_(torch.from_numpy(probe.bias))

    def fitted_loss(self, rows: Sequence[Row]) -> float:
        """The cross-entropy of validation rows, after mixing and calibration."""
        usable = list(self.usable(rows))
        known = [row for row in usable if set(self.settings.labels_of(row[1])) <= set(self.labels)]
        texts, targets = [row[0] for row in known], self.targets([self.settings.labels_of(row[1]) for row in known])
        transformer = self.transformer_logits(texts)
        task = self._fit(known, transformer)
        logits = task.mix(texts, transformer) / task.calibration.temperature
        return label_loss(logits, targets.cpu(), multi_label=self.settings.multi_label)

    def with_trained_share(self, share: float) -> "Classify":
        """The task, noting the share."""
        return replace(self, trained_share=share)

    def fit_linear(self, rows: Iterable[Row]) -> NgramSVM:
        """Fit the linear classifier to training rows; to a sample if there are very many."""
        sample = list(islice(rows, 0, None, one_in(self.n_rows, len(self.labels))))
        targets = self.targets([self.settings.labels_of(row[1]) for row in sample])
        return NgramSVM.fit([row[0] for row in sample], targets.cpu().numpy() > 0)

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a text, which must fit in one window."""
        return encoder_input(self.tokenizer, text, answer, self.tokenizer.iter_tokens(text), limit=self.limit)

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The probabilities of all labels."""
        return ClassifyProbe.of(self, model_input).output()

    def lens_probe(self, model_input: ModelInput) -> ClassifyProbe:
        """The predicted labels, to be measured with other gates."""
        return ClassifyProbe.of(self, model_input)

    def logits(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N C"]:
        """The logits of each text: the Transformer's and the linear classifier's, mixed."""
        return self.mix(texts, self._transformer_part(texts, progress))

    def _transformer_part(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N C"]:
        """The Transformer's logits; zeros if the linear classifier decides alone."""
        if self.linear is None or self.mixture.share < 1.0:
            return self.transformer_logits(texts, progress)
        progress(len(texts))
        return torch.zeros(len(texts), len(self.labels))

    def mix(self, texts: Sequence[str], transformer: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The Transformer's logits of these texts, mixed with the linear classifier's."""
        if self.linear is None or not self.mixture.share:
            return self.mixture.logits(transformer, torch.zeros_like(transformer))
        return self.mixture.logits(transformer, self.linear_logits(texts))

    def linear_logits(self, texts: Sequence[str]) -> Float[Tensor, "N C"]:
        """The decision values of the linear classifier, on about the scale of logits."""
        if self.linear is None:
            raise ValueError("This classifier has no baseline: task.baseline is false.")
        return self._unfitted("linear", texts, self._linear_logits)

    def _linear_logits(self, texts: Sequence[str]) -> Float[Tensor, "N C"]:
        assert self.linear is not None
        return DECISION_SCALE * torch.from_numpy(self.linear.decide(texts))

    def transformer_logits(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N C"]:
        """The logits of the Transformer for each text, averaged over its windows."""
        return self._unfitted(
            "transformer", texts, lambda others: self._over_windows(others, self.module, len(self.labels), progress)
        )

    def _unfitted(
        self, part: str, texts: Sequence[str], answer: Callable[[Sequence[str]], Float[Tensor, "N C"]]
    ) -> Float[Tensor, "N C"]:
        """The logits of one part; of rows that this run fitted, those out of fold."""
        return answer(texts) if self.folds is None else self.folds.lookup(getattr(self.folds, part), texts, answer)

    def vectors(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N P"]:
        """The vector of each text before the output layer, averaged over its windows."""
        return self._over_windows(texts, self.module.vectors, self.module.output.in_features, progress)

    def embed(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N P"]:
        """The vector of each text before the output layer, of length 1."""
        return F.normalize(self.vectors(texts, progress), dim=-1)

    def _over_windows(
        self, texts: Sequence[str], compute: Callable[[Int[Tensor, "B S"]], Tensor], width: int, progress: Progress
    ) -> Float[Tensor, "N P"]:
        """What the module computes for each text, averaged over the text's windows."""
        encoded = self.tokenizer.encode_batch(texts)
        parts = [
            (text, start, ids[start:end])
            for text, ids in enumerate(encoded)
            for start, end in windows([1] * len(ids), self.limit)
        ]
        sums, n_parts = torch.zeros(len(texts), width), torch.zeros(len(texts), 1)
        with evaluating(self.module):
            for batch in batches_by_length([len(ids) + 1 for *_, ids in parts]):
                owners, starts, tokens = zip(*(parts[part] for part in batch), strict=True)
                sums.index_add_(0, torch.tensor(owners), compute(self.to_ids(tokens)).float().cpu())
                n_parts.index_add_(0, torch.tensor(owners), torch.ones(len(batch), 1))
                progress(starts.count(0))
        return sums / n_parts

    def probabilities(self, texts: Sequence[str], progress: Progress = lambda done: None) -> NDArray[np.float64]:
        """The calibrated probability of each label for each text."""
        return self._calibrated(self.logits(texts, progress))

    def _calibrated(self, logits: Float[Tensor, "N C"]) -> NDArray[np.float64]:
        return self.calibration.probabilities(logits.double(), multi_label=self.settings.multi_label).numpy()

    def choose(self, probabilities: Sequence[float]) -> tuple[str, ...]:
        """The labels to predict for these probabilities."""
        threshold = self.settings.threshold
        if self.settings.multi_label:
            return tuple(
                label
                for label, probability in zip(self.labels, probabilities, strict=True)
                if probability >= (threshold or 0.5)
            )
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        return (self.labels[best],) if probabilities[best] >= threshold else ()

    def with_threshold(self, threshold: float) -> "Classify":
        """The same classifier, without labels that are less probable."""
        return replace(self, settings=replace(self.settings, threshold=threshold))

    def decisions(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> Decisions:
        """The labels of rows with their probabilities, whatever the threshold."""
        probabilities = self.probabilities([row[0] for row in rows], progress)
        gold, are_blank = [set(self.settings.labels_of(row[1])) for row in rows], [is_blank(row[0]) for row in rows]
        return label_decisions(are_blank, gold, probabilities, self.labels, multi_label=self.settings.multi_label)

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score the labels of rows."""
        card, predictions = self._card(rows, self.probabilities([row[0] for row in rows]), n_resamples=1)
        scores = {score.name: score.value for score in card.scores}
        if metric not in scores:
            metric = "exact match" if self.settings.multi_label else "accuracy"
        samples = [(row[0], prediction.answer, row[1]) for row, prediction in zip(rows, predictions, strict=True)]
        return ValidationResult(metric, scores[metric], samples)

    def calibrate(self, rows: Sequence[Row]) -> "Classify":
        """The classifier with probabilities and scores of scope that fit the valid rows."""
        usable = list(self.usable(rows))
        texts = [row[0] for row in usable]
        transformer = self.transformer_logits(texts)
        task = self if self.folds else self._fit(usable, transformer)  # the folds are more rows than these
        scope = task.scope
        if scope and texts:
            made_up = made_up_texts(texts)
            logits = (task.mix(texts, transformer), task.logits(made_up))
            features = (task._scope_features(scope, *both) for both in zip((texts, made_up), logits, strict=True))
            scope = scope.fit(*features)
        return replace(task, scope=scope)

    def _fit(self, rows: Sequence[Row], transformer: Float[Tensor, "N C"] | None = None) -> "Classify":
        """The classifier with the share of the linear classifier and the temperature that fit these rows."""
        transformer = self.transformer_logits([row[0] for row in rows]) if transformer is None else transformer
        labels = [self.settings.labels_of(row[1]) for row in rows]
        known = [index for index, names in enumerate(labels) if set(names) <= set(self.labels)]
        texts, transformer = [rows[index][0] for index in known], transformer[known]
        targets = self.targets([labels[index] for index in known]).cpu()
        multi_label = self.settings.multi_label
        task = self
        if self.linear is not None:
            fit = Mixture.fit_cautiously if self.settings.probe else Mixture.fit
            mixture = fit(transformer, self.linear_logits(texts), targets, multi_label=multi_label)
            task = replace(self, mixture=mixture)
        calibration = Calibration.fit(task.mix(texts, transformer), targets, multi_label=multi_label)
        return replace(task, calibration=calibration)

    def _scope_features(self, scope: Scope, texts: Sequence[str], logits: Float[Tensor, "N C"]) -> NDArray[np.float64]:
        ids = self.tokenizer.encode_batch(texts)
        return scope.features(texts, ids, logits, multi_label=self.settings.multi_label)

    def out_of_scope(self, texts: Sequence[str], logits: Float[Tensor, "N C"]) -> list[float] | None:
        """How much each text looks unlike all training texts, from 0 to 1; None if this was not fitted."""
        if self.scope is None or not self.scope.is_fitted:
            return None
        return self.scope.scores(self._scope_features(self.scope, texts, logits)).tolist() if texts else []

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Classification]:
        """Predict the labels of each text; a blank text has none."""
        transformer = self._transformer_part(texts)
        linear = None if self.linear is None else self.linear_logits(texts)
        logits = self.mixture.logits(transformer, torch.zeros_like(transformer) if linear is None else linear)
        scores: Sequence[float | None] = self.out_of_scope(texts, logits) or [None] * len(texts)
        shares = [None] * len(texts) if linear is None else self._linear_shares(transformer, linear, logits)
        return [
            prediction if prediction.probability is None else replace(prediction, out_of_scope=score, ngram_share=share)
            for prediction, score, share in zip(
                self._predictions(texts, self._calibrated(logits)), scores, shares, strict=True
            )
        ]

    def baseline_share(self, rows: Sequence[Row]) -> float:
        """The mean share of the linear classifier in the decisions on these rows."""
        predictions = self.predict([row[0] for row in rows], DecodeSettings())
        return float(
            np.mean(
                [prediction.ngram_share for prediction in predictions if prediction.ngram_share is not None] or [0.0]
            )
        )

    def _linear_shares(
        self, transformer: Float[Tensor, "N C"], linear: Float[Tensor, "N C"], logits: Float[Tensor, "N C"]
    ) -> Sequence[float | None]:
        """How much of each decision the linear classifier made: its share of the lead of the best label over the next.

        If multi_label, its share of the logit that is farthest from 0.
        """
        parts = self.mixture.parts(transformer, linear)
        if self.settings.multi_label:
            best = logits.abs().argmax(-1, keepdim=True)
            whole, own = (part.gather(-1, best)[:, 0] for part in (logits, parts[1]))
        else:
            first, second = logits.topk(2, dim=-1).indices.unbind(-1)
            rows = torch.arange(len(logits))
            whole, own = (part[rows, first] - part[rows, second] for part in (logits, parts[1]))
        shares = torch.where(whole == 0, self.mixture.share, own / torch.where(whole == 0, 1.0, whole))
        return [round(share, 4) for share in shares.clamp(0, 1).tolist()]

    def _predictions(self, texts: Sequence[str], probabilities: NDArray[np.float64]) -> list[Classification]:
        blank = Classification((), None, {}, self.settings.separator)
        return [
            blank if is_blank(text) else self._classification(row)
            for text, row in zip(texts, probabilities.tolist(), strict=True)
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
        """The statistics of accuracy; of micro-F1 if multi_label."""
        return self._tally(rows, self.predict([row[0] for row in rows], settings))

    def _tally(self, rows: Sequence[Row], predictions: Sequence[Classification]) -> Tally:
        predicted = [set(prediction.labels) for prediction in predictions]
        gold = [set(self.settings.labels_of(row[1])) for row in rows]
        if self.settings.multi_label:
            return f1_tally("micro-F1", gold, predicted)
        is_correct = [labels == expected for labels, expected in zip(predicted, gold, strict=True)]
        return share_tally("accuracy", is_correct, [1] * len(rows))

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> LabelCard:
        """Compare the predicted labels of every text with its own."""
        rows = list(rows)
        logits = self.logits([row[0] for row in rows], progress)
        return self._with_scope(self._card(rows, self._calibrated(logits))[0], rows, logits)

    def score_calibrated(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> LabelCard:
        """The scorecard of the rows that it was calibrated on: each half is calibrated on the other half."""
        rows = list(rows)
        texts = [row[0] for row in rows]
        transformer = self.transformer_logits(texts, progress)
        probabilities = np.empty(transformer.shape)
        for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
            task = self if self.folds else self._fit(rows[other], transformer[other])
            probabilities[half] = task._calibrated(task.mix(texts[half], transformer[half]))
        return self._with_scope(self._card(rows, probabilities)[0], rows, self.mix(texts, transformer))

    def _with_scope(self, card: LabelCard, rows: Sequence[Row], logits: Float[Tensor, "N C"]) -> LabelCard:
        """The card with the score of telling its texts from texts that belong to no label."""
        inside = self.out_of_scope([row[0] for row in rows], logits)
        if inside is None:
            return card
        texts = [row[0] for row in self.usable(rows)][:_N_NEGATIVES]
        outside = [*made_up_texts(texts, seed=1), *stories(_N_NEGATIVES)]
        scores = self.out_of_scope(outside, self.logits(outside)) or []
        return replace(card, scores=[*card.scores, auroc("out-of-scope AUROC", inside, scores, _NEGATIVES)])

    def score_out_of_scope(self, rows: Sequence[Row], texts: Sequence[str], name: str) -> list[Score]:
        """Score how well texts that belong to no label are told from rows; nothing if scope was not fitted."""
        inside, outside = (
            self.out_of_scope(texts, self.logits(texts)) for texts in ([row[0] for row in rows], list(texts))
        )
        if inside is None or outside is None:
            return []
        return [
            auroc(f"out-of-scope AUROC ({name})", inside, outside),
            share_tally(f"out-of-scope found ({name})", [x > THRESHOLD for x in outside], [1] * len(outside)).score(),
            share_tally("false alarms", [x > THRESHOLD for x in inside], [1] * len(inside)).score(),
        ]

    def _card(
        self, rows: Sequence[Row], probabilities: NDArray[np.float64], n_resamples: int = 1000
    ) -> tuple[LabelCard, list[Classification]]:
        texts = [row[0] for row in rows]
        predictions = self._predictions(texts, probabilities)
        card = label_card(
            texts,
            [self.settings.labels_of(row[1]) for row in rows],
            [prediction.labels for prediction in predictions],
            probabilities,
            self.labels,
            multi_label=self.settings.multi_label,
            n_resamples=n_resamples,
        )
        return card, predictions


def _read_training_rows(
    rows: Iterable[Row], tokenizer: Tokenizer, settings: ClassifySettings
) -> tuple["Counter[str]", int, Scope]:
    """Return how many rows each label has, the number of rows, and the n-grams of their texts, in one pass."""
    counts: Counter[str] = Counter()
    n_rows = 0

    def texts() -> Iterator[tuple[str, list[int]]]:
        nonlocal n_rows
        one_in = 1 + (len(rows) if isinstance(rows, Sized) else 0) // _MAX_SCOPE_ROWS
        for chunk in chunks(rows):
            chosen = [row[0] for row in chunk[::one_in]]
            yield from zip(chosen, tokenizer.encode_batch(chosen), strict=True)
            counts.update(label for row in chunk for label in settings.labels_of(row[1]))
            n_rows += len(chunk)

    scope = Scope(SeenNgrams.of(texts()))
    return counts, n_rows, scope
