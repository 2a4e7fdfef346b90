"""The content-addressed cache of prepared data, shared by all runs in one parent folder.

The name of an entry contains a digest of all its inputs, so an entry is never stale. Entries are written to a temporary
folder and renamed, so an entry is complete or absent. Delete the cache folder, or any entry, to clear it.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.storage import LOCK, locked, verify_manifest, write_manifest

CACHE_VARIABLE = "MANYHEADS_CACHE"  # the environment variable with the path of the cache
_TEMPORARY_NAME = re.compile(r"\.[a-z]+-[0-9a-f]{64}\..+")
_MAX_TEMPORARY_AGE = 7 * 24 * 3600.0  # seconds; an older temporary folder was left by a killed run


def content_key(parts: object) -> str:
    """Return a digest of values that can be written as JSON; equal values have equal digests."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of cache entries."""

    folder: Path

    @classmethod
    def beside(cls, run_folder: Path) -> "Cache":
        """Return the cache shared by all runs in the same parent folder, or the cache at $MANYHEADS_CACHE."""
        return cls(Path(os.environ.get(CACHE_VARIABLE) or run_folder.parent / ".manyheads-cache").absolute())

    def problem(self, name: str) -> str | None:
        """Return None if an entry is valid, an empty string if it is absent, or a description of the damage."""
        if not (self.folder / name).exists():
            return ""
        try:
            verify_manifest(self.folder / name, DataError, with_advice=False)  # a damaged entry is made again
        except DataError as error:
            return str(error)
        return None

    @contextmanager
    def create(self, name: str) -> Iterator[Path]:
        """Yield a temporary folder to fill; on exit it becomes the entry.

        A damaged entry is replaced. If another run has created a valid entry in the meantime, that one is kept.
        """
        self._open_folder()
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=self.folder))
        try:
            yield temporary
            write_manifest(temporary)
            temporary.chmod(0o755)  # mkdtemp makes it private, but other users may share the cache
            with locked(self.folder, wait=True):
                if self.problem(name) is not None:
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                    temporary.rename(self.folder / name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _open_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / LOCK).touch()
        except OSError as error:
            raise DataError(
                _(
                    "{folder}: the cache cannot be written ({reason}). Set the environment variable {variable} to "
                    "another folder.",
                    folder=self.folder,
                    reason=error.strerror,
                    variable=CACHE_VARIABLE,
                )
            ) from None
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another run has renamed or removed it
                if _TEMPORARY_NAME.fullmatch(path.name) and time.time() - path.stat().st_mtime > _MAX_TEMPORARY_AGE:
                    shutil.rmtree(path, ignore_errors=True)
