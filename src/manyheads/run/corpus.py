"""`Corpus`: the rows that a recipe's data settings describe, for training, validation and test."""

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from manyheads import corpora
from manyheads.data import Cleaner, CleanSettings, Texts
from manyheads.data.cleaning import BAD_ENCODING, EMPTY, KEPT, Fields, rejection_reason, tolerate_bad_lines
from manyheads.data.corpus_cache import content_key
from manyheads.data.split import Rows, Split, without
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.run.held_out import assign_folds, hold_out, hold_out_by_label
from manyheads.run.recipe import DataSettings, MixSettings, Recipe
from manyheads.settings import to_table
from manyheads.storage import sha256_of
from manyheads.tasks import DEFAULT_KIND, TASKS, Task, TaskSettings
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row

COUNTS = "counts.json"  # beside cached text: the number of rows dropped for each reason, and the corpus boundaries
_FORMAT = 6  # of cached text; increase it when the same files give other rows
_BUILTIN_TEST = 1000
_NO_CLEANING = CleanSettings(max_ratio=0.0, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False)


@dataclass(frozen=True)
class Corpus:
    """The rows of a recipe, split so that no text is in two sets; only `clean.drop_leaked = false` keeps some.

    Nothing is kept in memory: every call reads the files again.
    """

    data: DataSettings
    seed: int
    clean: CleanSettings = field(default_factory=CleanSettings)
    task: TaskSettings = field(default_factory=TASKS[DEFAULT_KIND].settings_type)

    @classmethod
    def of(cls, recipe: Recipe) -> "Corpus":
        """Return the corpus of a recipe."""
        return cls(recipe.data, recipe.seed, recipe.clean, recipe.task)

    @property
    def task_class(self) -> type[Task]:
        """The task's class."""
        return TASKS[self.task.kind]

    @property
    def fields(self) -> Fields:
        """The fields of a row, as the cleaner needs them."""
        return self.task_class.cleaning(self.task)

    @property
    def cleaning(self) -> CleanSettings:
        """The rules that training applies; the built-in corpus is not cleaned."""
        return _NO_CLEANING if self.data.builtin else self.clean

    @property
    def split(self) -> Split:
        """How the rows are split; the sets of the built-in corpus have no common text by construction."""
        read_valid: Callable[[], Rows] | None = None
        if self.data.builtin:
            read_valid = partial(self._builtin, "valid", _BUILTIN_TEST)
        elif self.data.valid:
            read_valid = partial(self._read, self.data.valid)
        fraction = self.data.valid_fraction
        return Split(self.fields, self._read_training_files, read_valid, self._test_rows, self._hold_out, fraction)

    def train(self) -> Rows:
        """Return the training rows, not yet cleaned."""
        return self.split.train(drops_leaked=self.cleaning.drop_leaked)

    def valid(self, counts: "Counter[str] | None" = None) -> Rows:
        """Return the validation rows; those that the test set contains are dropped and added to `counts`."""
        return self.split.valid(Counter() if counts is None else counts)

    def tests(self) -> dict[str, Rows]:
        """Return the rows of each test set by its name; without a test set, those of the validation set."""
        if self.data.builtin:
            return {name: self._builtin(name, _BUILTIN_TEST) for name in ("test", "compositional")}
        return {"test": self._test_rows()} if self.data.test or self.data.fold else {"valid": self.valid()}

    def given_sets(self) -> dict[str, list[MixSettings]]:
        """Return the files of each set that the recipe names, by set: several corpora only for a mix."""
        held_out = {name: files for name, files in (("valid", self.data.valid), ("test", self.data.test)) if files}
        return {"train": list(self.data.corpora)} | {
            name: [MixSettings(files=files)] for name, files in held_out.items()
        }

    def read(self, corpus: MixSettings, *, skip_bad_lines: bool = False) -> Iterator[Row]:
        """Yield the rows of some files as they are, uncleaned.

        `skip_bad_lines` skips lines that are not UTF-8, if there are few of them.
        """
        if skip_bad_lines:
            return tolerate_bad_lines(partial(self._read, corpus.files, corpus))
        return self._read(corpus.files, corpus)

    def columns(self, files: tuple[str, ...], corpus: MixSettings | None = None) -> dict[str, str]:
        """Return the column of each field; those of [data] apply only to files that have columns."""
        columns = self.data.columns(corpus)
        are_parallel = len(files) > 1 and self.fields.n_fields > 1
        return {} if are_parallel and columns == self.data.columns() else columns

    @property
    def weights(self) -> list[float]:
        """The sampling weight of each corpus."""
        return [corpus.weight for corpus in self.data.corpora]

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that the training rows depend on."""
        if self.data.builtin:
            return {}
        for corpus in self.data.corpora:
            self._read(corpus.files, corpus)  # raises a precise error for a file that cannot be read
        for files in self._valid_and_test_files():
            self._read(files)
        sets = [*(corpus.files for corpus in self.data.corpora), *self._valid_and_test_files()]
        try:
            return {file: sha256_of(Path(file)) for files in sets for file in files}
        except OSError as error:
            raise DataError(_("{file} cannot be read: {reason}.", file=error.filename, reason=error.strerror)) from None

    def key(self, digests: Mapping[str, str]) -> str:
        """Return the cache key of the cleaned text: it depends on the contents of the files, not on their paths."""
        if self.data.builtin:
            folder = Path(corpora.__file__).parent
            sources = sorted([*folder.glob("*.py"), *folder.glob("tables/*.tsv")])
            parts: Any = [self.data.builtin, self.data.builtin_rows, self.seed, *map(sha256_of, sources)]
        else:
            parts = {
                "clean": to_table(self.clean),
                "train": [
                    [_contents(corpus.files, digests), self.columns(corpus.files, corpus)]
                    for corpus in self.data.corpora
                ],
                "held out": [
                    [_contents(files, digests), self.columns(files)] for files in self._valid_and_test_files()
                ],
                "valid_fraction": None if self.data.valid else self.data.valid_fraction,
                **({"fold": [self.data.fold, self.data.folds]} if self.data.fold else {}),
            }
            scheme = getattr(self.task, "scheme", "auto")  # of tags: the same file gives other rows
            if scheme != "auto":
                parts["scheme"] = scheme
            if self._divides_documents:
                # Earlier versions kept them, and divided one that the test set contains.
                parts["leaked documents"] = "dropped whole" if self.data.test else "dropped"
        return content_key([_FORMAT, self.task.kind, self.task_class.fields(self.task), parts])

    def write(self, folder: Path) -> None:
        """Write the cleaned training rows to a folder, and the number of dropped rows of each corpus."""
        counts = [Counter({KEPT: 0}) for _ in self.data.corpora or ("builtin",)]
        folder.mkdir(parents=True, exist_ok=True)
        Texts.write(folder, chain.from_iterable(self._cleaned(counts, folder)), self.fields.n_fields)
        metadata = {"counts": counts, "boundaries": [0, *accumulate(count[KEPT] for count in counts)]}
        (folder / COUNTS).write_text(json.dumps(metadata), encoding="utf-8")

    def count(self) -> "Counter[str]":
        """Count the training rows by reason for dropping them, KEPT for the others, as a run does before it encodes."""
        counts = [Counter({KEPT: 0}) for _ in self.data.corpora or ("builtin",)]
        deque(chain.from_iterable(self._cleaned(counts)), maxlen=0)
        return sum(counts, Counter[str]())

    def _cleaned(self, counts: "list[Counter[str]]", scratch: Path | None = None) -> Iterator[Iterator[Row]]:
        split = self.split
        sampled = split.sampled()
        # Windows cannot rename a folder with an open file, so hashes stay in memory there.
        scratch = scratch if os.name == "posix" else None
        cleaner = Cleaner(self.cleaning, split.held_out(sampled), self.fields, scratch)
        counted: set[Row] = set()
        for rows, count in zip(split.training_sets(), counts, strict=True):
            yield cleaner.clean(without(rows, sampled, count, counted), count)

    def _read_training_files(self) -> Iterator[Rows]:
        """Yield the rows of each corpus, without those of the fold to test on."""
        if self.data.builtin:
            yield self._builtin("train", self.data.builtin_rows)
            return
        tested = set(self._test_rows()) if self.data.fold else ()
        for rows in self._read_all_folds():
            yield (row for row in rows if row not in tested) if tested else rows

    def _read_all_folds(self) -> Iterator[Rows]:
        """Yield all rows of each corpus."""
        for corpus in self.data.corpora:
            yield self.read(corpus, skip_bad_lines=self.clean.drop_bad_encoding)

    def _test_rows(self) -> Rows:
        """Return the rows of the test set, or of the fold that takes its place; there may be none."""
        if self.data.test:
            return self._read(self.data.test)
        if not self.data.fold or not self.data.folds:
            return ()
        usable = filter(self._is_usable, chain.from_iterable(self._read_all_folds()))
        folds = assign_folds(usable, self._stratum, self.data.folds)
        if len(folds) < self.data.folds:
            raise DataError(
                _(
                    "There are {n_rows} different rows, too few for {n_folds} folds. Use fewer folds.",
                    n_rows=len(folds),
                    n_folds=self.data.folds,
                )
            )
        return [row for row, fold in folds.items() if fold == self.data.fold]

    def _is_usable(self, row: Row) -> bool:
        """Whether a row may be validated or tested on: it is neither empty nor badly encoded."""
        return rejection_reason(row, self.clean, self.fields) not in (EMPTY, BAD_ENCODING)

    def _stratum(self, row: Row) -> tuple[str, ...]:
        part = self.task_class.init
        return part.labels_of(row, self.task) if part.is_labeled else ()

    def _valid_and_test_files(self) -> list[tuple[str, ...]]:
        """Return the validation files, and the test files if the training rows depend on them."""
        sets = (self.data.valid, self.data.test if self.clean.drop_leaked or self._divides_documents else ())
        return [files for files in sets if files]

    def _builtin(self, split: str, count: int) -> Rows:
        return self.task_class.builtin(self.task, self.data.languages, split, count, self.seed)

    def _read(
        self, files: tuple[str, ...], corpus: MixSettings | None = None, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        return self.task_class.read(files, self.columns(files, corpus), self.task, on_bad)

    def _hold_out(self, rows: Rows) -> dict[Row, None]:
        """Choose the rows to validate on if there is no validation set."""
        usable = filter(self._is_usable, rows)
        if self.task_class.init.is_labeled:
            return hold_out_by_label(usable, self._stratum, self.data.valid_fraction)
        return hold_out(usable, self.data.valid_fraction)

    @property
    def _divides_documents(self) -> bool:
        return self.fields.n_fields == 1 and not self.data.valid


def _contents(files: tuple[str, ...], digests: Mapping[str, str]) -> list[list[str]]:
    """Return the digest and the suffixes of each file: the suffixes decide how it is read."""
    return [[digests[file], *(suffix.lower() for suffix in Path(file).suffixes[-2:])] for file in files]
