"""Faulty sequences of tags in a file: they are repaired, counted and reported together."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.readers import Row

logger = logging.getLogger(__name__)

_MAX_SHOWN = 5
_MOST = 0.5  # of the sentences: if more are faulty, the scheme or the column is most likely wrong


@dataclass
class TagFaults:
    """The faults of one file."""

    file: str
    n_faults: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: DataError) -> None:
        """Count a fault."""
        self.n_faults += 1
        if len(self.first) < _MAX_SHOWN:
            self.first.append(str(error).removeprefix(f"{self.file}, ").partition(". ")[0])

    def reported(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows; log a warning after the last if there were faults, and raise if most rows had one."""
        n_rows = n_faulty = n_before = 0
        for row in rows:
            n_rows += 1
            n_faulty += self.n_faults > n_before
            n_before = self.n_faults
            yield row
        if n_faulty > max(1, _MOST * n_rows):
            raise DataError(
                _(
                    "{file}: the tags of {n_faulty:,} of {n_rows:,} sentences are not valid: {listed}. Choose the "
                    "column that holds the tags, or set task.scheme (init: --scheme).",
                    file=self.file,
                    n_faulty=n_faulty,
                    n_rows=n_rows,
                    listed=self._listed,
                )
            )
        if n_faulty:
            _warn_once(
                _(
                    "{file}: the tags of {n_faulty:,} of {n_rows:,} sentences are not valid and were repaired "
                    "as conlleval reads them: {listed}.",
                    file=self.file,
                    n_faulty=n_faulty,
                    n_rows=n_rows,
                    listed=self._listed,
                )
            )

    @property
    def _listed(self) -> str:
        n_more = self.n_faults - len(self.first)
        return "; ".join([*self.first, *([_("and {n_more:,} more", n_more=n_more)] if n_more else [])])


@lru_cache(64)
def _warn_once(message: str) -> None:
    """A run reads its files several times."""
    logger.warning(message)
