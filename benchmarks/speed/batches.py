"""The batches of a run, the same for all workers: synthetic ids with the lengths of Multi30k, or real text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyheads.data import PairBatch, make_batch, plan_batches
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

N_PAIRS = 29_000
FIRST_WORD = 4  # below are PAD, UNK, BOS and EOS
# Mean and covariance of the log lengths of Multi30k (English, German; vocab_size 6,000; EOS included).
MEANS = (2.698, 2.722)
COVARIANCE = ((0.0906, 0.0859), (0.0859, 0.1100))

Ids = Sequence[NDArray[np.int64]]


def drawn_pairs(vocab_size: int, seed: int = 1) -> tuple[Ids, Ids]:
    """Sample pairs of sentences: Zipf-distributed ids, log-normal lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.multivariate_normal(MEANS, COVARIANCE, N_PAIRS)).round().astype(np.int64)
    frequency = 1.0 / np.arange(1, vocab_size - FIRST_WORD + 1)
    sides = []
    for column in np.maximum(1, lengths - 1).T:
        words = FIRST_WORD + rng.choice(len(frequency), column.sum(), p=frequency / frequency.sum())
        sides.append(np.split(words, np.cumsum(column)[:-1]))
    return sides[0], sides[1]


def real_pairs(files: Sequence[Path], vocab_size: int) -> tuple[Ids, Ids]:
    """Tokenize two parallel texts with a shared vocabulary."""
    texts = [file.read_text(encoding="utf-8").splitlines() for file in files]
    tokenizer = Tokenizer.train((*texts[0], *texts[1]), TokenizerSettings(kind="bpe", vocab_size=vocab_size))
    sides = [[np.array(ids) for ids in tokenizer.encode_batch(text)] for text in texts]
    return sides[0], sides[1]


def make_batches(pairs: tuple[Ids, Ids], budget: int, count: int) -> list[PairBatch]:
    """Return the first `count` batches of an epoch, with up to `budget` padded tokens on each side."""
    lengths = np.array([[len(ids) + 1 for ids in side] for side in pairs]).T
    plan = plan_batches(lengths, budget, seed=1, epoch=0)
    # The last batch of each length may be nearly empty.
    full = [rows for rows in plan if len(rows) * lengths[rows].max() > 0.8 * budget]
    return [make_batch(*([side[row] for row in rows] for side in pairs)) for rows in full[:count]]


def save_batches(path: Path, batches: Sequence[PairBatch]) -> None:
    """Write all batches to one .npz file."""
    fields = ("source", "target_input", "target_output")
    np.savez(path, **{f"{n}.{field}": getattr(batch, field) for n, batch in enumerate(batches) for field in fields})
