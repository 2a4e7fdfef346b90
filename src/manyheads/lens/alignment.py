"""Word alignment from cross-attention: links, their error rate, and the heads that give the best ones.

A row of a decoder's cross-attention stands at a place where one token is read and the next is written. Which of the
two its weights speak of differs from layer to layer (Chen 2020), so both are told: `read` and `written`. And a large
weight on a short vector moves nothing: `norms` are ‖α f(x)‖, the length of what really arrives (Kobayashi 2020).
"""

from collections.abc import Set

import numpy as np

from manyheads.lens.encoded_examples import EncodedExample, Floats, pool_to_words
from manyheads.text.gold_alignments import Link

VARIANTS = tuple(f"align {kind} {shift}" for kind in ("weights", "norms") for shift in ("read", "written"))


def aligned_maps(weights: Floats, norms: Floats, encoded: EncodedExample) -> dict[str, Floats]:
    """H × target words × source words, for both kinds of strength and both shifts; the last column is no word.

    weights and norms: H × Q × K, a row a place of the target as it is read.
    """
    source, target = encoded.sides
    # What is in no word (EOS): a target word that looks there most stands for nothing.
    nowhere = (source.shares.sum(1, keepdims=True) == 0).astype(np.float64)
    keys = np.concatenate([source.shares, nowhere], axis=1)
    return {
        f"align {kind} {shift}": pool_to_words(strengths, rows, keys)
        for kind, strengths in (("weights", weights), ("norms", norms))
        for shift, rows in (("read", target.shares), ("written", target.next_shares))
    }


def argmax_links(words: Floats) -> list[set[Link]]:
    """Of each map, target words × source words and no word, the links (source, target) from its rows' largest."""
    n_words = words.shape[-1] - 1
    largest = words.argmax(-1)
    able = words.sum(-1) > 0
    return [
        {(int(aim), row) for row, aim in enumerate(aims) if aim < n_words and is_able[row]}
        for aims, is_able in zip(largest, able, strict=True)
    ]


def count_links(words: Floats, sure: Set[Link], possible: Set[Link]) -> tuple[Floats, Floats]:
    """|A ∩ S| + |A ∩ P| of each map, and |A| + |S|: the alignment error rate is 1 − their ratio (Och 2003)."""
    found = argmax_links(words)
    right = [len(links & sure) + len(links & possible) for links in found]
    given = [len(links) + len(sure) for links in found]
    return np.array(right, dtype=np.float64), np.array(given, dtype=np.float64)
