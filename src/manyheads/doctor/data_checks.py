"""Checks of a set of pairs as text: can it be read, is it repeated, leaked, lopsided, broken?

Each takes surveys and gives findings. None decides by a single odd line: real text has some.
"""

import numpy as np
from numpy.typing import NDArray

from manyheads.data import CleanSettings
from manyheads.doctor.character_classes import (
    CONTROL,
    EMOJI,
    FULL_WIDTH_LETTER,
    FULL_WIDTH_PUNCTUATION,
    HALF_WIDTH_PUNCTUATION,
    JOINER,
    NUL,
    ODD_SPACE,
    REPLACEMENT,
    SCRIPTS,
    ZERO_WIDTH,
)
from manyheads.doctor.corpus_stats import CorpusStats
from manyheads.doctor.findings import MAX_EXAMPLES, Finding, share, verdict_of

_LONG_LINE = 2000  # bytes
_RATIO = 4.0  # so many times longer or shorter than usual is an outlier
_SHORT = 30  # bytes of a pair; the ratio of very short texts says nothing
_USES_JOINERS = ("Arabic", "Hebrew", "Devanagari", "Thai", "other")


def check_readable(stats: CorpusStats) -> Finding:
    """Whether all of it could be read, and whether there is anything."""
    check = "readable"
    if stats.read_error:
        return Finding(
            check, "bad", f"{stats.name}: {stats.read_error}", (),
            "Mend the file as said and run doctor again; the checks below saw only what comes before."
            " 请按提示修复文件后重新检查。",
        )  # fmt: skip
    if not len(stats):
        return Finding(
            check, "bad", f"{stats.name}: there is no pair in it.", (), "Give a file with text. 文件是空的。"
        )
    files = " + ".join(stats.source.files) or "the built-in corpus"
    part = (
        f"the first {len(stats):,} pairs were examined, there are more"
        if stats.is_truncated
        else f"{len(stats):,} pairs"
    )
    return Finding(check, "good", f"{stats.name}: {files}, {part}.")


def check_blank(stats: CorpusStats) -> Finding:
    """Lines with nothing on one side or on both."""
    one = stats.is_blank.any(axis=1)
    both = int(stats.is_blank.all(axis=1).sum())
    message = f"{stats.name}: {share(int(one.sum()), len(stats))} pairs have a blank side ({both:,} on both)."
    return Finding(
        "blank lines",
        verdict_of(int(one.sum()), len(stats), warn=0.0, fail=0.2),
        message + _left_out(int(one.sum()), is_left_out=stats.name == "train"),
        stats.examples(np.flatnonzero(one)),
        "If many lines lost their partner, align the files anew. 若大量行缺少译文，请重新对齐。" if one.any() else "",
    )


def check_duplicates(stats: CorpusStats, clean: CleanSettings) -> Finding:
    """Pairs that occur more than once."""
    again = np.ones(len(stats), bool)
    again[np.unique(stats.pair_hashes, return_index=True)[1]] = False
    count = int(again.sum())
    verdict = verdict_of(count, len(stats), warn=0.02, fail=1.0 if clean.drop_duplicates else 0.5)
    return Finding(
        "duplicates",
        verdict,
        f"{stats.name}: {share(count, len(stats))} pairs repeat an earlier one."
        + _left_out(count, is_left_out=clean.drop_duplicates),
        stats.examples(np.flatnonzero(again)),
        ""
        if verdict == "good"
        else "Nothing need be done, unless you expected so many different pairs: then look at how the file was made."
        " 训练时会自动去重。"
        if clean.drop_duplicates
        else "Remove repetitions, or the model learns a few sentences by heart: sort -u on the pasted files."
        " 请去除重复句对。",
    )


def check_many_targets(stats: CorpusStats) -> Finding:
    """Sources that come with several different targets."""
    order = np.lexsort((stats.hashes[:, 1], stats.hashes[:, 0]))
    source, target = stats.hashes[order].T
    is_new_source = np.concatenate([[True], source[1:] != source[:-1]])
    is_new_pair = is_new_source | np.concatenate([[True], target[1:] != target[:-1]])
    group = np.cumsum(is_new_source) - 1
    n_targets = np.bincount(group, weights=is_new_pair) if len(stats) else np.zeros(0)
    is_many = n_targets[group] > 1
    count = int(is_many.sum())
    most = int(n_targets.max()) if len(n_targets) else 0
    verdict = verdict_of(count, len(stats), warn=0.3, fail=0.9)
    worst = order[(n_targets[group] == most) & (most > 1)]
    return Finding(
        "one source, many targets",
        verdict,
        f"{stats.name}: {share(count, len(stats))} pairs share their source with another translation (at most {most}).",
        stats.examples(worst) if verdict != "good" else (),
        ""
        if verdict == "good"
        else "Several good translations are fine; if they contradict each other, or a column is wrong, keep the best."
        " 一句多译过多时，请保留最好的译文。",
    )


def check_leakage(train: CorpusStats, held: CorpusStats, clean: CleanSettings) -> Finding:
    """Sentences of a held-out set that are trained on; and what it costs to leave them out."""
    known = np.stack([np.isin(held.hashes[:, side], train.hashes[:, side]) for side in (0, 1)], axis=1) & ~held.is_blank
    is_known = known.any(axis=1)
    is_pair = known.all(axis=1) & np.isin(_combine(held.hashes), _combine(train.hashes))
    count = int(is_known.sum())
    costs = [np.isin(train.hashes[:, side], held.hashes[known[:, side], side]) for side in (0, 1)]
    n_lost = int((costs[0] | costs[1]).sum())
    verdict = verdict_of(count, len(held), warn=0.0, fail=1.0 if clean.drop_leaked else 0.1)
    return Finding(
        "leakage",
        verdict,
        f"{share(count, len(held))} pairs of {held.name} have a side that also stands in {train.name}"
        f" (sources: {int(known[:, 0].sum()):,}, targets: {int(known[:, 1].sum()):,}, whole pairs:"
        f" {int(is_pair.sum()):,}), case and spacing aside."
        + (f" That is {share(n_lost, len(train))} training pairs." if count else "")
        + _left_out(count, is_left_out=clean.drop_leaked),
        held.examples(np.flatnonzero(is_known)),
        ""
        if verdict == "good"
        else f"The scores are safe. If {n_lost:,} training pairs are too many to lose, take these sentences out of"
        f" {held.name} instead. 训练时会自动剔除；若损失过多，请改从 {held.name} 中删除。"
        if clean.drop_leaked
        else "Take them out of the training files, or set clean.drop_leaked = true: a score on sentences seen in"
        " training is too high. 请从训练集中删除这些句子，否则得分虚高。",
    )


def check_ratio(stats: CorpusStats) -> Finding:
    """Pairs of which one side is much longer than it should be."""
    ratios = _log_ratios(stats)
    is_odd = np.abs(ratios) > np.log(_RATIO)
    count = int(is_odd.sum())
    usual = _usual_ratio(stats)
    verdict = verdict_of(count, len(stats), warn=0.005, fail=0.2)
    worst = np.argsort(-np.abs(ratios))[:count]
    left_out = int(stats.is_ratio_outlier.sum()) if stats.name == "train" else 0
    return Finding(
        "length ratio",
        verdict,
        f"{stats.name}: a target has {usual:.2f} times the bytes of its source; {share(count, len(stats))} pairs are"
        f" {_RATIO:.0f} times off that."
        + (f" Training leaves out {left_out:,} by itself (clean.max_ratio)." if left_out else ""),
        stats.examples(worst) if count else (),
        ""
        if verdict == "good"
        else "Look at the examples: half a translation, two sentences against one, or lines that slipped."
        " 请检查漏译、多译或错位的句对。",
    )


def check_long_lines(stats: CorpusStats) -> Finding:
    """Lines so long that they are hardly one sentence."""
    longest = stats.n_bytes.max(axis=1) if len(stats) else np.zeros(0, np.int32)
    count = int((longest > _LONG_LINE).sum())
    verdict = verdict_of(count, len(stats), warn=0.001)
    most = int(longest.max()) if len(stats) else 0
    return Finding(
        "long lines",
        verdict,
        f"{stats.name}: {share(count, len(stats))} pairs have more than {_LONG_LINE:,} bytes on a side;"
        f" the longest line has {most:,}.",
        stats.examples(np.argsort(-longest)[:count]) if count else (),
        ""
        if verdict == "good"
        else "Split them into sentences; training leaves out what is longer than model.max_length tokens."
        " 请拆分过长的行。",
    )


def check_encoding(stats: CorpusStats, clean: CleanSettings) -> Finding:
    """Characters that were lost or garbled on the way: U+FFFD, controls, mojibake."""
    is_lost = (stats.flags & REPLACEMENT) > 0
    is_control = (stats.flags & CONTROL) > 0
    is_any = is_lost | is_control | stats.is_mojibake
    count = int(is_any.any(axis=1).sum())
    is_dropped = clean.drop_bad_encoding and stats.name == "train"
    is_marked = is_lost | ((stats.flags & NUL) > 0)  # what training knows it by
    # What training leaves out does no harm, unless little is left.
    n_harmful = int((is_any & ~is_marked).any(axis=1).sum()) if is_dropped else count
    verdict = max(
        verdict_of(count, len(stats), warn=0.0, fail=0.2),
        verdict_of(n_harmful, len(stats), warn=0.0, fail=0.01),
        key=("good", "warning", "bad").index,
    )
    return Finding(
        "encoding",
        verdict,
        f"{stats.name}: {share(count, len(stats))} pairs hold garbled text (lines with U+FFFD: {int(is_lost.sum()):,},"
        f" with control characters: {int(is_control.sum()):,}, read in a wrong encoding:"
        f" {int(stats.is_mojibake.sum()):,})."
        + (" Training leaves out those with U+FFFD or NUL by itself." if is_marked.any() and is_dropped else ""),
        _side_examples(stats, is_any),
        ""
        if verdict == "good"
        else "Make the file anew from its original, read in its right encoding and saved as UTF-8, or drop these lines."
        " 请用正确的编码重新导出，或删除这些行。",
    )


def check_invisible(stats: CorpusStats) -> Finding:
    """Characters nobody sees but the model: zero-width and non-breaking spaces, stray spaces at the ends."""
    is_odd_space = (stats.flags & ODD_SPACE) > 0
    is_hidden = (stats.flags & ZERO_WIDTH) > 0
    for side in (0, 1):
        if SCRIPTS[main_script(stats, side)] not in _USES_JOINERS:  # where a joiner is no part of the spelling
            joins = stats.flags[:, side]
            is_hidden[:, side] |= ((joins & JOINER) > 0) & ((joins & EMOJI) == 0)
    is_stray = stats.has_stray_space & ~stats.is_blank
    count = int((is_odd_space | is_hidden | is_stray).any(axis=1).sum())
    verdict = verdict_of(count, len(stats), warn=0.002)
    return Finding(
        "invisible characters",
        verdict,
        f"{stats.name}: {share(count, len(stats))} pairs; lines with non-breaking or other odd spaces:"
        f" {int(is_odd_space.sum()):,}, with zero-width characters: {int(is_hidden.sum()):,}, with a space at an end:"
        f" {int(is_stray.sum()):,}.",
        tuple(line for kind in (is_odd_space, is_hidden, is_stray) for line in _side_examples(stats, kind, 1)),
        ""
        if verdict == "good"
        else "Harmless in small numbers, but the same word with and without them is two words to the model: replace"
        " them by plain spaces and strip the lines. 请替换为普通空格并去掉行首行尾空格。",
    )


def check_full_width(stats: CorpusStats) -> Finding:
    """Full-width and half-width marks side by side where Chinese or Japanese is written."""
    check = "full and half width"
    counts = [int(_has_rarer_width(stats, side).sum()) for side in (0, 1)]
    side = int(counts[1] >= counts[0])
    verdict = verdict_of(counts[side], len(stats), warn=0.05)
    message = (
        f"{stats.name}: {share(counts[side], len(stats))} lines of the {('source', 'target')[side]} side use the rarer"
        " width of punctuation or letters (，？ against ,? or Ａ against A)."
    )
    if verdict == "good":
        return Finding(check, verdict, message)
    return Finding(
        check,
        verdict,
        message,
        stats.examples(np.flatnonzero(_has_rarer_width(stats, side)), side),
        "Choose one width for all of the text: the model would write now this, now that, and lose BLEU by it."
        " 请统一全角与半角标点。",
    )


def _has_rarer_width(stats: CorpusStats, side: int) -> NDArray[np.bool_]:
    flags = stats.flags[:, side]
    is_narrow, is_wide = (flags & HALF_WIDTH_PUNCTUATION) > 0, (flags & FULL_WIDTH_PUNCTUATION) > 0
    is_cjk = SCRIPTS[main_script(stats, side)] in ("Han", "Kana")
    rarer = is_narrow if is_cjk and is_narrow.sum() <= is_wide.sum() else is_wide
    return np.asarray(rarer | ((flags & FULL_WIDTH_LETTER) > 0))


def main_script(stats: CorpusStats, side: int) -> int:
    """The commonest script of a side's lines; 0 where there are no letters."""
    counts = np.bincount(stats.scripts[:, side], minlength=len(SCRIPTS))
    counts[0] = 0
    return int(counts.argmax()) if counts.any() else 0


def _left_out(count: int, *, is_left_out: bool) -> str:
    return " Training leaves these out by itself." if count and is_left_out else ""


def _usual_ratio(stats: CorpusStats) -> float:
    is_whole = stats.n_bytes.min(axis=1) > 0
    source, target = stats.n_bytes[is_whole].T
    return float(np.median(target / source)) if is_whole.any() else 1.0


def _log_ratios(stats: CorpusStats) -> NDArray[np.float64]:
    """How many times (as a logarithm) each pair is off the usual ratio; 0 for blank and for very short ones."""
    counts = stats.n_bytes.astype(np.float64)
    is_judged = (counts.min(axis=1) > 0) & (counts.sum(axis=1) >= _SHORT)
    # A few bytes more on each side keep short texts from being odd by chance.
    padded = counts + 5.0 * np.array([1.0, _usual_ratio(stats)])
    return np.where(is_judged, np.log(padded[:, 1] / padded[:, 0] / _usual_ratio(stats)), 0.0)


def _combine(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """One key of a pair's two; an overflow is as good a number as any."""
    return (hashes.astype(np.uint64)[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ hashes.astype(np.uint64)[:, 1]).view(
        np.int64
    )


def _side_examples(stats: CorpusStats, is_affected: NDArray[np.bool_], most: int = MAX_EXAMPLES) -> tuple[str, ...]:
    """Examples of single lines: the side on which the thing is."""
    places = np.argwhere(is_affected)[:most]
    return tuple(line for index, side in places.tolist() for line in stats.examples([index], side))
