"""From what a recipe says of its data to pairs of sentences for each purpose."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from manyheads.recipe.settings import DataSettings
from manyheads.storage import digest_of
from manyheads.text import grammar
from manyheads.text.readers import read_pairs

_HELD_OUT = 1000  # at most so many pairs are kept out of training when there is no valid set
_ONE_IN = 20
_BUILTIN_TEST = 1000

PairsOfText = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Corpus:
    """The pairs of a recipe, read anew whenever they are asked for."""

    data: DataSettings
    seed: int

    def train(self) -> PairsOfText:
        """What to learn from."""
        if self.data.builtin:
            return self._builtin("train", self.data.builtin_pairs)
        return self._read(self.data.train) if self.data.valid else self._without_held_out()

    def valid(self) -> PairsOfText:
        """What to watch while learning."""
        if self.data.builtin:
            return self._builtin("valid", _BUILTIN_TEST)
        return self._read(self.data.valid) if self.data.valid else self._held_out()

    def tests(self) -> dict[str, PairsOfText]:
        """What to score in the end, by name."""
        if self.data.builtin:
            return {name: self._builtin(name, _BUILTIN_TEST) for name in ("test", "compositional")}
        return {"test": self._read(self.data.test)} if self.data.test else {"valid": self.valid()}

    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file that is trained or validated on: whether the text is still what it was."""
        return {file: digest_of(Path(file)) for file in (*self.data.train, *self.data.valid)}

    def _builtin(self, split: str, count: int) -> PairsOfText:
        source, target = self.data.languages
        return grammar.pairs(source, target, split, count, self.seed)

    def _read(self, files: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        return read_pairs(
            files,
            source_column=self.data.source_column or None,
            target_column=self.data.target_column or None,
        )

    def _held_out(self) -> PairsOfText:
        """The first distinct pairs whose checksum falls into one of twenty."""
        chosen: dict[tuple[str, str], None] = {}
        for pair in self._read(self.data.train):
            if crc32("\n".join(pair).encode()) % _ONE_IN == 0:
                chosen[pair] = None
                if len(chosen) == _HELD_OUT:
                    break
        return list(chosen)

    def _without_held_out(self) -> Iterator[tuple[str, str]]:
        held_out = set(self._held_out())
        return (pair for pair in self._read(self.data.train) if pair not in held_out)
