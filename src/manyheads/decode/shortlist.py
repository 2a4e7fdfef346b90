"""`Shortlist`: for each source id, the target ids that may be generated for it.

An engine with a shortlist computes the logits of a few hundred tokens instead of the whole vocabulary. This module
holds the table; the compress package learns it from word alignments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import BundleError
from manyheads.messages import _


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The target ids allowed for each source id, and those allowed for every source."""

    always: NDArray[np.int32]  # sorted
    starts: NDArray[np.int64]  # row i is token_ids[starts[i] : starts[i + 1]]
    token_ids: NDArray[np.int32]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]], always: Sequence[int]) -> "Shortlist":
        """Make a shortlist from one list per id of the vocabulary."""
        starts = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
        token_ids = np.array([token_id for row in lists for token_id in row], dtype=np.int32)
        return cls(np.unique(np.array(always, dtype=np.int32)), starts, token_ids)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "Shortlist":
        """Make a shortlist from the arrays that `arrays` returns."""
        try:
            chosen = {name: arrays[name] for name in ("always", "starts", "token_ids")}
        except KeyError as missing:
            raise BundleError(
                _("The shortlist has no array {name}. Make it again with `manyheads shortlist`.", name=missing)
            ) from None
        for name, array in chosen.items():
            if array.ndim != 1 or array.dtype.kind != "i":
                raise BundleError(
                    _(
                        "The array {name} of the shortlist is not a list of integers. Make it again with "
                        "`manyheads shortlist`.",
                        name=name,
                    )
                )
        always, starts, token_ids = chosen.values()
        return cls(always.astype(np.int32), starts.astype(np.int64), token_ids.astype(np.int32))

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The table as named arrays, to store in a file."""
        return {"always": self.always, "starts": self.starts, "token_ids": self.token_ids}

    def allowed(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sorted union of the target ids allowed for these source ids."""
        is_listed = np.zeros(len(self.starts) - 1, dtype=np.bool_)
        is_listed[self.always] = True
        for source_id in set(ids.tolist()):
            is_listed[self.token_ids[self.starts[source_id] : self.starts[source_id + 1]]] = True
        return np.flatnonzero(is_listed).astype(np.int32)

    def check_vocab_size(self, vocab_size: int) -> None:
        """Raise `BundleError` unless every index is valid for a vocabulary of this size: C code does not check them."""
        if len(self.starts) != vocab_size + 1:
            raise BundleError(
                _(
                    "The shortlist is for {n_tokens:,} tokens, the model has {vocab_size:,}.",
                    n_tokens=len(self.starts) - 1,
                    vocab_size=vocab_size,
                )
            )
        is_sorted = (
            self.starts[0] == 0 and self.starts[-1] == len(self.token_ids) and bool((np.diff(self.starts) >= 0).all())
        )
        all_ids = np.concatenate([self.always, self.token_ids])
        if not is_sorted or (all_ids.size and not 0 <= all_ids.min() <= all_ids.max() < vocab_size):
            raise BundleError(_("The shortlist has indices out of range. Make it again with `manyheads shortlist`."))
