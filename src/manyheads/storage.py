"""Atomic folders with SHA-256 manifests, locks, and the cache folder of this user.

Checkpoints, bundles and cache entries are folders written by `atomic_folder`: the files go into a temporary folder, a
manifest lists their digests, and a rename publishes it. A reader detects damage, and a writer that dies leaves the
previous version untouched.
"""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from manyheads.bounded_files import BoundsError, read_bounded
from manyheads.errors import ManyheadsError, TrainingError
from manyheads.messages import _

# No space, over the user's quota, over the file size limit.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MANIFEST = "MANIFEST.sha256"
LOCK = "lock"
# The manifest's first line is the digest of the lines below it.
_SEAL = "  sealed by "
_MAX_MANIFEST_BYTES = 1_000_000
_MAX_FAULTS = 10  # listed in one error
# A file in the folder itself, with a name that can be printed.
_MANIFEST_LINE = re.compile(r"([0-9a-f]{64})  (?!\.{1,2}$)([^/\\\x00-\x1f\x7f]{1,255})")


@contextmanager
def naming_full_disk(path: Path | str) -> Iterator[None]:
    """Name `path` in the OSError of a full disk, which otherwise names a temporary file or none at all."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; on exit, write its manifest and rename it to `path`.

    The files are synced before the rename, and the rename is synced before an older folder at `path` is deleted.
    """
    with naming_full_disk(path):
        _make_folder(path.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield temporary
            write_manifest(temporary)
            _replace(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part, even after a crash."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        try:
            temporary.write_bytes(content)
            sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)
    except OSError as error:  # it names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None


def remove_partial(parent: Path, names: str) -> None:
    """Remove the temporary folders of interrupted writers whose target name matches the regular expression `names`.

    If a writer died between moving the old folder aside and publishing the new one, the old folder is restored. The
    caller must hold the lock: a writer at work would lose its folder.
    """
    temporary_name = re.compile(rf"\.(?P<name>{names})(?P<old>\.old)?\.[a-z0-9_]{{8}}")  # as mkdtemp names them
    for temporary in sorted(parent.iterdir()) if parent.is_dir() else []:
        match = temporary_name.fullmatch(temporary.name)
        if match and temporary.is_dir():
            previous = temporary / match["name"]
            if match["old"] and previous.exists() and not (parent / match["name"]).exists():
                previous.rename(parent / match["name"])
                sync(parent)
            shutil.rmtree(temporary)


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; the operating system releases it if the process dies.

    If another process holds it, raise a TrainingError, or wait for it.
    """
    path = folder / LOCK
    # A generator may be closed by another thread than the one that started it.
    lock = FileLock(path, timeout=-1 if wait else 0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        holder = _lock_holder(path)
        raise TrainingError(
            _(
                "{folder} is in use by another run{holder}. Wait for it, or choose another folder with -o.",
                folder=folder,
                holder=holder,
            )
        ) from None
    try:
        with suppress(OSError):  # only for the message above; Windows does not let others read a locked file
            path.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock of the folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True


def _lock_holder(path: Path) -> str:
    with suppress(OSError, ValueError):
        return _(" (process {id})", id=int(path.read_text(encoding="ascii")))
    return ""


def user_cache_folder(name: str) -> Path:
    """Return the folder `name` in this user's cache folder for manyheads; it may not exist yet."""
    # If HOME is unset and the user has no entry in /etc/passwd, as in some containers, platformdirs raises an error;
    # its older versions return "~/.cache", which would be a folder named "~" here.
    with suppress(RuntimeError):
        folder = user_cache_path("manyheads", appauthor=False)
        if folder.is_absolute():
            return folder / name
    return Path(tempfile.gettempdir()) / f"manyheads-{os.getuid()}" / name


def write_manifest(folder: Path) -> None:
    """Write the manifest of all files in the folder, and sync them to disk."""
    files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
    lines = "".join(f"{sha256_of(file)}  {file.name}\n" for file in files).encode()
    (folder / MANIFEST).write_bytes(f"{_SEAL}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines)
    for file in (*files, folder / MANIFEST):
        file.chmod(0o644)  # safetensors writes files that only the owner can read
        sync(file)
    sync(folder)


def verify_manifest(folder: Path, error: type[ManyheadsError], *, with_advice: bool = True) -> set[str]:
    """Return the names of the files in the manifest; raise `error` with all missing and damaged files if there are any.

    Files that the manifest does not list are ignored: file managers leave some.
    """
    if not folder.exists():
        raise error(_("{folder}: there is no such folder.", folder=folder))
    if not folder.is_dir():
        raise error(_("{folder} is a file, not a folder.", folder=folder))
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise error(
            _(
                "{folder}: {manifest} is missing: manyheads did not write this folder, or it is incomplete.",
                folder=folder,
                manifest=MANIFEST,
            )
        )
    digests = _read_manifest(manifest)
    faults = [_("{name} is damaged", name=MANIFEST)] if digests is None else []
    for name, digest in (digests or {}).items():
        try:
            if not (folder / name).is_file():
                faults.append(_("{name} is missing", name=name))
            elif sha256_of(folder / name) != digest:
                faults.append(
                    _("{name} is damaged (its SHA-256 is not the one in {manifest})", name=name, manifest=MANIFEST)
                )
        except OSError as reason:
            faults.append(_("{name} cannot be read ({reason})", name=name, reason=reason.strerror))
    if len(faults) > _MAX_FAULTS:
        faults[_MAX_FAULTS:] = [_("and {n_more:,} more", n_more=len(faults) - _MAX_FAULTS)]
    if faults:
        fault = _("{folder}: {faults}.", folder=folder, faults=_("; ").join(faults))
        raise error(_("{fault} Copy the folder again from a good source.", fault=fault) if with_advice else fault)
    return set(digests or {})


def _read_manifest(manifest: Path) -> dict[str, str] | None:
    """Return the digests by file name, or None if the manifest is damaged."""
    try:
        content = read_bounded(manifest, _MAX_MANIFEST_BYTES)
    except (OSError, BoundsError):
        return None
    first, _end, below = content.partition(b"\n")
    if first.startswith(_SEAL.encode()):
        if first != f"{_SEAL}{hashlib.sha256(below).hexdigest()}".encode():
            return None
        content = below
    lines = content.decode("utf-8", "replace").split("\n")
    matches = [_MANIFEST_LINE.fullmatch(line) for line in lines[:-1]]
    digests = {match[2]: match[1] for match in matches if match}
    return digests if digests and lines[-1] == "" and len(digests) == len(matches) else None


def require_files(folder: Path, listed: set[str], required: Iterable[str], error: type[ManyheadsError]) -> None:
    """Raise `error` unless the manifest lists all required files."""
    absent = [name for name in required if name not in listed]
    if absent:
        raise error(
            _(
                "{folder}: {manifest} does not list {names}. Copy the folder again from a good source.",
                folder=folder,
                manifest=MANIFEST,
                names=", ".join(absent),
            )
        )


def sha256_of(file: Path) -> str:
    """Return the SHA-256 digest of a file in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _replace(temporary: Path, path: Path) -> None:
    temporary.chmod(0o755)  # mkdtemp makes private folders
    if not path.exists():
        temporary.rename(path)
        sync(path.parent)
        return
    # A folder cannot be renamed over another: move the old one aside, restore it on failure, delete it last.
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    try:
        path.rename(old / path.name)
        temporary.rename(path)
    except OSError:
        if (old / path.name).exists():
            (old / path.name).rename(path)
        old.rmdir()
        raise
    sync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync each parent: without that, a power cut may lose the new folder."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(path: Path) -> None:
    """Write a file or the entries of a folder to the disk."""
    if os.name == "nt":  # Windows cannot open folders, and syncs only files opened for writing
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
