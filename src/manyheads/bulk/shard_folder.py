"""`ShardFolder`: the folder of a bulk job.

    job.json             what the answers depend on: bundle, input, options, lines per shard
    000000.txt           the answers of a shard; the name is the same however often the job is run
    records/000000.json  the size and the SHA-256 of that file, and remarks on its lines

Both files of a shard are written under a temporary name and renamed, the record first. A shard is finished if both
exist and agree; whoever wrote it, its bytes are the same. Workers do not wait for the disk: after a power cut the
digest tells which shards are damaged, and `sync` writes all of them to the disk before the job counts as done.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from manyheads.bounded_files import read_json_object
from manyheads.errors import JobError, ManyheadsError, TrainingError
from manyheads.messages import _
from manyheads.storage import LOCK, atomic_write, locked, naming_full_disk, sha256_of, sync

FORMAT = 1  # of job.json
_JOB = "job.json"
_RECORDS = "records"
_PARTIAL = ".partial"
_MIN_DIGITS = 6
_MAX_RECORD_BYTES = 1 << 28

# Writes the answers of a shard, and returns the remarks on them as JSON values.
WriteAnswers = Callable[[TextIO], Mapping[str, Any]]


class ShardFolder:
    """The files of one job."""

    def __init__(self, path: Path, n_shards: int, suffix: str = ".txt") -> None:
        self.path, self.n_shards, self.suffix = path, n_shards, suffix
        self._n_digits = max(_MIN_DIGITS, len(str(max(0, n_shards - 1))))  # a shell sorts names by their characters

    def file(self, number: int) -> Path:
        """Return the path of a shard's answers."""
        return self.path / f"{number:0{self._n_digits}d}{self.suffix}"

    def _record_file(self, number: int) -> Path:
        return self.path / _RECORDS / f"{number:0{self._n_digits}d}.json"

    @contextmanager
    def open(self, job: Mapping[str, Any]) -> Iterator[None]:
        """Hold the lock of the folder of this job; create it, or raise JobError if it belongs to another one."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise JobError(
                _("{path} is a file, not a folder. Choose another folder for the shards.", path=self.path)
            ) from None
        has_job = (self.path / _JOB).exists()
        if not has_job and any(file.name != LOCK for file in self.path.iterdir() if not file.name.endswith(_PARTIAL)):
            raise JobError(
                _("{path} is not empty, and it is not a folder of shards. Choose a new folder.", path=self.path)
            )
        try:
            with locked(self.path):
                self._remove_partial()
                if has_job:
                    self._check_job(job)
                else:
                    atomic_write(self.path / _JOB, json.dumps(job, ensure_ascii=False, indent=2).encode() + b"\n")
                (self.path / _RECORDS).mkdir(exist_ok=True)
                yield
                self._remove_partial()
        except TrainingError:
            raise JobError(
                _("{path} is in use by another process. Wait for it, or choose another folder.", path=self.path)
            ) from None

    def _remove_partial(self) -> None:
        """Remove what killed writers left."""
        for folder in (self.path, self.path / _RECORDS):
            for file in folder.glob(f".*{_PARTIAL}"):
                file.unlink(missing_ok=True)

    def _check_job(self, job: Mapping[str, Any]) -> None:
        known = read_json_object(self.path / _JOB, JobError)
        if known.get("format") != FORMAT:
            raise JobError(_("{path} was made by another version of manyheads. Choose a new folder.", path=self.path))
        for name, value in job.items():
            if known.get(name) != value:
                raise JobError(
                    _(
                        "{path} {difference}. Choose a new folder.",
                        path=self.path,
                        difference=_difference(name, known.get(name), value),
                    )
                )

    def is_finished(self, number: int) -> bool:
        """Return whether a shard is complete and undamaged."""
        file = self.file(number)
        try:
            record = self.record(number)
            return file.stat().st_size == record["bytes"] and sha256_of(file) == record["sha256"]
        except (OSError, ManyheadsError, LookupError):
            return False

    def record(self, number: int) -> dict[str, Any]:
        """Return the record of a finished shard."""
        return read_json_object(self._record_file(number), JobError, _MAX_RECORD_BYTES)

    def write(self, number: int, write_answers: WriteAnswers) -> None:
        """Write a shard; other processes may write the same one meanwhile."""
        file = self.file(number)
        temporary = file.with_name(f".{file.name}.{uuid4().hex[:8]}{_PARTIAL}")
        with naming_full_disk(file):
            try:
                with temporary.open("w", encoding="utf-8", newline="") as stream:
                    remarks = write_answers(stream)
                record = {"bytes": temporary.stat().st_size, "sha256": sha256_of(temporary), "remarks": remarks}
                self._write_record(number, json.dumps(record, ensure_ascii=False).encode())
                temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)

    def _write_record(self, number: int, content: bytes) -> None:
        file = self._record_file(number)
        temporary = file.with_name(f".{file.name}.{uuid4().hex[:8]}{_PARTIAL}")
        try:
            temporary.write_bytes(content)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)

    def sync(self) -> None:
        """Write all shards to the disk."""
        for number in range(self.n_shards):
            with naming_full_disk(self.file(number)):
                sync(self.file(number))
                sync(self._record_file(number))
        sync(self.path / _RECORDS)
        sync(self.path)

    def join(self, stream: TextIO) -> None:
        """Copy all shards in order to a stream."""
        for number in range(self.n_shards):
            with self.file(number).open("rb") as file:
                shutil.copyfileobj(file, stream.buffer)


def _difference(name: str, known: Any, given: Any) -> str:
    """Say how a folder differs from the job that is to continue there."""
    if name == "bundle":
        return _("has answers of another bundle")
    if name == "input":
        digests = [file["sha256"] for file in known or []]
        changed = ", ".join(file["name"] for file in given if file["sha256"] not in digests)
        if changed:
            return _("has answers to other text: {files} changed", files=changed)
        return _("has answers to other files")
    if name == "options" and isinstance(known, dict):
        options = ", ".join(key.replace("_", "-") for key in {**known, **given} if known.get(key) != given.get(key))
        return _("has answers that were made with other options: {options}", options=options)
    return _("was made with {option} {known}, not {given}", option=name.replace("_", "-"), known=known, given=given)
