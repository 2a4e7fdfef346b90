"""Folders that are whole or not there: written aside, sealed with a SHA-256 manifest, renamed into place.

Checkpoints and bundles are such folders. A reader can tell a damaged one from a good one, and a writer that dies
half-way leaves whatever stood there before untouched. It imports nothing of ours but the errors.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manyheads.errors import ManyheadsError

MANIFEST = "MANIFEST.sha256"


@contextmanager
def sealed_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill; on leaving, it is sealed and takes the place of `path` in one rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield aside
        seal(aside)
        _replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def seal(folder: Path) -> None:
    """Write the manifest of every file in the folder and force all of it to the disk."""
    files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
    lines = [f"{_digest(file)}  {file.name}\n" for file in files]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")
    for file in (*files, folder / MANIFEST, folder):
        _force_to_disk(file)


def check_seal(folder: Path, required: Iterable[str], error: type[ManyheadsError]) -> None:
    """Raise `error`, naming every missing or damaged file, unless the folder is as it was sealed."""
    if not folder.is_dir():
        raise error(f"{folder}: there is no such folder.")
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise error(f"{folder}: {MANIFEST} is missing, so this folder is not one of ours, or not whole.")
    digests = {
        name: digest
        for digest, _, name in (line.partition("  ") for line in manifest.read_text("utf-8", "replace").split("\n"))
        if name
    }
    faults = [f"{MANIFEST} does not list {name}" for name in required if name not in digests]
    for name, digest in digests.items():
        file = folder / name
        if Path(name).name != name:
            faults.append(f"{MANIFEST} is damaged")
        elif not file.is_file():
            faults.append(f"{name} is missing")
        elif _digest(file) != digest:
            faults.append(f"{name} is damaged (its SHA-256 is not the one in {MANIFEST})")
    if faults:
        raise error(f"{folder}: {'; '.join(faults)}. Copy the folder again from a good source.")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _replace(aside: Path, path: Path) -> None:
    if path.exists():
        # A folder cannot be renamed over another: the old one steps aside first and goes last.
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        path.rename(old / path.name)
        aside.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        aside.rename(path)
    path.chmod(0o755)  # mkdtemp's folders are private
    _force_to_disk(path.parent)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
