"""`TaskInit`: a task's part of `manyheads init`, which recognizes data, surveys it and proposes a recipe.

`init` calls `recognize` of every registered task in turn until one returns a guess. A task overrides the methods in
which it differs; `recognize` and `propose` are the two that it must have. Text for the screen is in the language in
use; the comments of a recipe are in English.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from manyheads.data import CleanSettings
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.tasks.columns import Column
from manyheads.tasks.data_files import DataFiles, FolderListing
from manyheads.tasks.pretrained import Pretrained
from manyheads.tasks.proposal import LabelCounts, Proposal, Survey
from manyheads.text.reading.readers import Row
from manyheads.text.suggestions import shortened

if TYPE_CHECKING:
    from manyheads.tasks.task import Task

Languages = tuple[str, str]
Timer = Callable[[Callable[[], object]], float]  # runs a function, returns the seconds it took

_MIN_SCORED = 50  # rows to measure the scorecard's time on
N_VALIDATED = 200  # valid rows predicted at each validation, unless the task needs more


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `manyheads init`."""

    task: str = ""  # a task's name on the command line; "" to recognize it from the data
    columns: Mapping[str, str] = field(default_factory=dict)  # field → column, from the --…-column options
    direction: Languages = ("", "")  # source and target language, if given
    scheme: str = ""  # the scheme of tags; "" to detect it
    kind: str = ""  # the task's kind; `init` fills it in from the other fields

    @property
    def reason(self) -> str:
        """Why the task is the requested one, in the language in use."""
        if self.task:
            return _("as --task {task} requests", task=self.task)
        return _("as the options request")


@dataclass(frozen=True)
class TaskGuess:
    """The columns and the task's settings for data that a task recognizes."""

    reason: str  # why the data is for this task, in the language in use
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    clean: CleanSettings = field(default_factory=CleanSettings)
    languages: Languages = ("", "")  # from file or column names


class TaskInit:
    """The defaults of a task's part of `init`; a row of the task has one text, and no languages are compared."""

    kind: ClassVar[str]
    cli_name: ClassVar[str]  # the task's name on the command line
    is_offered: ClassVar[bool] = True  # False: models of the task are not trained from data
    order: ClassVar[int] = 50  # `recognize` of tasks with a lower number is called first
    noun: ClassVar[str] = "row"  # what one row is called
    advice: ClassVar[str] = "Give text."  # what to do if no row is usable
    columns: ClassVar[tuple[str, ...]] = ("text",)  # the --…-column options the task accepts
    own_columns: ClassVar[frozenset[str]] = frozenset()  # those that imply the task
    is_labeled: ClassVar[bool] = False  # whether `count_labels` counts labels: validation rows are drawn by label
    n_validated: ClassVar[int] = N_VALIDATED  # valid rows predicted at each validation
    starts_from_encoder: ClassVar[bool] = False  # whether the task has `propose_from`
    takes_scheme: ClassVar[bool] = False  # whether --scheme is for the task, and implies it
    takes_columns_of_lines: ClassVar[bool] = False  # whether --…-column also applies to files that are not tables

    def is_implied_by(self, request: Request) -> bool:
        """Whether the options other than --task imply this task."""
        return bool(self.own_columns & {*request.columns}) or (self.takes_scheme and bool(request.scheme))

    def is_requested(self, request: Request) -> bool:
        """Whether the user requested this task."""
        return request.kind == self.kind

    def files_in(self, listing: FolderListing, request: Request) -> Sequence[Path] | None:
        """The training files of a folder, if the task recognizes them; None leaves the folder to general rules."""
        return None

    def recognize_names(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """Recognize data by names alone; called for every task before any `recognize`."""
        return None

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """Recognize the training files, or return None if they are not for this task."""
        raise NotImplementedError

    def requested_guess(self, files: DataFiles, request: Request) -> TaskGuess:
        """The guess for files that are not a table, if the user requested this task."""
        if request.columns and not self.takes_columns_of_lines:
            raise DataError(
                _(
                    "{path} has no columns to choose from. Leave out --{field}-column.",
                    path=files.paths[0],
                    field=next(iter(request.columns)),
                )
            )
        return TaskGuess(request.reason, request.columns)

    def complete(self, guess: TaskGuess, sets: Mapping[str, Sequence[Path]], request: Request) -> TaskGuess:
        """Check the files of all splits together and complete the guess."""
        return guess

    def check_rows(self, rows: Sequence[Row], where: str) -> None:
        """Raise DataError if raw rows do not suit the task."""

    def check_clean_rows(self, rows: Sequence[Row], counts: LabelCounts, settings: Any, where: str) -> None:
        """Raise DataError if clean rows have nothing to learn."""

    def count_labels(self, rows: Sequence[Row], settings: Any) -> LabelCounts:
        """Count the labels of rows."""
        return LabelCounts()

    def labels_of(self, row: Row, settings: Any) -> tuple[str, ...]:
        """The different labels of one row."""
        return tuple(sorted(self.count_labels([row], settings).names))

    def row_label(self, settings: Any) -> str:
        """What the one label of each row is called ("label" or "intent"); "" if rows do not have exactly one."""
        return ""

    def languages(
        self, rows: Sequence[Row], named: Languages, requested: Languages, files: Sequence[str]
    ) -> Languages | None:
        """Source and target language; None if the task does not have them."""
        return None

    def display_name(self, settings: Any) -> str:
        """What the task is called on the screen, in the language in use."""
        return self.cli_name

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """Propose a recipe for the surveyed data; `preset` asks for another model size."""
        raise NotImplementedError

    def check_origin(self) -> None:
        """Raise DataError if the task cannot start from a pretrained encoder."""
        if not self.starts_from_encoder:
            raise DataError(
                _(
                    "--from is not for the task {task}, which cannot start from an encoder. Leave it out, or name "
                    "another task with --task.",
                    task=self.cli_name,
                )
            )

    def propose_from(self, survey: Survey, origin: Pretrained, preset: str = "") -> Proposal:
        """Propose a recipe that starts from a pretrained encoder; `preset` says how much of it is trained."""
        raise NotImplementedError

    def step_counts(self, settings: Any, n_steps: int) -> tuple[int, ...]:
        """How many training steps each phase has; phases differ in what a step costs."""
        return (n_steps,)

    def phases(self, task: "Task") -> tuple["Task", ...]:
        """The task as it trains in each phase."""
        return (task,)

    def scoring_seconds(
        self, task: "Task", survey: Survey, decode: DecodeSettings, timer: Timer
    ) -> tuple[float, float]:
        """Seconds of one validation during training, and of the scorecard at the end."""
        rows = validation_rows(task, survey)
        if not rows:
            return 0.0, 0.0
        validation = timer(lambda: task.validate(rows, task.metrics[0]))
        scored = rows * -(
            -_MIN_SCORED // len(rows)
        )  # of very few rows, what does not depend on them would be scaled up
        scoring = timer(lambda: (task.calibrate(scored), task.score(scored, decode)))
        share = max(1.0, survey.n_validated / max(1, len(survey.valid_sample)))
        return validation * share, scoring * survey.n_scored / len(scored)


def validation_rows(task: "Task", survey: Survey) -> list[Row]:
    """The rows that a run would validate on."""
    return list(task.usable(survey.valid_sample or survey.sample[: task.init.n_validated]))


# Helpers to recognize the columns of a table.


def requested_column(files: DataFiles, request: Request, field_name: str) -> Column | None:
    """The column that the user named for a field, by name or number; None if the user named none."""
    name, columns = request.columns.get(field_name), files.columns
    if name is None:
        return None
    for number, column in enumerate(columns, start=1):
        if column.name == name or str(number) == name:
            return column
    raise DataError(
        _(
            "{path}: there is no column {name} for --{field}-column. Columns: {columns}.",
            path=files.paths[0],
            name=name,
            field=field_name,
            columns=column_names(columns),
        )
    )


def text_column(files: DataFiles, columns: Sequence[Column], request: Request) -> Column | None:
    """The column that holds the text: the requested one, or the longest of those that hold text."""
    if "text" in request.columns:
        return requested_column(files, request, "text")
    texts = [column for column in columns if column.are_texts]
    texts = texts or [column for column in columns if not column.is_numbers and not column.is_metadata]
    stems = [column.normalized_name.rstrip("_0123456789") for column in texts if not column.name.isdecimal()]
    if len({*stems}) < len(stems) or {"premise", "hypothesis"} <= {*stems}:
        names = listed([column.name for column in texts])
        raise DataError(
            _(
                "{path}: there are several texts in a row ({names}). Choose one with --text-column.",
                path=files.paths[0],
                names=names,
            )
        )
    named = [column for column in texts if column.is_called_text] or texts
    return max(named, key=lambda column: column.mean_length, default=None)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a and b", "a, b, c"."""
    return _(" and ").join(names) if len(names) == 2 else ", ".join(names)


def column_names(columns: Sequence[Column]) -> str:
    """The names of columns, shortened, for an error."""
    return shortened(", ".join(column.name for column in columns))
