"""`report.html`: one self-contained page in the run folder that shows how the training goes and how it ended.

It is made of the recipe and the log alone, so it can be made again at any time. Nothing is loaded from elsewhere:
style, script and figures are in the file.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from manyheads.errors import RecipeError
from manyheads.report.history import History
from manyheads.report.page import render_page
from manyheads.run import Event

REPORT = "report.html"
_LOG = "log.jsonl"
_RECIPE = "recipe.toml"
_EVERY = 30.0  # seconds of training between two pages
_IMMEDIATE = frozenset({"Stage", "Prepared", "Validated", "Interrupted", "Finished"})


def write_report(folder: Path) -> Path:
    """Make the page of a run folder from its recipe and log; where it is."""
    return Reporter(folder).write()


def follow(events: Iterable[Event], folder: Path) -> Iterator[Event]:
    """Yield the events of a run, and keep its report.html up to date."""
    reporter = Reporter(folder)
    for event in events:
        reporter.update(type(event).__name__)
        yield event


class Reporter:
    """Keeps the page of a run up to date, reading only what its log gained since the last time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._history = History()
        self._n_read = 0
        self._written = -_EVERY

    def update(self, event: str) -> None:
        """Write the page if an event of this name calls for it; a page that cannot be written stops no training."""
        if event in _IMMEDIATE or time.monotonic() - self._written >= _EVERY:
            with suppress(OSError):
                self.write()
            self._written = time.monotonic()

    def write(self) -> Path:
        """Write the page now; it appears when it is whole."""
        self._read_log()
        recipe = self.folder / _RECIPE
        text = recipe.read_text("utf-8", "replace") if recipe.exists() else ""
        page = render_page(self.folder.resolve().name, text, self._history, time.time())
        path = self.folder / REPORT
        aside = path.with_name(f"{REPORT}.partial")
        try:
            aside.write_text(page, "utf-8", "replace", newline="\n")
            aside.replace(path)
        except OSError:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
        return path

    def _read_log(self) -> None:
        path = self.folder / _LOG
        if not path.is_file():
            raise RecipeError(f"{self.folder} is not the folder of a run: it has no {_LOG}.")
        with path.open("rb") as log:
            log.seek(self._n_read)
            while lines := log.readlines(1 << 20):
                if not lines[-1].endswith(b"\n"):  # still being written: for the next time
                    lines.pop()
                self._n_read += sum(map(len, lines))
                self._history.add_lines(lines)
