"""Data: cleaning, token ids on disk, and batches.

Ids are memory-mapped, so a corpus may be larger than memory. Batches contain examples of similar length within a token
budget, and their order is a pure function of (seed, epoch).
"""

from manyheads.data.batches import PairBatch, Windows, choose_examples, cut_windows, make_batch, pack, pad, plan_batches
from manyheads.data.cleaning import Cleaner, CleanSettings, clean
from manyheads.data.encoded import Encoded
from manyheads.data.ragged import Ragged, RaggedWriter
from manyheads.data.texts import Texts

__all__ = [
    "CleanSettings",
    "Cleaner",
    "Encoded",
    "PairBatch",
    "Ragged",
    "RaggedWriter",
    "Texts",
    "Windows",
    "choose_examples",
    "clean",
    "cut_windows",
    "make_batch",
    "pack",
    "pad",
    "plan_batches",
]
