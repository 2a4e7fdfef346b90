"""Output of commands: standard output, or a file that appears only when it is complete."""

import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

import click

from manyheads.errors import BundleError, DataError
from manyheads.messages import _
from manyheads.storage import MANIFEST, naming_full_disk

# A Chinese character with the closing punctuation after it, which must not begin a line, or a word with its spaces.
_CLOSING = "[，。、；：？！）》”」…]*"
_BREAKABLE = re.compile(
    rf"[（《“「]*[\u3000-\u9fff\uff00-\uffef]{_CLOSING}\s*|[^\s\u3000-\u9fff\uff00-\uffef]+{_CLOSING}\s*|\s+"
)


@contextmanager
def open_output(path: Path | None, *reading: str, keep_partial: bool = False) -> Iterator[TextIO]:
    """Open standard output, or a file that is written under a temporary name and renamed at the end.

    If the block fails, the temporary file is removed; with `keep_partial` it is kept unless it is empty, and its name
    is printed. `reading` are the input files: writing over one of them is an error.
    """
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        with naming_full_disk(_("standard output")):
            yield sys.stdout
            sys.stdout.flush()
        return
    target = path.resolve()  # the target of a link, so that the link stays
    if target.is_dir():
        raise DataError(_("{path} is a folder. Choose a file to write to.", path=path))
    if target in (Path(file).resolve() for file in reading):
        raise DataError(_("{path} is the file being read. Choose another output file.", path=path))
    if target.exists() and not target.is_file():  # a device or a pipe
        with naming_full_disk(path), target.open("w", encoding="utf-8") as stream:
            yield stream
        return
    check_folder_of(path)
    aside = target.with_name(f"{target.name}.{uuid4().hex[:8]}.partial")
    try:
        # A full disk may fail only when the file is closed.
        with naming_full_disk(path), aside.open("x", encoding="utf-8") as stream:
            yield stream
        aside.replace(target)
    except BaseException:
        _clean_up(aside, keep=keep_partial)
        raise


def _clean_up(aside: Path, *, keep: bool) -> None:
    if keep and aside.exists() and aside.stat().st_size:
        click.echo(_("The output so far is in {aside}.", aside=aside), err=True)
    else:
        aside.unlink(missing_ok=True)


def check_folder_of(path: Path) -> None:
    """Raise an error if no file can be written in the folder of `path`."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise DataError(_("{path}: the folder {folder} does not exist.", path=path, folder=path.parent))
    if not os.access(folder, os.W_OK):
        raise DataError(_("{path} cannot be written: permission denied. Choose another file.", path=path))


def check_output_folder(out: Path, bundle: Path, *, overwrite: bool) -> None:
    """Raise an error if writing a new bundle would replace something else."""
    if out.resolve() == bundle.resolve():
        raise BundleError(_("{out} is the input bundle. Choose another folder with -o.", out=out))
    if out.exists() and not (overwrite and (out / MANIFEST).is_file()):
        if overwrite:
            raise BundleError(_("{out} already exists and is not a bundle. Choose another folder with -o.", out=out))
        raise BundleError(_("{out} already exists. Choose another folder with -o, or add --overwrite.", out=out))


def program_name() -> str:
    """Return `manyheads` if the shell finds it, else the path it was started with, as `make` does."""
    started_as = Path(sys.argv[0])
    if shutil.which("manyheads") is not None or started_as.name != "manyheads":
        return "manyheads"
    return os.path.relpath(started_as)


def quoted(path: Path | str) -> str:
    """Return a path as a word of a command to copy: quoted if a shell would split it, as it does at a space."""
    return shlex.quote(str(path)) if re.search(r"[^\w@%+=:,./-]", str(path)) else str(path)


def cell_width(text: str) -> int:
    """Return how many columns of a terminal the text takes: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def padded(text: str, width: int) -> str:
    """Return the text with spaces after it, up to `width` columns."""
    return text + " " * max(0, width - cell_width(text))


def right_aligned(text: str, width: int) -> str:
    """Return the text with spaces before it, up to `width` columns."""
    return " " * max(0, width - cell_width(text)) + text


def wrap_cells(text: str, width: int) -> list[str]:
    """Break text into lines of at most `width` columns, at spaces or beside a Chinese character."""
    lines, line = [], ""
    for part in _BREAKABLE.findall(text):
        if line and cell_width(line + part.rstrip()) > width:
            lines.append(line.rstrip())
            line = part.lstrip()
        else:
            line += part
    return [*lines, line.rstrip()] if line.strip() else lines
