"""Where answers are written: standard output, or a file that appears when it is whole."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

import click

from manyheads.errors import BundleError, DataError
from manyheads.storage import MANIFEST


@contextmanager
def open_output(path: Path | None, *reading: str) -> Iterator[TextIO]:
    """A stream to write to. A file is written aside and renamed at the end; if that is never reached, it says where.

    `reading` names the input, none of which may be the same file: it would be replaced by its own translation.
    """
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        return
    target = path.resolve()  # through links, which stay
    if target.is_dir():
        raise DataError(f"{path} is a folder. Name a file to write.")
    if target in (Path(one).resolve() for one in reading):
        raise DataError(f"{path} is the file being read. Name another to write.")
    if target.exists() and not target.is_file():  # a device or a pipe
        with target.open("w", encoding="utf-8") as stream:
            yield stream
        return
    if not target.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"{path} cannot be written: permission denied. Name another place.")
    aside = target.with_name(f"{target.name}.{uuid4().hex[:8]}.partial")
    with aside.open("x", encoding="utf-8") as stream:
        try:
            yield stream
        except BaseException:
            stream.flush()
            if aside.stat().st_size:
                click.echo(f"What was done so far is in {aside}.", err=True)
            else:
                aside.unlink()
            raise
    aside.replace(target)


def check_output_folder(out: Path, bundle: Path, *, overwrite: bool) -> None:
    """Say so where a bundle made from another one would fall upon something that is there."""
    if out.resolve() == bundle.resolve():
        raise BundleError(f"{out} is the bundle itself. Name another folder with -o.")
    if out.exists() and not (overwrite and (out / MANIFEST).is_file()):
        told = "Choose another folder with -o" + ("." if overwrite else ", or add --overwrite.")
        raise BundleError(f"{out} is there already{' and is no bundle' if overwrite else ''}. {told}")
