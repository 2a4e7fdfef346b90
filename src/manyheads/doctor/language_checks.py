"""Checks of which language stands where: sides exchanged, left untranslated, or in a language that is neither.

Where the two sides are written differently, their scripts tell. Where they are not (English and German, say), the
text itself is the judge: a naive Bayes of hashed letter trigrams, learnt from the two sides of the training set.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from manyheads.doctor.character_classes import SCRIPTS, script_of_language
from manyheads.doctor.corpus_stats import CorpusStats, leading_code_points, trigram_ids
from manyheads.doctor.data_checks import main_script
from manyheads.doctor.findings import Finding, share, verdict_of

_FEW_LETTERS = 8  # too few to tell a language by
_MARGIN = 12.0  # nats: a line is so much likelier in the other language
_MIN_PAIRS = 200  # pairs from which two languages can be told apart
_CHUNK_SIZE = 10_000

_SWAP = (
    "Exchange the two sides of these lines, or drop them; when it is the whole file, exchange the files (or columns)"
    " in the recipe. 请交换这些行（或整个文件）的源语言与目标语言。"
)


def check_declared_languages(stats: CorpusStats, languages: tuple[str, str]) -> Finding:
    """Whether the sides are written in the recipe's languages, as far as scripts and file names tell."""
    check = "languages as declared"
    scripts = [SCRIPTS[main_script(stats, side)] for side in (0, 1)]
    expected = [script_of_language(code) for code in languages]
    seen = f"{stats.name}: the source is written in {scripts[0]}, the target in {scripts[1]}"
    named = [_language_in(name, languages) for name in stats.source.files]
    is_named_wrong = len(named) == 2 and all(languages) and named == [languages[1], languages[0]]
    misfit = [
        side
        for side in (0, 1)
        if len(stats) and expected[side] and scripts[side] != "none" and not _fits(scripts[side], str(expected[side]))
    ]
    if misfit or is_named_wrong:
        why = f"; the recipe says {languages[0]} → {languages[1]}"
        files = f", the files are {' and '.join(stats.source.files)}" if is_named_wrong else ""
        return Finding(check, "bad", f"{seen}{why}{files}.", stats.examples(range(1)), _SWAP)
    return Finding(check, "good", f"{seen}.")


def check_untranslated(stats: CorpusStats) -> Finding:
    """Targets that are their sources once more."""
    is_same = (stats.hashes[:, 0] == stats.hashes[:, 1]) & (stats.n_letters[:, 0] >= _FEW_LETTERS)
    count = int(is_same.sum())
    verdict = verdict_of(count, len(stats), warn=0.005, fail=0.2)
    return Finding(
        "untranslated",
        verdict,
        f"{stats.name}: {share(count, len(stats))} targets are the same as their source.",
        stats.examples(np.flatnonzero(is_same)),
        ""
        if verdict == "good"
        else "Drop them: the model learns to copy instead of to translate. 请删除未翻译的句对。",
    )


def check_mixed_languages(stats: CorpusStats, train: CorpusStats) -> Finding:
    """Lines whose two sides are exchanged, or one of whose sides is not in its own language."""
    scripts = [main_script(stats, side) for side in (0, 1)]
    if not len(stats) or 0 in scripts:
        return Finding("language mix-ups", "good", f"{stats.name}: too little text to tell the languages apart.")
    if scripts[0] != scripts[1]:
        is_swapped, is_odd, how = *_by_script(stats, scripts), "by script"
    elif len(train) >= _MIN_PAIRS and len(stats):
        is_swapped, is_odd, how = *_by_trigrams(stats, train), "by letter trigrams"
    else:
        return Finding("language mix-ups", "good", f"{stats.name}: too little text to tell the languages apart.")
    swapped, odd = int(is_swapped.sum()), int(is_odd.sum())
    # Half of all lines swapped is as bad as a file can be: beyond it, the file itself is the other way round.
    verdict = max(
        verdict_of(swapped, len(stats), warn=0.001, fail=0.01),
        verdict_of(odd, len(stats), warn=0.01, fail=0.1),
        key=("good", "warning", "bad").index,
    )
    first = np.flatnonzero(is_swapped) if swapped else np.flatnonzero(is_odd)
    return Finding(
        "language mix-ups",
        verdict,
        f"{stats.name}: {share(swapped, len(stats))} pairs have their sides exchanged, {odd:,} more have a side in the"
        f" wrong language ({how}).",
        stats.examples(first),
        "" if verdict == "good" else _SWAP if swapped else "Drop these pairs. 请删除这些语言不符的句对。",
    )


def _by_script(stats: CorpusStats, usual: list[int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    scripts, is_clear = stats.scripts, stats.n_letters >= 3
    other = np.array([usual[1], usual[0]], np.uint8)
    looks_other = (scripts == other) & is_clear
    is_swapped = looks_other.all(axis=1)
    # A side of many letters of which most are of another script; Japanese writes Kana and Han.
    is_own = np.stack([_is_like(scripts[:, side], usual[side]) for side in (0, 1)], axis=1)
    is_odd = (~is_own & (stats.n_letters >= _FEW_LETTERS)).any(axis=1) & ~is_swapped
    return is_swapped, is_odd


def _is_like(scripts: NDArray[np.uint8], usual: int) -> NDArray[np.bool_]:
    kin = ("Han", "Kana") if SCRIPTS[usual] == "Kana" else (SCRIPTS[usual],)
    return np.isin(scripts, [SCRIPTS.index(name) for name in kin])


def _by_trigrams(stats: CorpusStats, train: CorpusStats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Each line against the two languages of the training set."""
    smooth = train.trigrams + 0.5
    # A line of the training set must not vouch for its own oddities: what is rare on both sides counts little.
    own = np.log(smooth[0] / smooth[0].sum()) - np.log(smooth[1] / smooth[1].sum())
    weights = np.where(train.trigrams.sum(axis=0) >= 5, np.clip(own, -4.0, 4.0), 0.0)
    margins = np.concatenate(list(_margins(stats, weights)))
    is_clear = stats.n_letters >= _FEW_LETTERS
    looks_other = np.stack([margins[:, 0] < -_MARGIN, margins[:, 1] > _MARGIN], axis=1) & is_clear
    # One side may hold many names; both sides clearly exchanged do not happen by chance at half the margin.
    is_swapped = (margins[:, 0] < -_MARGIN / 2) & (margins[:, 1] > _MARGIN / 2) & is_clear.all(axis=1)
    return is_swapped, looks_other.any(axis=1) & ~is_swapped


def _margins(stats: CorpusStats, weights: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Of each line, how much likelier (in nats) it is in the source language than in the target's; N × 2."""
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
    """Which of two languages a file's name ends in, if any: train.en, train.lc.norm.tok.de, en.txt."""
    parts = [part.lower() for part in PurePath(file).name.split(".")]
    return next((code for part in reversed(parts) for code in languages if code and part == code.lower()), "")
