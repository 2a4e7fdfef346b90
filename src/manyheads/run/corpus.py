"""From what a recipe says of its data to rows for each purpose."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from zlib import crc32

from manyheads import corpora
from manyheads.data import Cleaner, CleanSettings, Texts
from manyheads.data.cleaning import BAD_ENCODING, EMPTY, KEPT, Fields, rejection_reason, tolerate_bad_lines
from manyheads.data.corpus_cache import content_key
from manyheads.errors import DataError
from manyheads.run.recipe import DataSettings, MixSettings
from manyheads.settings import to_table
from manyheads.storage import sha256_of
from manyheads.tasks import TASKS, Seq2SeqSettings, Task, TaskSettings
from manyheads.text.files import OnBad
from manyheads.text.readers import Row

COUNTS = "counts.json"  # of stored text: what was left out, where each corpus begins
HELD_OUT = "held out to validate"
_FORMAT = 3  # of stored text: a change of what is kept of the same files needs a new number
_MAX_VALID_ROWS = 1000  # at most so many rows are kept out of training when there is no valid set
_ONE_IN = 20
_BUILTIN_TEST = 1000
_AS_IT_IS = CleanSettings(max_ratio=0.0, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False)

Rows = Iterable[Row]


@dataclass(frozen=True)
class Corpus:
    """The rows of a recipe, read anew whenever they are asked for."""

    data: DataSettings
    seed: int
    clean: CleanSettings = field(default_factory=CleanSettings)
    task: TaskSettings = field(default_factory=Seq2SeqSettings)

    @property
    def task_class(self) -> type[Task]:
        """The task's class."""
        return TASKS[self.task.kind]

    @property
    def fields(self) -> Fields:
        """What the cleaner has to know of the rows."""
        return self.task_class.cleaning(self.task)

    def train(self) -> Rows:
        """What there is to learn from, not yet cleaned."""
        held_out = self._sampled_valid_rows()
        return chain.from_iterable(_without(rows, held_out, Counter()) for rows in self._training_sets())

    def valid(self) -> Rows:
        """What to watch while learning."""
        if self.data.builtin:
            return self._builtin("valid", _BUILTIN_TEST)
        if self.data.valid:
            return self._read(self.data.valid)
        return self._valid_documents() if self._is_documents else self._sampled_valid_rows()

    def tests(self) -> dict[str, Rows]:
        """What to score in the end, by name."""
        if self.data.builtin:
            return {name: self._builtin(name, _BUILTIN_TEST) for name in ("test", "compositional")}
        return {"test": self._read(self.data.test)} if self.data.test else {"valid": self.valid()}

    @property
    def weights(self) -> list[float]:
        """How often a row of each corpus comes in an epoch."""
        return [corpus.weight for corpus in self.data.corpora]

    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file that the training text depends on: whether it is still what it was."""
        if self.data.builtin:
            return {}
        for corpus in self.data.corpora:
            self._read(corpus.files, corpus)  # says what is wrong with a file that cannot be read
        for files in self._valid_and_test_files():
            self._read(files)
        sets = [*(corpus.files for corpus in self.data.corpora), *self._valid_and_test_files()]
        try:
            return {file: sha256_of(Path(file)) for files in sets for file in files}
        except OSError as error:
            raise DataError(f"{error.filename} cannot be read: {error.strerror}.") from None

    def key(self, digests: Mapping[str, str]) -> str:
        """What names the cleaned text: the same for the same contents, wherever the files are."""
        if self.data.builtin:
            sources = sorted(Path(corpora.__file__).parent.glob("*.py"))
            parts: object = [self.data.builtin, self.data.builtin_rows, self.seed, *map(sha256_of, sources)]
        else:
            parts = {
                "clean": to_table(self.clean),
                "train": [
                    [_contents(corpus.files, digests), self._columns(corpus.files, corpus)]
                    for corpus in self.data.corpora
                ],
                "held out": [
                    [_contents(files, digests), self._columns(files)] for files in self._valid_and_test_files()
                ],
                "own held out": "" if self.data.valid else self.data.valid_fraction,
            }
        return content_key([_FORMAT, self.task.kind, self.task_class.fields(self.task), parts])

    def write(self, folder: Path) -> None:
        """Store the cleaned training text in a folder, and what was left out of each corpus."""
        counts = [Counter({KEPT: 0}) for _ in self.data.corpora or ("builtin",)]
        Texts.write(folder, chain.from_iterable(self._cleaned(counts)), self.fields.n_fields)
        metadata = {"counts": counts, "boundaries": [0, *accumulate(count[KEPT] for count in counts)]}
        (folder / COUNTS).write_text(json.dumps(metadata), encoding="utf-8")

    def _cleaned(self, counts: "list[Counter[str]]") -> Iterator[Iterator[Row]]:
        held_out = self._sampled_valid_rows()
        if self.data.builtin:
            cleaner = Cleaner(_AS_IT_IS, (), self.fields)
        else:
            tests = self._read(self.data.test) if self.data.test else ()
            valid = self._read(self.data.valid) if self.data.valid else held_out
            cleaner = Cleaner(self.clean, chain(valid, tests) if self.clean.drop_leaked else (), self.fields)
        for rows, count in zip(self._training_sets(), counts, strict=True):
            yield cleaner.clean(_without(rows, held_out, count), count)

    def _training_sets(self) -> Iterator[Rows]:
        """Each corpus to learn from; of documents without a valid set, all but the end of the text."""
        if not self._is_documents or self.data.builtin or self.data.valid:
            return self._read_training_files()
        return iter([self._training_documents(chain.from_iterable(self._read_training_files()))])

    def _read_training_files(self) -> Iterator[Rows]:
        """Each corpus as it is in its files."""
        if self.data.builtin:
            yield self._builtin("train", self.data.builtin_rows)
            return
        for corpus in self.data.corpora:
            if self.clean.drop_bad_encoding:
                yield tolerate_bad_lines(partial(self._read, corpus.files, corpus))
            else:
                yield self._read(corpus.files, corpus)

    def _valid_and_test_files(self) -> list[tuple[str, ...]]:
        """The valid files; the test files too where they decide what is left out of training."""
        sets = (self.data.valid, self.data.test if self.clean.drop_leaked else ())
        return [files for files in sets if files]

    def _builtin(self, split: str, count: int) -> Rows:
        return self.task_class.builtin(self.task, self.data.languages, split, count, self.seed)

    def _read(
        self, files: tuple[str, ...], corpus: MixSettings | None = None, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        return self.task_class.read(files, self._columns(files, corpus), self.task, on_bad)

    def _columns(self, files: tuple[str, ...], corpus: MixSettings | None = None) -> dict[str, str]:
        """Those of the corpus itself, or those of [data], which mean only the files that have columns."""
        own = self.data.columns(corpus)
        are_parallel = len(files) > 1 and self.fields.n_fields > 1
        return {} if are_parallel and own == self.data.columns() else own

    def _sampled_valid_rows(self) -> dict[Row, None]:
        """Where there is no valid set: the first distinct good rows whose checksum falls into one of twenty."""
        chosen: dict[Row, None] = {}
        if self.data.builtin or self.data.valid or self._is_documents:
            return chosen
        one_in = round(1 / self.data.valid_fraction) if self.data.valid_fraction else _ONE_IN
        for row in chain.from_iterable(self._read_training_files()):
            is_drawn = crc32("\n".join(row).encode()) % one_in == 0
            if is_drawn and rejection_reason(row, self.clean, self.fields) not in (EMPTY, BAD_ENCODING):
                chosen[row] = None
                if len(chosen) == _MAX_VALID_ROWS:
                    break
        return chosen

    @property
    def _is_documents(self) -> bool:
        """Whether the rows are whole documents, which are too few and too long to be drawn one by one."""
        return self.fields.n_fields == 1

    def _valid_documents(self) -> Iterator[Row]:
        """Where there is no valid set: the end of the text."""
        beginning = self._n_training_characters()
        for (text,) in chain.from_iterable(self._read_training_files()):
            if len(text) > beginning:
                yield (text[max(0, beginning) :],)
            beginning -= len(text)

    def _training_documents(self, rows: Rows) -> Iterator[Row]:
        """The text up to where that which is held out begins."""
        left = self._n_training_characters()
        for (text,) in rows:
            if left > 0:
                yield (text[:left],)
            left -= len(text)

    def _n_training_characters(self) -> int:
        """How many characters there are to learn from."""
        total = sum(len(text) for rows in self._read_training_files() for (text,) in rows)
        return total - round(total * (self.data.valid_fraction or 1 / _ONE_IN))


def _without(rows: Rows, held_out: Mapping[Row, None], counts: "Counter[str]") -> Iterator[Row]:
    for row in rows:
        if row in held_out:
            counts[HELD_OUT] += 1
        else:
            yield row


def _has_own_columns(corpus: MixSettings | None) -> bool:
    return corpus is not None and bool(corpus.source_column or corpus.target_column)


def _contents(files: tuple[str, ...], digests: Mapping[str, str]) -> list[list[str]]:
    """What is in the files, and their endings, since these say how a file is read."""
    return [[digests[file], *(ending.lower() for ending in Path(file).suffixes[-2:])] for file in files]
