"""What the data looks like: how many pairs, how clean, how long, in which languages."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

from manyheads.data.cleaning import KEPT, CleanSettings, bear_bad_lines, clean
from manyheads.errors import DataError
from manyheads.recipe.corpus import Corpus
from manyheads.recipe.finding import base_of, language_of_text
from manyheads.recipe.settings import DataSettings
from manyheads.text.missing import shortened
from manyheads.text.readers import Pair, read_pairs

_LOOKED_AT = 100_000  # pairs, from all over the files, that are cleaned and measured; the others are only counted
_COUNTED = 5_000_000  # the most that are counted
_SAMPLE = 20_000  # clean pairs to learn a trial vocabulary from and to train trial steps on
_FEW_VALUES = 50  # so few different targets are labels, not translations
_ENOUGH_TO_TELL = 1000  # pairs
_MANY_SIGNS = 300

Languages = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The facts that a proposal is made from."""

    data: DataSettings
    languages: Languages  # "" where it is not known
    n_pairs: int  # clean ones to train on
    n_read: int
    n_looked_at: int  # fewer than were read: the other numbers are extrapolated
    left_out: Mapping[str, int]  # why pairs are not trained on, and how many of those looked at
    n_held_out: int  # to validate, where there is no valid set
    n_scored: int  # pairs that are translated at the end
    sample: tuple[Pair, ...]  # clean pairs

    @property
    def is_exact(self) -> bool:
        """Whether every pair was looked at."""
        return self.n_read == self.n_looked_at

    @property
    def has_many_signs(self) -> bool:
        """Whether it is written with very many characters, as Chinese is, each of which wants a piece of its own."""
        signs = {sign for pair in self.sample for side in pair for sign in side if "\u3040" <= sign <= "\ud7a3"}
        return len(signs) > _MANY_SIGNS


def survey(data: DataSettings, named: Languages = ("", ""), told: Languages = ("", "")) -> Survey:
    """Look at a sample of the pairs closely, at the others only to count them.

    `named` is the languages as files are called, of which the text may know better; `told` as the user says.
    """
    pairs = bear_bad_lines(partial(_read, data))
    looked_at, n_read = _sample(islice(pairs, _COUNTED), _LOOKED_AT)
    _refuse_labels(data, looked_at)
    corpus = Corpus(data, 1)
    held_out = list(corpus.valid())
    tests = list(corpus.tests()["test"]) if data.test else []
    watched = set() if data.valid else set(held_out)
    counts: Counter[str] = Counter()
    rest = (pair for pair in looked_at if pair not in watched)
    kept = list(clean(rest, CleanSettings(), counts, [*held_out, *tests]))
    left_out = {reason: count for reason, count in counts.items() if reason != KEPT and count}
    if not kept and left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise DataError(f"{_files(data)}: there is no usable pair ({reasons}). Give text and its translation.")
    if not kept or not held_out:
        raise DataError(
            f"{_files(data)}: {counted(n_read, 'pair')}, too few to keep any out of training to validate on. "
            "Give more, or a valid set with --valid."
        )
    _refuse_copies(data, kept)
    return Survey(
        data=data,
        languages=_languages(data, kept[:2000], named, told),
        n_pairs=round(len(kept) * n_read / len(looked_at)),
        n_read=n_read,
        n_looked_at=len(looked_at),
        left_out=left_out,
        n_held_out=len(watched),
        n_scored=len(tests or held_out),
        sample=tuple(kept[:: -(-len(kept) // _SAMPLE)]),
    )


def _read(data: DataSettings, on_bad: Callable[[DataError], None]) -> Iterator[Pair]:
    return read_pairs(
        data.train,
        source_column=data.source_column or None,
        target_column=data.target_column or None,
        on_bad=on_bad,
    )


def _sample(pairs: Iterator[Pair], size: int) -> tuple[list[Pair], int]:
    """So many pairs, each as likely as any other, and how many there are: files are often sorted by length."""
    chosen = list(islice(pairs, size))
    n_read = len(chosen)
    random = Random(1).random
    for pair in pairs:
        n_read += 1
        place = int(random() * n_read)
        if place < size:
            chosen[place] = pair
    return chosen, n_read


def _languages(data: DataSettings, pairs: list[Pair], named: Languages, told: Languages) -> Languages:
    first, second = (language_of_text(" ".join(pair[side] for pair in pairs)) for side in (0, 1))
    if _is_exchanged((first, second), told):
        remedy = "Exchange the two files." if len(data.train) == 2 else "Exchange --source-column and --target-column."
        raise DataError(
            f"{_files(data)}: the {'source' if first else 'target'} is written in {first or second}, "
            f"but {told[0] or '?'} → {told[1] or '?'} is wanted. {remedy}"
        )
    if _is_exchanged((first, second), named):
        named = (named[1], named[0])  # en-zh.tsv whose first column is Chinese
    seen = (first, second)
    source, target = (told[side] or named[side] or seen[side] for side in (0, 1))
    return source, target


def _is_exchanged(seen: Languages, claimed: Languages) -> bool:
    """Whether a side is written as the other is said to be; where both are written alike, nobody can tell."""
    if seen[0] == seen[1]:
        return False
    return any(seen[side] and seen[side] == base_of(claimed[1 - side]) for side in (0, 1))


def _refuse_copies(data: DataSettings, pairs: list[Pair]) -> None:
    n_same = sum(source == target for source, target in pairs)
    if n_same > len(pairs) / 2:
        raise DataError(
            f"{_files(data)}: the target is the same as the source in {n_same:,} of {counted(len(pairs), 'pair')}. "
            "Give the text and its translation."
        )


def counted(count: int, thing: str) -> str:
    """ "1 pair", "2,000 pairs"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _refuse_labels(data: DataSettings, pairs: list[Pair]) -> None:
    targets = {target for _, target in pairs}
    if len(targets) <= _FEW_VALUES and len(pairs) >= _ENOUGH_TO_TELL:
        examples = shortened(", ".join(sorted(targets)[:3]), 60)
        raise DataError(
            f"{_files(data)}: the targets have only {len(targets)} different values ({examples}): labels rather than "
            "translations. Name the column of the translations with --target-column."
        )


def _files(data: DataSettings) -> str:
    return " + ".join(data.train)
