"""`report.html`: one self-contained page in the run folder that shows the progress and the scores of a run.

The page is made from the recipe and the log alone, so it can be made again at any time. Style, script and figures are
in the file; it loads nothing from elsewhere. May import run and everything below it.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from manyheads.bounded_files import BoundsError, read_bounded
from manyheads.report.history import History
from manyheads.report.page import render_page
from manyheads.run import Event, Finished, Interrupted, Prepared, RunFolder, Stage, Validated

_INTERVAL = 30.0  # seconds between two versions of the page during training


def write_report(folder: Path) -> Path:
    """Write the report of a run folder from its recipe and log, and return its path."""
    return Reporter(folder).write()


def follow(events: Iterable[Event], folder: Path) -> Iterator[Event]:
    """Yield the events of a run, and keep its report up to date."""
    reporter = Reporter(folder)
    for event in events:
        reporter.update(event)
        yield event


class Reporter:
    """Keeps the report of a run up to date; reads only the entries that were added to the log since the last time."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self._history = History()
        self._log: Iterable[dict[str, object]] | None = None
        self._written = -_INTERVAL

    def update(self, event: Event) -> None:
        """Write the page if the event is important or the page is old; a failure does not stop the training."""
        is_important = isinstance(event, Stage | Prepared | Validated | Interrupted | Finished)
        if is_important or time.monotonic() - self._written >= _INTERVAL:
            with suppress(OSError):
                self.write()
            self._written = time.monotonic()

    def write(self) -> Path:
        """Write the page now; it replaces the previous one atomically."""
        if self._log is None:
            self._log = self.folder.log()
        for entry in self._log:
            self._history.add(entry)
        page = render_page(self.folder.path.resolve().name, self._recipe_text(), self._history, time.time())
        path = self.folder.report_file
        partial = path.with_name(f"{path.name}.partial")
        try:
            partial.write_text(page, "utf-8", "replace", newline="\n")
            partial.replace(path)
        except OSError:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        return path

    def _recipe_text(self) -> str:
        """The text of the recipe; empty if it is missing or too large."""
        try:
            return read_bounded(self.folder.recipe_file).decode("utf-8", "replace")
        except (FileNotFoundError, BoundsError):
            return ""
