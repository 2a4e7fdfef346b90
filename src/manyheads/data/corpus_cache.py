"""The cache: folders named by what they were made of, shared by all runs, made by whoever needs them first.

An entry is whole or it is not there: it is written aside, sealed and renamed into place. Its name holds a digest of
everything it was made of, so it cannot be stale. Delete the cache's folder, or any entry in it, to clear it.
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
from manyheads.storage import LOCK, locked, verify_manifest, write_manifest

CACHE_VARIABLE = "MANYHEADS_CACHE"  # the environment variable that says where the cache is
_ASIDE = re.compile(r"\.[a-z]+-[0-9a-f]{64}\..+")
_ABANDONED = 7 * 24 * 3600.0  # seconds after which what is still aside belongs to nobody


def content_key(parts: object) -> str:
    """A digest of plain values: as JSON they are equal exactly when they have the same key."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Cache:
    """Entries in a folder."""

    folder: Path

    @classmethod
    def beside(cls, run_folder: Path) -> "Cache":
        """The cache that runs in the same folder share, or the one that MANYHEADS_CACHE names."""
        return cls(Path(os.environ.get(CACHE_VARIABLE) or run_folder.parent / ".manyheads-cache").absolute())

    def problem(self, name: str) -> str | None:
        """What is wrong with an entry: None when it is whole, nothing to say when it is not there yet."""
        if not (self.folder / name).exists():
            return ""
        try:
            verify_manifest(self.folder / name, DataError)
        except DataError as error:
            return str(error).partition(" Copy the folder")[0]  # a cache is made anew instead
        return None

    @contextmanager
    def create(self, name: str) -> Iterator[Path]:
        """A temporary folder to fill; on leaving it becomes the entry, unless another run's whole one is there by then.

        A damaged entry is replaced.
        """
        self._open_folder()
        aside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=self.folder))
        try:
            yield aside
            write_manifest(aside)
            aside.chmod(0o755)  # mkdtemp makes it private, but others may share the cache
            with locked(self.folder, wait=True):
                if self.problem(name) is not None:
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                    aside.rename(self.folder / name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _open_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / LOCK).touch()
        except OSError as error:
            raise DataError(
                f"{self.folder}: the cache cannot be written there ({error.strerror}). "
                f"Name another place in the environment variable {CACHE_VARIABLE}."
            ) from None
        for aside in self.folder.iterdir():  # of runs that were killed
            with suppress(FileNotFoundError):  # another run's, which is in its place by now
                if _ASIDE.fullmatch(aside.name) and time.time() - aside.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(aside, ignore_errors=True)
