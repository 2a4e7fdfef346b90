"""The part of `doctor` that the tasks of whole documents share: their sizes, repeated lines, markup, windows."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.messages import Message, _
from manyheads.model import ModelSettings
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.task_doctor import Source, TaskDoctor
from manyheads.text.reading.readers import is_table

_LITTLE_TEXT = 20_000  # characters
_LONG_LINE = 30  # characters; shorter lines, such as names of speakers, are repeated in good text
_FEW_WINDOWS = 10
_MARKUP = re.compile(
    r"</?(?:p|br|div|span|a|b|i|em|li|ul|td|tr|table|img|font|h\d)\b[^<>]*>|&(?:nbsp|amp|lt|gt|quot|#\d+);", re.I
)


class DocumentDoctor(TaskDoctor):
    """Rows are documents of any length."""

    noun = Message("documents")
    has_long_texts = True

    def has_line_per_row(self, files: Sequence[str], settings: Any) -> bool:
        """A document is a line only if the settings or a table say so."""
        return len(files) == 1 and (settings.documents == "line" or is_table(Path(files[0])))

    def check_rows(self, sets: Sequence[Source], settings: Any) -> Iterator[Finding]:
        """Check the sizes of the training documents, and what repeats or is not text in them."""
        train = sets[0]
        yield _check_sizes(train)
        yield from _check_lines(train, repeats_are_documents=settings.documents == "line")

    def check_lengths(
        self, lengths: NDArray[np.integer[Any]], n_too_long: int, model: ModelSettings, settings: Any
    ) -> Iterator[Finding]:
        """Count the windows of an epoch."""
        n_windows, n_tokens = int(np.ceil(lengths / model.max_length).sum()), int(lengths.sum())
        verdict = verdict_of(n_windows < _FEW_WINDOWS, 1, warn=0.0)
        message = _(
            "{n_tokens:,} tokens, {n_windows:,} windows of up to model.max_length = {max_length} in an epoch.",
            n_tokens=n_tokens,
            n_windows=n_windows,
            max_length=model.max_length,
        )
        fix = _("Give more text, or lower model.max_length.")
        yield Finding("windows", verdict, message, (), "" if verdict == "good" else fix)


def _check_sizes(source: Source) -> Finding:
    sizes = np.array([len(text) for (text,) in source.rows()] or [0], np.int64)
    total = int(sizes.sum())
    verdict = verdict_of(total < _LITTLE_TEXT, 1, warn=0.0)
    message = _(
        "{name}: {n_sizes:,} documents, {total:,} characters (median {median:,}, longest {max:,}).",
        name=source.name,
        n_sizes=len(sizes),
        total=total,
        median=int(np.median(sizes)),
        max=int(sizes.max()),
    )
    fix = _("Give more text: this is too little to learn a language from.")
    return Finding("amount of text", verdict, message, (), "" if verdict == "good" else fix)


def _check_lines(source: Source, *, repeats_are_documents: bool) -> Iterator[Finding]:
    """Check for lines that repeat and for markup; documents that are lines are checked as duplicates."""
    seen: set[int] = set()
    n_lines = n_long = n_repeated = n_marked = 0
    repeated: list[str] = []
    marked: list[str] = []
    for index, (text,) in enumerate(source.rows()):
        for line in text.split("\n"):
            n_lines += bool(line.strip())
            if _MARKUP.search(line):
                n_marked += 1
                _add_example(marked, source, index, line)
            if len(line) >= _LONG_LINE:
                n_long += 1
                if hash(line.strip()) in seen:
                    n_repeated += 1
                    _add_example(repeated, source, index, line)
                seen.add(hash(line.strip()))
    if not repeats_are_documents:
        yield _repeated_finding(source, n_repeated, n_long, repeated)
    yield _markup_finding(source, n_marked, n_lines, marked)


def _add_example(examples: list[str], source: Source, index: int, line: str) -> None:
    if len(examples) < MAX_EXAMPLES:
        examples.append(f"{source.location(index)}: {excerpt(line)}")


def _repeated_finding(source: Source, count: int, total: int, examples: Sequence[str]) -> Finding:
    counted, verdict = share(count, total), verdict_of(count, total, warn=0.2)
    message = _(
        "{name}: {counted} lines of {LONG_LINE} characters or more repeat an earlier one.",
        name=source.name,
        counted=counted,
        LONG_LINE=_LONG_LINE,
    )
    fix = _("Remove headers, footers, menus and copied passages, or the model learns them by heart.")
    is_good = verdict == "good"
    return Finding("repeated lines", verdict, message, () if is_good else tuple(examples), "" if is_good else fix)


def _markup_finding(source: Source, count: int, total: int, examples: Sequence[str]) -> Finding:
    counted, verdict = share(count, total), verdict_of(count, total, warn=0.005)
    message = _("{name}: {counted} lines contain HTML tags or entities.", name=source.name, counted=counted)
    fix = _("Convert the files to plain text, unless the model is to write markup.")
    is_good = verdict == "good"
    return Finding("markup", verdict, message, () if is_good else tuple(examples), "" if is_good else fix)
