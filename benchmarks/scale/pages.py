"""Results pages that consist of a table and text."""

from collections.abc import Sequence
from pathlib import Path


def add_results(page: Path, head: str, rows: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Add rows to the end of the page's last table, and notes to the end of the page; a new page begins with `head`."""
    lines = (page.read_text("utf-8") if page.exists() else head).splitlines(keepends=True)
    end = 1 + max(number for number, line in enumerate(lines) if line.startswith("|"))
    page.write_text("".join([*lines[:end], *rows, *lines[end:], *notes]), encoding="utf-8")
