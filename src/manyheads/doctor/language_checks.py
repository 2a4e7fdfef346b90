"""Checks of languages: sides exchanged, untranslated, or in a third language.

Sides with different scripts are distinguished by script. Otherwise (English and German, for example) a naive Bayes
classifier over hashed letter trigrams, trained on the two sides of the training set, decides.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from manyheads.doctor.character_classes import SCRIPTS, script_of_language
from manyheads.doctor.corpus_stats import CorpusStats, leading_code_points, trigram_ids
from manyheads.doctor.data_checks import main_script
from manyheads.messages import _
from manyheads.tasks.findings import Finding, share, verdict_of

_FEW_LETTERS = 8  # fewer cannot identify a language
_MARGIN = 12.0  # nats by which a line is likelier in the other language
_MIN_PAIRS = 200  # needed to train the classifier
_CHUNK_SIZE = 10_000


def _swap_advice() -> str:
    return _(
        "Exchange the two sides of these lines, or remove them; if it is the whole file, exchange the files "
        "(or columns) in the recipe."
    )


def check_declared_languages(stats: CorpusStats, languages: tuple[str, str]) -> Finding:
    """Check that scripts and file names agree with the recipe's languages."""
    check = "languages as declared"
    scripts = [SCRIPTS[main_script(stats, side)] for side in (0, 1)]
    expected = [script_of_language(code) for code in languages]
    seen = _(
        "{name}: the source is written in {source}, the target in {target}",
        name=stats.name,
        source=scripts[0],
        target=scripts[1],
    )
    named = [_language_in(name, languages) for name in stats.source.files]
    is_named_wrong = len(named) == 2 and all(languages) and named == [languages[1], languages[0]]
    misfit = [
        side
        for side in (0, 1)
        if len(stats) and expected[side] and scripts[side] != "none" and not _fits(scripts[side], str(expected[side]))
    ]
    if misfit or is_named_wrong:
        names = " + ".join(stats.source.files)
        seen += _("; the recipe has {source} → {target}", source=languages[0], target=languages[1])
        seen += _(", the files are {names}.", names=names) if is_named_wrong else _(".")
        return Finding(check, "bad", seen, stats.examples(range(1)), _swap_advice())
    return Finding(check, "good", seen + _("."))


def check_untranslated(stats: CorpusStats) -> Finding:
    """Count targets that are identical to their source."""
    is_same = (stats.hashes[:, 0] == stats.hashes[:, 1]) & (stats.n_letters[:, 0] >= _FEW_LETTERS)
    count = int(is_same.sum())
    verdict = verdict_of(count, len(stats), warn=0.005, fail=0.2)
    return Finding(
        "untranslated",
        verdict,
        _(
            "{name}: {counted} targets are the same as their source.",
            name=stats.name,
            counted=share(count, len(stats)),
        ),
        stats.examples(np.flatnonzero(is_same)),
        "" if verdict == "good" else _("Remove them: the model learns to copy instead of translating."),
    )


def check_mixed_languages(stats: CorpusStats, train: CorpusStats) -> Finding:
    """Count pairs whose sides are exchanged, or with a side in the wrong language."""
    scripts = [main_script(stats, side) for side in (0, 1)]
    if not len(stats) or 0 in scripts:
        return _too_little_text(stats)
    if scripts[0] != scripts[1]:
        is_swapped, is_odd, method = *_by_script(stats, scripts), _("by script")
    elif len(train) >= _MIN_PAIRS and len(stats):
        is_swapped, is_odd, method = *_by_trigrams(stats, train), _("by letter trigrams")
    else:
        return _too_little_text(stats)
    n_swapped, n_odd = int(is_swapped.sum()), int(is_odd.sum())
    # Beyond half of all lines, the file itself is the other way round.
    verdict = max(
        verdict_of(n_swapped, len(stats), warn=0.001, fail=0.01),
        verdict_of(n_odd, len(stats), warn=0.01, fail=0.1),
        key=("good", "warning", "bad").index,
    )
    first = np.flatnonzero(is_swapped) if n_swapped else np.flatnonzero(is_odd)
    return Finding(
        "language mix-ups",
        verdict,
        _(
            "{name}: {counted} pairs have their sides exchanged, {n_odd:,} more have a side in the wrong language "
            "({method}).",
            name=stats.name,
            counted=share(n_swapped, len(stats)),
            n_odd=n_odd,
            method=method,
        ),
        stats.examples(first),
        "" if verdict == "good" else _swap_advice() if n_swapped else _("Remove these pairs."),
    )


def _too_little_text(stats: CorpusStats) -> Finding:
    message = _("{name}: too little text to identify the languages.", name=stats.name)
    return Finding("language mix-ups", "good", message)


def _by_script(stats: CorpusStats, usual: list[int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    scripts, is_clear = stats.scripts, stats.n_letters >= 3
    other = np.array([usual[1], usual[0]], np.uint8)
    looks_other = (scripts == other) & is_clear
    is_swapped = looks_other.all(axis=1)
    # Sides whose letters are mostly of another script; Japanese uses Kana and Han.
    is_own = np.stack([_is_like(scripts[:, side], usual[side]) for side in (0, 1)], axis=1)
    is_odd = (~is_own & (stats.n_letters >= _FEW_LETTERS)).any(axis=1) & ~is_swapped
    return is_swapped, is_odd


def _is_like(scripts: NDArray[np.uint8], usual: int) -> NDArray[np.bool_]:
    kin = ("Han", "Kana") if SCRIPTS[usual] == "Kana" else (SCRIPTS[usual],)
    return np.isin(scripts, [SCRIPTS.index(name) for name in kin])


def _by_trigrams(stats: CorpusStats, train: CorpusStats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare each line with the two languages of the training set."""
    smooth = train.trigrams + 0.5
    # Trigrams that are rare on both sides count nothing, so that a training line cannot vouch for itself.
    own = np.log(smooth[0] / smooth[0].sum()) - np.log(smooth[1] / smooth[1].sum())
    weights = np.where(train.trigrams.sum(axis=0) >= 5, np.clip(own, -4.0, 4.0), 0.0)
    margins = np.concatenate(list(_margins(stats, weights)))
    is_clear = stats.n_letters >= _FEW_LETTERS
    looks_other = np.stack([margins[:, 0] < -_MARGIN, margins[:, 1] > _MARGIN], axis=1) & is_clear
    # One side may be mostly names. Two exchanged sides do not happen by chance, so half the margin is enough.
    is_swapped = (margins[:, 0] < -_MARGIN / 2) & (margins[:, 1] > _MARGIN / 2) & is_clear.all(axis=1)
    return is_swapped, looks_other.any(axis=1) & ~is_swapped


def _margins(stats: CorpusStats, weights: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield, for each line, its log-odds (in nats) of source language over target language; N × 2."""
    pairs = islice(iter(stats.source.read()), len(stats))
    while chunk := list(islice(pairs, _CHUNK_SIZE)):
        sides = []
        for side in (0, 1):
            codes, starts = leading_code_points([pair[side].replace("\n", " ") for pair in chunk])
            sums = np.concatenate([[0.0], np.cumsum(weights[trigram_ids(codes)])])
            ends = np.concatenate([starts[1:], [len(codes) - 2]])
            sides.append(sums[np.minimum(ends, len(sums) - 1)] - sums[np.minimum(starts, len(sums) - 1)])
        yield np.stack(sides, axis=1)


def _fits(seen: str, expected: str) -> bool:
    return seen == expected or (expected == "Kana" and seen == "Han")


def _language_in(file: str, languages: tuple[str, str]) -> str:
    """Return the language that a file name contains, if any: train.en, train.lc.norm.tok.de, en.txt."""
    parts = [part.lower() for part in PurePath(file).name.split(".")]
    return next((code for part in reversed(parts) for code in languages if code and part == code.lower()), "")
