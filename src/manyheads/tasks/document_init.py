"""The part of `init` shared by the tasks of whole documents: plain text or a column of texts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.tasks.data_files import DataFiles, FolderListing
from manyheads.tasks.encoder_choices import N_SPARE_TOKENS
from manyheads.tasks.proposal import HOUR, Choice, Survey
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, Timer, text_column, validation_rows
from manyheads.text.reading.documents import document_files
from manyheads.text.reading.readers import Row
from manyheads.text.suggestions import shortened

if TYPE_CHECKING:
    from manyheads.tasks.task import Task

LITTLE_TEXT = 3_000_000  # characters: too few to learn words, so that characters are the tokens
MUCH_TEXT = 50_000_000

_MAX_CHARACTER_TOKENS = 6000
_TRIAL_CHARACTERS = 20_000  # scored to measure the speed


class DocumentInit(TaskInit):
    """Rows are documents. Any text is a document, so the user may request the task for any data."""

    noun = "document"
    noun_zh = "篇文档"

    def files_in(self, listing: FolderListing, request: Request) -> Sequence[Path] | None:
        """All files of text in subfolders, if the user requested this task."""
        return document_files([listing.folder]) if self.is_requested(request) and not listing.files else None

    def requested_table(self, files: DataFiles, request: Request) -> TaskGuess:
        """The guess for a table, if the user requested this task or named its column of texts."""
        text = text_column(files, files.columns, request)
        if text is None:
            summaries = shortened("; ".join(column.short_summary for column in files.columns))
            raise DataError(
                _(
                    "{paths}: no column holds text ({summaries}). Name it with --text-column.",
                    paths=files.paths[0],
                    summaries=summaries,
                )
            )
        reason = request.reason if request.task else _("column {name} holds texts", name=text.name)
        return TaskGuess(reason, {"text": text.name})

    def scoring_seconds(
        self, task: "Task", survey: Survey, decode: DecodeSettings, timer: Timer
    ) -> tuple[float, float]:
        """Scoring is scaled up by characters; the few generated samples cost next to nothing."""
        rows = validation_rows(task, survey)
        if not rows:
            return 0.0, 0.0
        validation = timer(lambda: task.validate(rows, task.metrics[0]))
        documents: list[Row] = []
        n_left = _TRIAL_CHARACTERS
        for (text,) in rows:
            documents += [(text[:n_left],)] if n_left > 0 else []
            n_left -= len(text)
        scoring = timer(lambda: task.score(documents, replace(decode, max_new_tokens=1)))
        return validation, scoring * survey.n_scored_characters / sum(len(text) for (text,) in documents)


def subword_choices(survey: Survey) -> Iterable[Choice]:
    """A BPE tokenizer whose vocabulary grows with the text."""
    size = survey.n_characters
    vocab_size = 2000 if size < LITTLE_TEXT / 2 else 4000 if size < 2 * LITTLE_TEXT else 8000
    vocab_size = vocab_size if size < MUCH_TEXT else 16_000
    yield Choice("tokenizer.kind", "bpe", "subword tokens, learned from your text")
    yield Choice("tokenizer.vocab_size", vocab_size, f"small enough for every token to occur often: {survey.size}")


def character_choices(survey: Survey) -> Iterable[Choice]:
    """A tokenizer of characters."""
    n_characters = len({character for text in survey.texts for character in text})
    vocab_size = min(_MAX_CHARACTER_TOKENS, n_characters + N_SPARE_TOKENS)
    yield Choice("tokenizer.kind", "character", f"too little text to learn words from: {survey.size}")
    yield Choice("tokenizer.vocab_size", vocab_size, "every character, and bytes for rare ones")


def document_choices(survey: Survey) -> Iterable[Choice]:
    """What a document is, if not a file."""
    if survey.settings.documents != "file":
        yield Choice("task.documents", survey.settings.documents, "each is a document of its own")


def characters_per_token(survey: Survey) -> float:
    """Estimated characters of a subword token."""
    return 1.5 if survey.has_many_characters else 4.0


def count_document_epochs(n_tokens: float, of_a_million: float) -> float:
    """`of_a_million` epochs for a million tokens, fewer for more."""
    return min(40.0, max(2.0, of_a_million * (1e6 / n_tokens) ** 0.5))


def document_budget(n_characters: int) -> float:
    """Default training time in seconds."""
    return HOUR if n_characters < LITTLE_TEXT else 1.5 * HOUR if n_characters < MUCH_TEXT else 6 * HOUR
