"""What the data looks like: how many pairs, how clean, how long, in which languages."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from manyheads.data.cleaning import KEPT, CleanSettings, bear_bad_lines, clean
from manyheads.errors import DataError
from manyheads.recipe.corpus import Corpus
from manyheads.recipe.finding import language_of_text
from manyheads.recipe.settings import DataSettings
from manyheads.text.missing import shortened
from manyheads.text.readers import Pair, read_pairs

_LOOKED_AT = 100_000  # pairs that are read, cleaned and measured; the others are only counted
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
    mean_characters: float  # of a sentence, on either side
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
    """Look at the first pairs closely, at the others only to count them.

    `named` is the languages as files are called, of which the text may know better; `told` as the user says.
    """
    pairs = bear_bad_lines(partial(_read, data))
    looked_at = list(islice(pairs, _LOOKED_AT))
    n_others = sum(1 for _ in islice(pairs, _COUNTED - len(looked_at)))
    _refuse_labels(data, looked_at)
    corpus = Corpus(data, 1)
    held_out = list(corpus.valid())
    tests = list(corpus.tests()["test"]) if data.test else []
    watched = set() if data.valid else set(held_out)
    counts: Counter[str] = Counter()
    rest = (pair for pair in looked_at if pair not in watched)
    kept = list(clean(rest, CleanSettings(), counts, [*held_out, *tests]))
    left_out = {reason: count for reason, count in counts.items() if reason != KEPT and count}
    if not kept:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise DataError(f"{_files(data)}: there is no usable pair ({reasons}). Give text and its translation.")
    return Survey(
        data=data,
        languages=_languages(kept[:2000], named, told),
        n_pairs=round(len(kept) * (1 + n_others / len(looked_at))),
        n_read=len(looked_at) + n_others,
        n_looked_at=len(looked_at),
        left_out=left_out,
        n_held_out=len(watched),
        n_scored=len(tests or held_out),
        mean_characters=sum(len(side) for pair in kept for side in pair) / (2 * len(kept)),
        sample=tuple(kept[:: -(-len(kept) // _SAMPLE)]),
    )


def _read(data: DataSettings, on_bad: Callable[[DataError], None]) -> Iterator[Pair]:
    return read_pairs(
        data.train,
        source_column=data.source_column or None,
        target_column=data.target_column or None,
        on_bad=on_bad,
    )


def _languages(pairs: list[Pair], named: Languages, told: Languages) -> Languages:
    seen = tuple(language_of_text(" ".join(pair[side] for pair in pairs)) for side in (0, 1))
    if any(seen[side] and seen[side] == named[1 - side] for side in (0, 1)):
        named = (named[1], named[0])  # en-zh.tsv whose first column is Chinese
    source, target = (told[side] or named[side] or seen[side] for side in (0, 1))
    return source, target


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
