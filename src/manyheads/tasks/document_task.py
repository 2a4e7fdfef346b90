"""What tasks on whole documents share: `DocumentTask`, and their parts of `init` and `doctor`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from manyheads import corpora
from manyheads.data import Windows, choose_examples, cut_windows
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.messages import Message, _
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.data_files import DataFiles, FolderListing
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.proposal import HOUR, N_SPARE_TOKENS, Choice, Survey
from manyheads.tasks.task import Task, TrainingData
from manyheads.tasks.task_doctor import Source, TaskDoctor
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, Timer, text_column, validation_rows
from manyheads.text.reading.documents import document_files, read_documents
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.formats import is_table
from manyheads.text.reading.readers import Row
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from manyheads.tasks.task import Task

_T = TypeVar("_T", bound="DocumentTask")  # jaxtyping's beartype does not support Self

_SHOWN_TOKENS = 20  # of a window, in `describe_windows`


@runtime_checkable
class DocumentSettings(Protocol):
    """Settings that define what a document is."""

    @property
    def documents(self) -> Literal["file", "paragraph", "line"]:
        """What a document of plain text is; a row of a table is always one."""


@dataclass(frozen=True)
class DocumentTask(Task):
    """A task whose rows are documents of any length, and whose module is the Transformer alone."""

    noun: ClassVar[str] = "documents"

    model: Transformer
    tokenizer: Tokenizer
    settings: Any

    @property
    def module(self) -> Transformer:
        """The model."""
        return self.model

    @staticmethod
    def fields(settings: DocumentSettings) -> tuple[str, ...]:
        """The text."""
        return ("text",)

    @staticmethod
    def cleaning(settings: DocumentSettings) -> Fields:
        """The one field is a text."""
        return Fields(n_fields=1, n_texts=1)

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: DocumentSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read documents from any number of files."""
        return read_documents(files, settings.documents, columns.get("text"), on_bad=on_bad)

    @staticmethod
    def builtin(
        settings: DocumentSettings, languages: Sequence[str], split: str, count: int, seed: int
    ) -> Iterable[Row]:
        """Stories."""
        (language,) = languages
        return corpora.rows("generate", language, split, count, seed)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: DocumentSettings) -> list[list[list[int]]]:
        """The token ids of each document; line breaks are characters like any other."""
        return [tokenizer.encode_batch([text for (text,) in rows])]

    @classmethod
    def create(cls: type[_T], model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row] = ()) -> _T:
        """Create an untrained model."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls: type[_T], model: Transformer, tokenizer: Tokenizer, settings: Any, metadata: Mapping[str, Any]
    ) -> _T:
        """Create the model; there is no metadata."""
        return cls(model, tokenizer, settings)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not empty."""
        return (row for row in rows if row[0])


def epoch_windows(data: TrainingData, lengths: Any, size: int, epoch: int) -> Windows:
    """Windows of at most `size` tokens of the documents with these lengths, cut differently in every epoch."""
    chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
    windows = cut_windows(lengths if chosen is None else lengths[chosen], size, seed=data.seed, epoch=epoch)
    if chosen is not None:
        windows[:, 0] = chosen[windows[:, 0]]
    return windows


def describe_windows(data: TrainingData, tokenizer: Tokenizer, windows: Windows) -> str:
    """The number of windows (document, start, end), and the beginnings of the first three."""
    column = data.encoded.columns[0]
    beginnings = [column[document][start : start + _SHOWN_TOKENS] for document, start, _ in windows[:3].tolist()]
    texts = ", ".join(f"“{tokenizer.decode(ids.tolist())}…”" for ids in beginnings)
    return f"{len(windows)} windows, {texts}{' …' if len(windows) > 3 else ''}"


def refuse_sampling(data: TrainingData, noun: str) -> None:
    """Raise RecipeError if subword sampling is set: windows are cut from stored tokens."""
    if data.sampling:
        raise RecipeError(
            _(
                "tokenizer.sampling = {sampling}: {noun} is trained on stored tokens. Use 0.",
                sampling=data.sampling,
                noun=noun,
            )
        )


LITTLE_TEXT = 3_000_000  # characters: too few to learn words, so that characters are the tokens
MUCH_TEXT = 50_000_000

_MAX_CHARACTER_TOKENS = 6000
_TRIAL_CHARACTERS = 20_000  # scored to measure the speed


class DocumentInit(TaskInit):
    """Rows are documents. Any text is a document, so the user may request the task for any data."""

    noun = "document"

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
                    "{path}: no column holds text ({summaries}). Name it with --text-column.",
                    path=files.paths[0],
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
        "{name}: {n_documents:,} documents, {total:,} characters (median {median:,}, longest {longest:,}).",
        name=source.name,
        n_documents=len(sizes),
        total=total,
        median=int(np.median(sizes)),
        longest=int(sizes.max()),
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
