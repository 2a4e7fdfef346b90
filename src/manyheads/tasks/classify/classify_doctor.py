"""The classify task's part of `doctor`: its labels, and texts whose labels contradict each other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.language import pick
from manyheads.messages import Message, _
from manyheads.model import ModelSettings
from manyheads.tasks.classify.settings import ClassifySettings
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.label_checks import check_labels
from manyheads.tasks.task_doctor import Sample, Source, TaskDoctor, check_all_same

LABEL = Message("label")


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
            "{share} texts have more than model.max_length = {max_length} tokens and are read in windows; the "
            "longest has {max:,}.",
            share=share(n_long, len(lengths)),
            max_length=model.max_length,
            max=int(lengths.max(initial=0)),
        )
        fix = _("Raise model.max_length, so that a text is read as a whole.")
        yield Finding("length in tokens", verdict, message, (), "" if verdict == "good" else fix)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check that not every text gets the same label."""
        return check_all_same(check, samples, LABEL)


def _count_labels(source: Source, settings: ClassifySettings) -> "Counter[str]":
    return Counter(label for row in source.rows() for label in settings.labels_of(row[1]) if row[0].strip() and label)


def check_contradictions(source: Source, field: int, noun: Message) -> Finding:
    """Count rows whose text, ignoring case and spacing, also occurs with another value of this field."""
    first: dict[int, str] = {}
    contradicted: set[int] = set()
    keys: list[int] = []
    for row in source.rows():
        key = hash(" ".join(row[0].casefold().split()))
        keys.append(key)
        if row[0].strip() and first.setdefault(key, row[field]) != row[field]:
            contradicted.add(key)
    count = sum(key in contradicted for key in keys)
    verdict = verdict_of(count, len(keys), warn=0.005, fail=0.2)
    message = pick(
        f"{source.name}: {share(count, len(keys))} rows have a text that also occurs with another {noun.en}.",
        f"{source.name}：{share(count, len(keys))} 行的文本还带有另一种{noun.zh}。",
    )
    check = f"contradicting {noun.en}s"
    if verdict == "good":
        return Finding(check, verdict, message)
    chosen = next(key for key in keys if key in contradicted)
    examples = [
        f"{source.location(index)}: {excerpt(row[0])} → {row[field]}"
        for index, (key, row) in enumerate(zip(keys, source.rows(), strict=False))
        if key == chosen
    ]
    fix = pick(
        f"Decide on one {noun.en} for each text: no model can learn both, and the score has a ceiling.",
        f"请为每条文本确定一种{noun.zh}：模型无法同时学会两种，得分会有上限。",
    )
    return Finding(check, verdict, message, tuple(examples[:MAX_EXAMPLES]), fix)
