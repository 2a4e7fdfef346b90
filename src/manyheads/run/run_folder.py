"""`RunFolder`: the files of a run, and the reader of its log.

recipe.toml      the resolved recipe
data.json        format number; digests of the training files; name of the cached text
environment.json number of processes and threads, and version of PyTorch, that the run started with
tokenizer.model
log.jsonl        one event per line
checkpoints/     everything needed to resume, at the newest two saved steps
snapshots/       weights of the last saved steps, for the final average; or of all, for the timeline of heads
best/            weights of the best validation, if the recipe has a patience
heads.jsonl      the timeline of heads, if it was computed
report.html
lens.html        the lens page of a few texts, if it was written
lock
bundle/          the result
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from manyheads.bounded_files import read_json_object
from manyheads.errors import DataError, RecipeError
from manyheads.messages import _
from manyheads.settings import read_toml
from manyheads.storage import DISK_FULL, LOCK, MANIFEST, is_locked
from manyheads.training import Checkpoints

FORMAT = 3  # of run folders; older ones are refused
LogEntry = dict[str, Any]

_CHUNK = 1 << 20  # bytes
_MAX_LINE = 1 << 24  # bytes
_MAX_DATA_BYTES = 100_000_000  # it has a digest for each file of a recipe
_ENTRY_START = b'{"event"'


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, by its path."""

    path: Path

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.toml"

    @property
    def data_file(self) -> Path:
        """The format number, and the identity of the training data."""
        return self.path / "data.json"

    @property
    def environment_file(self) -> Path:
        """The number of threads and the version of PyTorch that the run started with."""
        return self.path / "environment.json"

    @property
    def tokenizer_file(self) -> Path:
        """The trained tokenizer."""
        return self.path / "tokenizer.model"

    @property
    def log_file(self) -> Path:
        """The log of events, one JSON object per line."""
        return self.path / "log.jsonl"

    @property
    def report_file(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    @property
    def lens_file(self) -> Path:
        """The lens page of a few texts."""
        return self.path / "lens.html"

    @property
    def timeline_file(self) -> Path:
        """The roles of all heads at each snapshot."""
        return self.path / "heads.jsonl"

    @property
    def lock_file(self) -> Path:
        """The file whose lock a running process holds."""
        return self.path / LOCK

    @property
    def bundle(self) -> Path:
        """The bundle of a finished run."""
        return self.path / "bundle"

    @property
    def best(self) -> Path:
        """The weights of the best validation."""
        return self.path / "best"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> Path:
        """The folder of snapshots."""
        return self.path / "snapshots"

    def step_folders(self) -> list[Path]:
        """Return all checkpoints and snapshots, whole or damaged."""
        return sorted([*self.checkpoints.glob("step-*"), *self.snapshots.glob("step-*")])

    @property
    def newest_step(self) -> int | None:
        """The step of the newest checkpoint."""
        return Checkpoints(self.path, 1).newest

    @property
    def is_started(self) -> bool:
        """Whether there is a checkpoint or a bundle; from then on the recipe is fixed."""
        return self.bundle.exists() or self.newest_step is not None

    @property
    def is_running(self) -> bool:
        """Whether a process is training in this folder now."""
        return is_locked(self.path)

    @property
    def exists(self) -> bool:
        """Whether this is a run folder: it has a log or a whole checkpoint."""
        return self.log_file.is_file() or any(self.checkpoints.glob(f"step-*/{MANIFEST}"))

    def claim(self) -> None:
        """Create the folder; refuse a folder that contains other files, so that none is overwritten."""
        if self.path.exists() and not self.path.is_dir():
            raise RecipeError(_("{path} is a file; a run needs a folder. Choose another with -o.", path=self.path))
        if any("\ud800" <= character <= "\udfff" for character in str(self.path)):  # safetensors could not read from it
            raise RecipeError(
                _("{path}: the name of this folder is not in UTF-8. Choose another with -o.", path=self.path)
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()) and not self.exists:
                raise RecipeError(
                    _("{path} contains other files and is not a run folder. Choose another with -o.", path=self.path)
                )
            self.log_file.touch()
        except OSError as error:
            if error.errno in DISK_FULL:
                raise
            raise RecipeError(
                _(
                    "{path} cannot be written ({reason}). Choose another folder with -o.",
                    path=self.path,
                    reason=error.strerror,
                )
            ) from None

    def check_format(self) -> None:
        """Refuse a folder written by an older version of manyheads."""
        data = self.read_data()
        if data is not None and data.get("format") != FORMAT:
            raise RecipeError(
                _(
                    "{path} was written by another version of manyheads (run format {format}; this version reads "
                    "{own_format}). Train into another folder with -o.",
                    path=self.path,
                    format=data.get("format", "1 or 2"),
                    own_format=FORMAT,
                )
            )

    def read_data(self) -> dict[str, Any] | None:
        """Return the content of data.json, or None if it is missing or damaged."""
        try:
            data = read_json_object(self.data_file, DataError, _MAX_DATA_BYTES)
        except DataError:
            return None
        return data if isinstance(data.get("text"), str) and isinstance(data.get("files"), dict) else None

    def read_recipe_table(self) -> dict[str, Any]:
        """Return the tables of the resolved recipe."""
        return read_toml(self.recipe_file)

    def log(self) -> "LogReader":
        """Return a reader of the log; raise a RecipeError if there is none."""
        if not self.log_file.is_file():
            raise RecipeError(
                _("{path} is not a run folder: it has no {name}.", path=self.path, name=self.log_file.name)
            )
        return LogReader(self.log_file)


class LogReader:
    """Reads log.jsonl: each iteration yields the entries that were appended since the previous one.

    A log may be long, truncated by a crash or a full disk, and still growing. Lines that are not JSON objects, or are
    longer than 16 MB, are counted in `n_unreadable` and skipped; an unfinished last line is left for the next time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_unreadable = 0
        self._n_read = 0  # bytes

    def __iter__(self) -> Iterator[LogEntry]:
        with self.path.open("rb") as log:
            log.seek(self._n_read)
            while content := log.read(_CHUNK):
                content += log.readline(_MAX_LINE)
                *lines, unfinished = content.split(b"\n")
                self._n_read += len(content) - len(unfinished)
                yield from self._parse(lines)
                if len(unfinished) >= _MAX_LINE:
                    self._skip_line(log)
                elif unfinished:
                    break

    def _skip_line(self, log: BinaryIO) -> None:
        """Skip the rest of a line that is too long for memory."""
        while (part := log.readline(_MAX_LINE)) and not part.endswith(b"\n"):
            pass
        self._n_read = log.tell()
        self.n_unreadable += 1

    def of_kind(self, *events: str) -> Iterator[LogEntry]:
        """Yield the entries of these events."""
        return (entry for entry in self if entry.get("event") in events)

    def _parse(self, lines: Sequence[bytes]) -> Iterator[LogEntry]:
        try:  # parsing all lines at once takes half the time of parsing each
            entries = json.loads(b"[" + b",".join(lines) + b"]")
        except (ValueError, RecursionError):
            entries = [_parse_line(line) for line in lines]
        for entry in entries:
            if isinstance(entry, dict):
                yield entry
            else:
                self.n_unreadable += 1


def _parse_line(line: bytes) -> object:
    """Parse one line; if a truncated entry and a whole one share it, return the whole one, and None on failure."""
    for text in (line, line[max(0, line.rfind(_ENTRY_START)) :]):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    return None
