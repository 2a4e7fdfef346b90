"""`Shortlist`: for each id that is read the few that may be written for it, so that not every word is thought of.

A table of ids alone; who learns it, and from what, is no concern of this room (lens/shortlisting.py does).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import BundleError


@dataclass(frozen=True, eq=False)
class Shortlist:
    """What may be written for each id, and what may be written for any."""

    always: NDArray[np.int32]  # sorted
    starts: NDArray[np.int64]  # where the words of each id begin in `token_ids`; one more at the end
    token_ids: NDArray[np.int32]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]], always: Sequence[int]) -> "Shortlist":
        """The table of these lists, one for each id of the vocabulary."""
        starts = np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
        token_ids = np.array([word for own in lists for word in own], dtype=np.int32)
        return cls(np.unique(np.array(always, dtype=np.int32)), starts, token_ids)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "Shortlist":
        """What `arrays` gave, after it was stored."""
        try:
            return cls(
                arrays["always"].astype(np.int32),
                arrays["starts"].astype(np.int64),
                arrays["token_ids"].astype(np.int32),
            )
        except KeyError as name:
            raise BundleError(f"A shortlist without {name} is none.") from None

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The table by name, to be stored."""
        return {"always": self.always, "starts": self.starts, "token_ids": self.token_ids}

    def allowed(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """All that may be written for these ids together: sorted, each once."""
        is_listed = np.zeros(len(self.starts) - 1, dtype=np.bool_)
        is_listed[self.always] = True
        for id in set(ids.tolist()):
            is_listed[self.token_ids[self.starts[id] : self.starts[id + 1]]] = True
        return np.flatnonzero(is_listed).astype(np.int32)

    def check_vocab_size(self, vocab_size: int) -> None:
        """Say so where it is not of a vocabulary of this size: an engine reads where it points."""
        if len(self.starts) != vocab_size + 1:
            raise BundleError(f"The shortlist is for {len(self.starts) - 1:,} tokens, the model has {vocab_size:,}.")
        is_sorted = (
            self.starts[0] == 0 and self.starts[-1] == len(self.token_ids) and bool((np.diff(self.starts) >= 0).all())
        )
        everything = np.concatenate([self.always, self.token_ids])
        if not is_sorted or (everything.size and not 0 <= everything.min() <= everything.max() < vocab_size):
            raise BundleError("The shortlist points beyond its own words or the model's tokens: it is damaged.")
