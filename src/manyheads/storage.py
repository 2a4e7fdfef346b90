"""Folders that are whole or not there: written aside, sealed with a SHA-256 manifest, renamed into place.

Checkpoints, bundles and cached text are such folders. A reader can tell a damaged one from a good one, and a writer
that dies half-way leaves whatever stood there before untouched. It imports nothing of ours but the errors.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manyheads.errors import ManyheadsError, TrainingError

MANIFEST = "MANIFEST.sha256"
LOCK = "lock"
# The manifest's first line seals the lines below it. Readers of before it was written skip a line that begins so.
_SEAL = "  sealed by "


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill; on leaving, it is sealed and takes the place of `path`.

    Files are on the disk before the folder has its name, and the name is before anything older is removed.
    """
    _make_folder(path.parent)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield aside
        write_manifest(aside)
        _replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file that is the old one or the new one, never a part of it, however we end."""
    aside = path.with_name(f".{path.name}.partial")
    try:
        aside.write_bytes(content)
        _fsync(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    _fsync(path.parent)


def remove_partial(parent: Path, names: str) -> None:
    """Remove what writers that died left of sealed folders with such names (a regular expression).

    A folder that had only stepped aside for its successor comes back. Nobody else may be writing there.
    """
    ours = re.compile(rf"\.(?P<name>{names})(?P<old>\.old)?\.[a-z0-9_]{{8}}")  # as mkdtemp names them
    for aside in sorted(parent.iterdir()) if parent.is_dir() else []:
        found = ours.fullmatch(aside.name)
        if found and aside.is_dir():
            before = aside / found["name"]
            if found["old"] and before.exists() and not (parent / found["name"]).exists():
                before.rename(parent / found["name"])
                _fsync(parent)
            shutil.rmtree(aside)


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
        except BlockingIOError:
            raise TrainingError(
                f"{folder} is in use by another run. Wait for it, or choose another folder with -o."
            ) from None
        yield


def write_manifest(folder: Path) -> None:
    """Write the manifest of every file in the folder and force all of it to the disk."""
    files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
    lines = "".join(f"{sha256_of(file)}  {file.name}\n" for file in files).encode()
    (folder / MANIFEST).write_bytes(f"{_SEAL}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines)
    for file in (*files, folder / MANIFEST):
        file.chmod(0o644)  # some writers keep theirs private
        _fsync(file)
    _fsync(folder)


def verify_manifest(folder: Path, error: type[ManyheadsError]) -> set[str]:
    """The names of the sealed files; raise `error`, naming all that is missing or damaged, unless they are whole.

    Files that the manifest does not list are nobody's concern: file managers and people leave some.
    """
    if not folder.exists():
        raise error(f"{folder}: there is no such folder.")
    if not folder.is_dir():
        raise error(f"{folder} is a file; a folder is wanted.")
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise error(f"{folder}: {MANIFEST} is missing, so this folder is not one of ours, or not whole.")
    digests = _read_manifest(manifest)
    faults = [f"{MANIFEST} is damaged"] if digests is None else []
    for name, digest in (digests or {}).items():
        try:
            if not (folder / name).is_file():
                faults.append(f"{name} is missing")
            elif sha256_of(folder / name) != digest:
                faults.append(f"{name} is damaged (its SHA-256 is not the one in {MANIFEST})")
        except OSError as reason:
            faults.append(f"{name} cannot be read ({reason.strerror})")
    if faults:
        raise error(f"{folder}: {'; '.join(faults)}. Copy the folder again from a good source.")
    return set(digests or {})


def _read_manifest(manifest: Path) -> dict[str, str] | None:
    """The digests by file name; None if the manifest is not as it was written."""
    try:
        content = manifest.read_bytes()
    except OSError:
        return None
    first, _, below = content.partition(b"\n")
    if first.startswith(_SEAL.encode()):
        if first != f"{_SEAL}{hashlib.sha256(below).hexdigest()}".encode():
            return None
        content = below
    lines = content.decode("utf-8", "replace").split("\n")
    matches = [re.fullmatch(r"([0-9a-f]{64})  ([^/\\]+)", line) for line in lines[:-1]]
    digests = {match[2]: match[1] for match in matches if match}
    return digests if digests and lines[-1] == "" and len(digests) == len(matches) else None


def require_files(folder: Path, sealed: set[str], required: Iterable[str], error: type[ManyheadsError]) -> None:
    """Raise `error` unless all the required files are among the sealed ones."""
    absent = [name for name in required if name not in sealed]
    if absent:
        raise error(
            f"{folder}: {MANIFEST} does not list {', '.join(absent)}. Copy the folder again from a good source."
        )


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _replace(aside: Path, path: Path) -> None:
    aside.chmod(0o755)  # mkdtemp's folders are private
    if not path.exists():
        aside.rename(path)
        _fsync(path.parent)
        return
    # A folder cannot be renamed over another: the old one steps aside first, comes back if that fails, goes last.
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    try:
        path.rename(old / path.name)
        aside.rename(path)
    except OSError:
        if (old / path.name).exists():
            (old / path.name).rename(path)
        old.rmdir()
        raise
    _fsync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they outlast a power cut: a name lives in the folder above."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _fsync(folder.parent)


def _fsync(path: Path) -> None:
    if os.name == "nt":  # Windows opens no folders, and syncs only files opened for writing
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
