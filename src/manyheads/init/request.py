"""What the user says of some data, and what was found of it: a task, its settings, its columns, and reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from manyheads.data import CleanSettings
from manyheads.errors import DataError

_KINDS = {"translate": "seq2seq"}  # the tasks that the command line calls otherwise than a recipe
_FIELDS = {"seq2seq": ("source", "target"), "classify": ("text", "label"), "tag": ("text", "tags", "label")}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user says of the data."""

    task: str = ""  # as the command line calls it; "" for what the data looks like
    columns: Mapping[str, str] = field(default_factory=dict)  # of a field, where they are told
    direction: tuple[str, str] = ("", "")  # languages, where they are told

    @property
    def reason(self) -> str:
        """How the user said what the task is."""
        return f"as --task {self.task} says" if self.task else "as the options say"

    @property
    def kind(self) -> str:
        """The task as a recipe names it, where options tell it; "" where they do not."""
        if self.task:
            return _KINDS.get(self.task, self.task)
        if any(self.direction) or {"source", "target"} & {*self.columns}:
            return "seq2seq"
        if "tags" in self.columns:
            return "tag"
        return "classify" if "label" in self.columns else ""

    def check_columns(self) -> None:
        """Refuse a column that the task has no use for."""
        known = _FIELDS.get(self.kind, ("text",))
        for name in self.columns:
            if name not in known:
                options = " and ".join(f"--{known_name}-column" for known_name in known)
                raise DataError(f"--{name}-column is not for {cli_name(self.kind)}, which has {options}.")


@dataclass(frozen=True)
class TaskGuess:
    """What the training files are: a kind of task, its settings, which columns, and reason."""

    kind: str
    reason: str
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    clean: CleanSettings = field(default_factory=CleanSettings)


def cli_name(kind: str) -> str:
    """What the command line calls a task."""
    return next((name for name, other in _KINDS.items() if other == kind), kind)
