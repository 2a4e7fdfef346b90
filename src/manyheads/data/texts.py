"""`Texts`: pairs of sentences as UTF-8 on disk, read in order in bounded memory or one by one."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.chunks import chunks
from manyheads.data.ragged import Ragged, RaggedWriter

_UTF8 = "uint8"
_SIDES = ("source-text", "target-text")


@dataclass(frozen=True)
class Texts:
    """Pairs of sentences on disk."""

    columns: tuple[Ragged, Ragged]

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[tuple[str, str]]) -> None:
        """Store pairs in a folder as they come."""
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            columns = [stack.enter_context(RaggedWriter(folder / side, _UTF8)) for side in _SIDES]
            for chunk in chunks(pairs):
                for side, column in enumerate(columns):
                    column.extend_bytes([pair[side].encode() for pair in chunk])

    @classmethod
    def open(cls, folder: Path) -> "Texts":
        """What `write` stored."""
        source, target = (Ragged(folder / side, _UTF8) for side in _SIDES)
        return cls((source, target))

    def __len__(self) -> int:
        return len(self.columns[0])

    def text(self, side: int, index: int) -> str:
        """One sentence as it was given; side 0 is the source, 1 the target."""
        return self.columns[side][index].tobytes().decode()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each in turn, in bounded memory."""
        for source, target in zip(*(column.each_as_bytes() for column in self.columns), strict=True):
            yield source.decode(), target.decode()
