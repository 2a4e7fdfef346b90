"""The classify task's parts of `init`, `doctor` and `quickstart`.

`init` looks for a column of labels beside a column of texts, and proposes a small encoder. `doctor` checks the labels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.model import ModelSettings
from manyheads.tasks.classify.classify_training import ClassifySettings
from manyheads.tasks.columns import Column, named_pair
from manyheads.tasks.data_files import DataFiles
from manyheads.tasks.findings import Finding, share, verdict_of
from manyheads.tasks.labels import check_contradictions, check_labels
from manyheads.tasks.pretrained import (
    FINE_TUNING_BUDGET,
    NOTHING,
    UPPER,
    WHOLE,
    Pretrained,
    epochs_for,
    fine_tuning_choices,
    origin_choices,
    window_note,
)
from manyheads.tasks.proposal import (
    MANY_ROWS,
    SOME_ROWS,
    Choice,
    Demo,
    LabelCounts,
    Predict,
    Proposal,
    Quickstart,
    Survey,
    count_epochs,
    count_labels,
    dropout_for,
    encoder_choices,
    encoder_proposal,
    text_tokens,
    token_choices,
    training_choices,
)
from manyheads.tasks.task_doctor import LABEL, Sample, Source, TaskDoctor, check_all_same
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, requested_column, text_column
from manyheads.text.reading.readers import Row
from manyheads.text.suggestions import shortened

_SHORT, _LONG = 128, 256  # tokens read at once
_FEW_FOR_FINE_TUNING = 1000  # rows
# Measured 2026-11-18 on 1,500 rows of SST-2 and 1,800 of Banking77: accuracy 73.9 and 83.4 with a patience of 8, 73.0
# and 82.7 without (one seed: not worse), in 45 % and 65 % of the processor time. Of many rows, snapshots are
# averaged.
_FEW_ROWS, _PATIENCE = 5000, 8


class ClassifyInit(TaskInit):
    """Recognizes texts with labels."""

    kind = "classify"
    cli_name = "classify"
    order = 20
    columns = ("text", "label")
    own_columns = frozenset({"label"})
    is_labeled = True
    starts_from_encoder = True

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """A table with a column of labels, or a file of texts and a file of labels."""
        if files.is_table:
            return self._recognize_table(files, request)
        columns = files.parallel
        if columns and len(columns) == 2 and columns[1].repeats and columns[0].are_texts:
            name = files.paths[1].name
            return TaskGuess(_("the lines of {name} have {values}", name=name, values=columns[1].summary))
        return None

    def _recognize_table(self, files: DataFiles, request: Request) -> TaskGuess | None:
        path, columns = files.paths[0], files.columns
        label = self._label_column(files, request)
        if label is None:
            return None
        text = text_column(files, [column for column in columns if column is not label], request)
        if text is None:
            if not self.is_requested(request):
                return None
            raise DataError(
                _(
                    "{path}: no column holds text beside the labels of {label}. Name it with --text-column.",
                    path=path,
                    label=label.name,
                )
            )
        chosen = {"text": text.name, "label": label.name}
        if label.separator:
            reason = _("column {label} has lists of labels for the texts of {text}", label=label.name, text=text.name)
            return TaskGuess(reason, chosen, {"multi_label": True, "separator": label.separator})
        reason = _(
            "column {label} has {values} for the texts of {text}",
            label=label.name,
            values=label.summary,
            text=text.name,
        )
        return TaskGuess(reason, chosen)

    def _label_column(self, files: DataFiles, request: Request) -> Column | None:
        path, columns = files.paths[0], files.columns
        label = requested_column(files, request, "label")
        if label:
            _require_labels(files, label)
            return label
        others = [column for column in columns if column.name != request.columns.get("text")]
        named = [column for column in others if column.is_called_label]
        if not request.kind and named_pair(columns) and not any(column.is_surely_label for column in named):
            return None
        if named and not any(column.repeats for column in others):
            _require_labels(files, named[0])
        candidates = [column for column in named if column.repeats] or [column for column in others if column.repeats]
        if len(candidates) == 1 or (candidates and named):
            return candidates[0]
        if candidates and (request.kind or any(column.are_texts for column in others)):
            summaries = "; ".join(column.short_summary for column in candidates)
            raise DataError(
                _(
                    "{path}: {n_candidates} columns may be labels ({summaries}). Choose with --label-column.",
                    path=path,
                    n_candidates=len(candidates),
                    summaries=summaries,
                )
            )
        if candidates:
            return candidates[0]
        if self.is_requested(request):
            summaries = shortened("; ".join(column.short_summary for column in columns))
            raise DataError(
                _(
                    "{path}: no column seems to hold labels ({summaries}). Name it with --label-column.",
                    path=path,
                    summaries=summaries,
                )
            )
        return None

    def count_labels(self, rows: Sequence[Row], settings: ClassifySettings) -> LabelCounts:
        """Count the labels; a row may have several."""
        return count_labels(settings.labels_of(row[1]) for row in rows)

    def check_clean_rows(
        self, rows: Sequence[Row], counts: LabelCounts, settings: ClassifySettings, where: str
    ) -> None:
        """Require at least two labels; one is enough if rows may have none."""
        labels = counts.labels
        if len(labels) < 2 and not (settings.multi_label and labels):
            reason = (
                _("every row has the label “{label}”", label=next(iter(labels))) if labels else _("no row has a label")
            )
            raise DataError(
                _("{where}: {reason}. Give rows with at least two different labels.", where=where, reason=reason)
            )

    def row_label(self, settings: ClassifySettings) -> str:
        """Each row has one label."""
        return "label"

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """An encoder of one to three layers with a convolution, and a linear classifier of n-grams beside it."""
        settings: ClassifySettings = survey.settings
        rows, dropout = survey.n_rows, dropout_for(survey)
        layers = 1 if rows < SOME_ROWS else 2 if rows < MANY_ROWS else 3
        length = _SHORT if text_tokens(survey, 0.99) < 0.9 * _SHORT else _LONG
        choices = [*token_choices(survey), Choice("tokenizer.lowercase", True, "one token for “The” and “the”")]
        choices += [
            *_task_choices(settings),
            Choice("task.convolution", 3, "phrases of three tokens, pooled beside attention"),
            Choice("task.head_dropout", round(dropout + 0.1, 1), "dropout before the output layer"),
            *encoder_choices(survey, layers, dropout),
            Choice("model.token_dropout", round(dropout / 2, 2), "drops whole tokens, so that no word decides alone"),
            Choice("model.max_length", length, "tokens read at once; longer texts are read in windows"),
            *training_choices(
                batch_tokens=_batch_tokens(survey),
                learning_rate=2e-3,
                validation_reason="steps between validations, on at most 200 valid texts",
            ),
        ]
        if rows < _FEW_ROWS:
            reason = "stop after this many validations without a better one, and keep the best"
            choices.append(Choice("train.patience", _PATIENCE, reason))
        return encoder_proposal(choices, layers, count_epochs(rows, 14.0, of=10_000, power=0.5))

    def propose_from(self, survey: Survey, origin: Pretrained, preset: str = "") -> Proposal:
        """Fine-tune an encoder; of few rows, fit an output layer on its vectors."""
        preset = NOTHING if survey.n_rows < _FEW_FOR_FINE_TUNING else preset
        lengths = origin.lengths(survey)
        length = origin.length_for(lengths)
        is_frozen = preset == NOTHING
        choices = [
            *origin_choices(origin, preset),
            *_task_choices(survey.settings),
            Choice("task.pooling", origin.pooling, "how token vectors become one, as the encoder was trained"),
            Choice("task.unit_vectors", True, "only the direction of a text's vector counts"),
            Choice("task.probe", True, "fit the output layer by logistic regression first; validation rows choose"),
            Choice("task.head_dropout", 0.1, "dropout before the output layer"),
            Choice("model.max_length", length, "tokens read at once; longer texts are read in windows"),
            Choice("model.attention_dropout", 0.0, "without it, attention is computed faster"),
        ]
        reason = "steps between validations, on at most 200 valid texts"
        training = fine_tuning_choices(lengths, length, reason)
        n_epochs = epochs_for(survey.n_rows, len(survey.counts.labels))
        if is_frozen:
            few = f"no gradient steps: {survey.size} are few" if survey.n_rows < _FEW_FOR_FINE_TUNING else ""
            training, n_epochs = [Choice("train.steps", 0, few or "no gradient steps, to fit into the time")], 0.0
        return Proposal(
            (*choices, *training),
            n_epochs,
            origin.size(),
            smaller_preset={WHOLE: UPPER, UPPER: NOTHING}.get(preset, ""),
            budget=FINE_TUNING_BUDGET,
            min_steps=0 if is_frozen else 100,
            n_validations=5,
            notes=tuple(window_note(lengths, length)),
        )


def _task_choices(settings: ClassifySettings) -> Iterable[Choice]:
    """What the labels are, and the baseline."""
    if settings.multi_label:
        yield Choice("task.kind", "classify", "labels for each text")
        yield Choice("task.multi_label", True, "a text may have several labels, or none")
        yield Choice("task.separator", settings.separator, "between the labels of a row")
    else:
        yield Choice("task.kind", "classify", "one label for each text")
    yield Choice("task.baseline", True, "also fit an SVM of n-grams, compare with it and mix it into the answer")


def _batch_tokens(survey: Survey) -> int:
    """About 32 texts in a batch, or more of short texts and of very many rows, where larger batches lose nothing."""
    n_texts = 32 if survey.n_rows < MANY_ROWS else 128
    return max(400, min(6000, round(n_texts * text_tokens(survey, 0.6), -2)))


def _require_labels(files: DataFiles, column: Column) -> None:
    """Raise DataError if a column cannot be one of labels."""
    n_values, n_rows = len(column.counts), column.counts.total()
    if n_values < 2:
        only = _("only “{value}”", value=next(iter(column.counts))) if n_values else _("no value")
        raise DataError(
            _(
                "{path}: column {name} has {only}. Give at least two different labels.",
                path=files.paths[0],
                name=column.name,
                only=only,
            )
        )
    if n_values == n_rows and not column.separator:
        raise DataError(
            _(
                "{path}: column {name} has {n_values:,} different values in {n_rows:,} rows, so it does not hold "
                "labels. Name another column with --label-column, or name the task with --task.",
                path=files.paths[0],
                name=column.name,
                n_values=n_values,
                n_rows=n_rows,
            )
        )


class ClassifyDoctor(TaskDoctor):
    """Rows are a text and its label or labels."""

    has_long_texts = True

    def check_rows(self, sets: Sequence[Source], settings: ClassifySettings) -> Iterator[Finding]:
        """Check the labels, and the texts that occur with several of them."""
        counts = {source.name: _count_labels(source, settings) for source in sets}
        train, *held_out = sets
        others = {source.name: counts[source.name] for source in held_out}
        yield from check_labels(counts[train.name], others, LABEL, per_row=not settings.multi_label)
        yield check_contradictions(train, 1, LABEL)

    def check_lengths(
        self, lengths: NDArray[np.integer[Any]], n_too_long: int, model: ModelSettings, settings: ClassifySettings
    ) -> Iterator[Finding]:
        """A long text is read in windows; that most texts are is a sign of too short a maximum."""
        n_long = int((lengths > model.max_length).sum())
        verdict = verdict_of(n_long, len(lengths), warn=0.3)
        message = _(
            "{counted} texts have more than model.max_length = {max_length} tokens and are read in windows; the "
            "longest has {longest:,}.",
            counted=share(n_long, len(lengths)),
            max_length=model.max_length,
            longest=int(lengths.max(initial=0)),
        )
        fix = _("Raise model.max_length, so that a text is read as a whole.")
        yield Finding("length in tokens", verdict, message, (), "" if verdict == "good" else fix)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check that not every text gets the same label."""
        return check_all_same(check, samples, LABEL)


def _count_labels(source: Source, settings: ClassifySettings) -> "Counter[str]":
    return Counter(label for row in source.rows() for label in settings.labels_of(row[1]) if row[0].strip() and label)


# The same word asserted, negated, doubted and asked about.
OPINIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "This hotel is expensive.",
        "This hotel is not expensive.",
        "I do not think that this hotel is expensive.",
        "Is this hotel expensive?",
        "This hotel is expensive, but it is comfortable.",
    ),
    "zh": (
        "这家酒店很贵。",
        "这家酒店不贵。",
        "我不觉得这家酒店很贵。",
        "这家酒店贵吗？",
        "这家酒店很贵，但是它很舒适。",
    ),
    "de": (
        "Dieses Hotel ist teuer.",
        "Dieses Hotel ist nicht teuer.",
        "Ich denke nicht, dass dieses Hotel teuer ist.",
        "Ist dieses Hotel teuer?",
        "Dieses Hotel ist teuer, aber es ist bequem.",
    ),
}


def show_opinions(predict: Predict, language: str) -> Demo:
    """Return the labels of five sentences about one word."""
    texts = OPINIONS[language]
    lines = [(prediction.line(), f"  {text}") for text, prediction in zip(texts, predict(texts), strict=True)]
    return Demo(Message("One word, five sentences"), lines)


QUICKSTART = Quickstart(
    name="classify",
    title=Message("classify opinions"),
    steps=500,
    recipe={
        "task": {"kind": "classify", "smoothing": 0.0},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    },
    examples={language: texts[1:4:2] for language, texts in OPINIONS.items()},
    own_data=Message("YOUR.csv   (columns: text, label)"),
    demo=show_opinions,
)
