"""Generated data with and without faults."""

import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from manyheads import corpora
from manyheads.data import CleanSettings
from manyheads.doctor.corpus_stats import CorpusStats, Source, collect_stats

Pairs = list[tuple[str, str]]


def healthy(target: str = "de", count: int = 1500) -> Pairs:
    """Distinct pairs of the built-in corpus, some of them two sentences long so that lengths vary."""
    pairs = _distinct(target)
    joint = " " if target == "de" else ""
    doubled = [
        (f"{a} {c}", f"{b}{joint}{d}") if index % 3 == 0 else (a, b)
        for index, ((a, b), (c, d)) in enumerate(pairwise(pairs))
    ]
    return doubled[:count]


@cache
def _distinct(target: str) -> Pairs:
    pairs = list(dict.fromkeys(corpora.pairs("en", target, "train", 3000)))
    random.Random(7).shuffle(pairs)
    return pairs


def make_stats(
    pairs: Sequence[tuple[str, str]], name: str = "train", clean: CleanSettings | None = None
) -> CorpusStats:
    source = Source(name, lambda: pairs, (f"{name}.en", f"{name}.xx"))
    return collect_stats(source, clean or CleanSettings())
