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

from manyheads.errors import ManyheadsError, TrainingError

MANIFEST = "MANIFEST.sha256"
LOCK = "lock"


@contextmanager
def sealed_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill; on leaving, it is sealed and takes the place of `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield aside
        seal(aside)
        _replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a folder to ourselves for a while; the system lets go of it however we end."""
    if os.name == "nt":  # Windows has no fcntl
        yield
        return
    import fcntl

    with (folder / LOCK).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TrainingError(
                f"{folder} is in use by another run. Wait for it, or choose another folder with -o."
            ) from None
        yield


def seal(folder: Path) -> None:
    """Write the manifest of every file in the folder and force all of it to the disk."""
    files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
    lines = [f"{digest_of(file)}  {file.name}\n" for file in files]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")
    for file in (*files, folder / MANIFEST):
        file.chmod(0o644)  # some writers keep theirs private
        _force_to_disk(file)
    _force_to_disk(folder)


def check_seal(folder: Path, error: type[ManyheadsError]) -> set[str]:
    """The names of the sealed files; raise `error`, naming all that is missing or damaged, unless they are whole."""
    if not folder.exists():
        raise error(f"{folder}: there is no such folder.")
    if not folder.is_dir():
        raise error(f"{folder} is a file; a folder is wanted.")
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise error(f"{folder}: {MANIFEST} is missing, so this folder is not one of ours, or not whole.")
    lines = manifest.read_text("utf-8", "replace").split("\n")
    digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines) if digest}
    faults = []
    for name, digest in digests.items():
        file = folder / name
        if not name or Path(name).name != name:
            faults.append(f"{MANIFEST} is damaged")
        elif not file.is_file():
            faults.append(f"{name} is missing")
        elif digest_of(file) != digest:
            faults.append(f"{name} is damaged (its SHA-256 is not the one in {MANIFEST})")
    if faults:
        raise error(f"{folder}: {'; '.join(dict.fromkeys(faults))}. Copy the folder again from a good source.")
    return set(digests)


def check_files(folder: Path, sealed: set[str], required: Iterable[str], error: type[ManyheadsError]) -> None:
    """Raise `error` unless all the required files are among the sealed ones."""
    absent = [name for name in required if name not in sealed]
    if absent:
        raise error(
            f"{folder}: {MANIFEST} does not list {', '.join(absent)}. Copy the folder again from a good source."
        )


def digest_of(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _replace(aside: Path, path: Path) -> None:
    if not path.exists():
        aside.rename(path)
    else:
        # A folder cannot be renamed over another: the old one steps aside first, comes back if that fails, goes last.
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        path.rename(old / path.name)
        try:
            aside.rename(path)
        except OSError:
            (old / path.name).rename(path)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    path.chmod(0o755)  # mkdtemp's folders are private
    _force_to_disk(path.parent)


def _force_to_disk(path: Path) -> None:
    if os.name == "nt":  # Windows opens no folders, and syncs only files opened for writing
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
