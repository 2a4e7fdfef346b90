"""From what a recipe says of its data to pairs of sentences for each purpose."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from zlib import crc32

from manyheads.data import Cleaner, CleanSettings, Texts
from manyheads.data.cache import key_of
from manyheads.data.cleaning import BAD_ENCODING, EMPTY, KEPT, bear_bad_lines, fault
from manyheads.errors import DataError
from manyheads.recipe.settings import DataSettings, MixSettings
from manyheads.settings import to_table
from manyheads.storage import digest_of
from manyheads.text import grammar
from manyheads.text.readers import Pair, read_pairs
from manyheads.text.streams import OnBad

FACTS = "facts.json"  # of stored text: what was left out, where each corpus begins
HELD_OUT = "held out to validate"
_FORMAT = 1  # of stored text: a change of what is kept of the same files needs a new number
_MOST_HELD_OUT = 1000  # at most so many pairs are kept out of training when there is no valid set
_ONE_IN = 20
_BUILTIN_TEST = 1000
_AS_IT_IS = CleanSettings(max_ratio=0.0, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False)

PairsOfText = Iterable[Pair]


@dataclass(frozen=True)
class Corpus:
    """The pairs of a recipe, read anew whenever they are asked for."""

    data: DataSettings
    seed: int
    clean: CleanSettings = field(default_factory=CleanSettings)

    def train(self) -> PairsOfText:
        """What there is to learn from, not yet cleaned."""
        held_out = self._own_held_out()
        return chain.from_iterable(_without(pairs, held_out, Counter()) for pairs in self._training_sets())

    def valid(self) -> PairsOfText:
        """What to watch while learning."""
        if self.data.builtin:
            return self._builtin("valid", _BUILTIN_TEST)
        return self._read(self.data.valid) if self.data.valid else self._own_held_out()

    def tests(self) -> dict[str, PairsOfText]:
        """What to score in the end, by name."""
        if self.data.builtin:
            return {name: self._builtin(name, _BUILTIN_TEST) for name in ("test", "compositional")}
        return {"test": self._read(self.data.test)} if self.data.test else {"valid": self.valid()}

    @property
    def weights(self) -> list[float]:
        """How often a pair of each corpus comes in an epoch."""
        return [corpus.weight for corpus in self.data.corpora]

    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file that the training text depends on: whether it is still what it was."""
        if self.data.builtin:
            return {}
        for corpus in self.data.corpora:
            self._read(corpus.files, corpus)  # says what is wrong with a file that cannot be read
        for files in self._watched_files():
            self._read(files)
        sets = [*(corpus.files for corpus in self.data.corpora), *self._watched_files()]
        try:
            return {file: digest_of(Path(file)) for files in sets for file in files}
        except OSError as error:
            raise DataError(f"{error.filename} cannot be read: {error.strerror}.") from None

    def key(self, digests: Mapping[str, str]) -> str:
        """What names the cleaned text: the same for the same contents, wherever the files are."""
        if self.data.builtin:
            sources = sorted(Path(grammar.__file__).parent.glob("*.py"))
            parts: object = [self.data.builtin, self.data.builtin_pairs, self.seed, *map(digest_of, sources)]
        else:
            parts = {
                "clean": to_table(self.clean),
                "train": [
                    [_contents(corpus.files, digests), self._columns(corpus.files, corpus)]
                    for corpus in self.data.corpora
                ],
                "held out": [
                    [_contents(files, digests), self._columns(files, None)] for files in self._watched_files()
                ],
                "own held out": not self.data.valid,
            }
        return key_of([_FORMAT, parts])

    def write(self, folder: Path) -> None:
        """Store the cleaned training text in a folder, and what was left out of each corpus."""
        counts = [Counter({KEPT: 0}) for _ in self.data.corpora or ("builtin",)]
        Texts.write(folder, chain.from_iterable(self._cleaned(counts)))
        facts = {"counts": counts, "boundaries": [0, *accumulate(count[KEPT] for count in counts)]}
        (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    def _cleaned(self, counts: "list[Counter[str]]") -> Iterator[Iterator[Pair]]:
        held_out = self._own_held_out()
        if self.data.builtin:
            cleaner = Cleaner(_AS_IT_IS)
        else:
            tests = self._read(self.data.test) if self.data.test else ()
            valid = self._read(self.data.valid) if self.data.valid else held_out
            cleaner = Cleaner(self.clean, chain(valid, tests) if self.clean.drop_leaked else ())
        for pairs, count in zip(self._training_sets(), counts, strict=True):
            yield cleaner.clean(_without(pairs, held_out, count), count)

    def _training_sets(self) -> Iterator[PairsOfText]:
        """Each corpus as it is in its files."""
        if self.data.builtin:
            yield self._builtin("train", self.data.builtin_pairs)
            return
        for corpus in self.data.corpora:
            if self.clean.drop_bad_encoding:
                yield bear_bad_lines(partial(self._read, corpus.files, corpus))
            else:
                yield self._read(corpus.files, corpus)

    def _watched_files(self) -> list[tuple[str, ...]]:
        """The valid files; the test files too where they decide what is left out of training."""
        sets = (self.data.valid, self.data.test if self.clean.drop_leaked else ())
        return [files for files in sets if files]

    def _builtin(self, split: str, count: int) -> PairsOfText:
        source, target = self.data.languages
        return grammar.pairs(source, target, split, count, self.seed)

    def _read(
        self, files: tuple[str, ...], corpus: MixSettings | None = None, on_bad: OnBad | None = None
    ) -> Iterator[Pair]:
        source_column, target_column = self._columns(files, corpus)
        return read_pairs(files, source_column=source_column, target_column=target_column, on_bad=on_bad)

    def _columns(self, files: tuple[str, ...], corpus: MixSettings | None) -> tuple[str | None, str | None]:
        """Those of the corpus itself, or those of [data], which mean only the files that have columns."""
        if corpus is not None and (corpus.source_column or corpus.target_column):
            return corpus.source_column or None, corpus.target_column or None
        if len(files) == 2:
            return None, None
        return self.data.source_column or None, self.data.target_column or None

    def _own_held_out(self) -> dict[Pair, None]:
        """Where there is no valid set: the first distinct good pairs whose checksum falls into one of twenty."""
        chosen: dict[Pair, None] = {}
        if self.data.builtin or self.data.valid:
            return chosen
        for pair in chain.from_iterable(self._training_sets()):
            if crc32("\n".join(pair).encode()) % _ONE_IN == 0 and fault(pair, self.clean) not in (EMPTY, BAD_ENCODING):
                chosen[pair] = None
                if len(chosen) == _MOST_HELD_OUT:
                    break
        return chosen


def _without(pairs: PairsOfText, held_out: Mapping[Pair, None], counts: "Counter[str]") -> Iterator[Pair]:
    for pair in pairs:
        if pair in held_out:
            counts[HELD_OUT] += 1
        else:
            yield pair


def _contents(files: tuple[str, ...], digests: Mapping[str, str]) -> list[list[str]]:
    """What is in the files, and their endings, since these say how a file is read."""
    return [[digests[file], *(ending.lower() for ending in Path(file).suffixes[-2:])] for file in files]
