"""Checks of a set of rows as text: readable, duplicates, leakage, lengths, encoding, characters.

Each is a function of `CorpusStats`. No check fails because of a single unusual line: real text has some.
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
from manyheads.messages import _
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, Verdict, share, verdict_of

_LONG_LINE = 2000  # bytes
_RATIO = 4.0  # an outlier is this many times longer or shorter than usual
_SHORT = 30  # bytes of a pair; the length ratio of very short texts is meaningless
_USES_JOINERS = ("Arabic", "Hebrew", "Devanagari", "Thai", "other")


def check_complete(stats: CorpusStats) -> Finding:
    """Check that the set can be read to its end and is not empty."""
    check = "readable"
    if stats.read_error:
        return Finding(
            check, "bad", f"{stats.name}: {stats.read_error}", (),
            _("Fix the file and run doctor again; the checks below cover only the lines before it."),
        )  # fmt: skip
    if not len(stats):
        return Finding(
            check,
            "bad",
            _("{name}: there are no {rows} in it.", name=stats.name, rows=stats.noun),
            (),
            _("Give a file with text."),
        )
    files = " + ".join(stats.source.files) or _("the built-in corpus")
    part = (
        _("the first {n_rows:,} {rows} were checked, there are more", n_rows=len(stats), rows=stats.noun)
        if stats.is_truncated
        else _("{n_rows:,} {rows}", n_rows=len(stats), rows=stats.noun)
    )
    return Finding(check, "good", _("{name}: {files}, {part}.", name=stats.name, files=files, part=part))


def check_blank(stats: CorpusStats) -> Finding:
    """Count rows with an empty text."""
    is_any = stats.is_blank.any(axis=1)
    count, n_both = int(is_any.sum()), int(stats.is_blank.all(axis=1).sum())
    counted = share(count, len(stats))
    if len(stats.sides) == 2:
        message = _(
            "{name}: {counted} pairs have a blank side ({n_both:,} on both).",
            name=stats.name,
            counted=counted,
            n_both=n_both,
        )
        fix = _("If many lines have no counterpart, align the files again.")
    else:
        message = _("{name}: {counted} {rows} are blank.", name=stats.name, counted=counted, rows=stats.noun)
        fix = _("Fill them in, or remove their rows.")
    return Finding(
        "blank lines",
        verdict_of(count, len(stats), warn=0.0, fail=0.2),
        message + _dropped_note(count, is_dropped=stats.name == "train"),
        stats.examples(np.flatnonzero(is_any)),
        fix if count else "",
    )


def check_duplicates(stats: CorpusStats, clean: CleanSettings, n_dropped: int | None = None) -> Finding:
    """Count rows that occur more than once; training drops `n_dropped` of them as duplicates, others as held out."""
    again = np.ones(len(stats), bool)
    again[np.unique(stats.row_hashes, return_index=True)[1]] = False
    count = int(again.sum())
    verdict = verdict_of(count, len(stats), warn=0.02, fail=1.0 if clean.drop_duplicates else 0.5)
    return Finding(
        "duplicates",
        verdict,
        _(
            "{name}: {counted} {rows} repeat an earlier one.",
            name=stats.name,
            counted=share(count, len(stats)),
            rows=stats.noun,
        )
        + (
            _dropped_note(count, is_dropped=clean.drop_duplicates)
            if n_dropped is None
            else _(" Training drops {n_dropped:,} as duplicates.", n_dropped=n_dropped)
        ),
        stats.examples(np.flatnonzero(again)),
        ""
        if verdict == "good"
        else _(
            "Training drops them. If you expected more different {rows}, check how the file was made.", rows=stats.noun
        )
        if clean.drop_duplicates
        else _("Remove duplicates (for instance with sort -u), or the model memorizes a few texts."),
    )


def check_many_targets(stats: CorpusStats) -> Finding:
    """Count pairs whose source has several different targets."""
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
        _(
            "{name}: {counted} pairs share their source with another translation (at most {most}).",
            name=stats.name,
            counted=share(count, len(stats)),
            most=most,
        ),
        stats.examples(worst) if verdict != "good" else (),
        ""
        if verdict == "good"
        else _(
            "Several good translations are fine. If they contradict each other, or a column is wrong, keep the best."
        ),
    )


def check_leakage(train: CorpusStats, held: CorpusStats, clean: CleanSettings) -> Finding:
    """Count held-out texts that also occur in training, and the training rows that dropping them costs."""
    known = np.stack([np.isin(held.hashes[:, side], train.hashes[:, side]) for side in train.sides], axis=1)
    known &= ~held.is_blank
    is_known = known.any(axis=1)
    count = int(is_known.sum())
    costs = [np.isin(train.hashes[:, side], held.hashes[known[:, side], side]) for side in train.sides]
    n_lost = int(np.any(costs, axis=0).sum())
    verdict = verdict_of(count, len(held), warn=0.0, fail=1.0 if clean.drop_leaked else 0.1)
    return Finding(
        "leakage",
        verdict,
        _leakage_message(train, held, known)
        + (
            _(" That is {counted} training {rows}.", counted=share(n_lost, len(train)), rows=train.noun)
            if count
            else ""
        )
        + _dropped_note(count, is_dropped=clean.drop_leaked),
        held.examples(np.flatnonzero(is_known)),
        ""
        if verdict == "good"
        else _(
            "Training drops them, so scores are not affected. If {n_lost:,} training {rows} are too many to lose, "
            "remove these texts from {held_out} instead.",
            n_lost=n_lost,
            rows=train.noun,
            held_out=held.name,
        )
        if clean.drop_leaked
        else _(
            "Remove them from the training files, or set clean.drop_leaked = true: a score on texts seen in "
            "training is too high."
        ),
    )


def check_validation_leakage(valid: CorpusStats, test: CorpusStats) -> Finding:
    """Count validation rows with a text of the test set, which would choose the model by its test rows."""
    known = np.stack([np.isin(valid.hashes[:, side], test.hashes[:, side]) for side in valid.sides], axis=1)
    is_known = (known & ~valid.is_blank).any(axis=1)
    count = int(is_known.sum())
    verdict: Verdict = "good" if not count else "bad" if count == len(valid) else "warning"
    return Finding(
        "leakage",
        verdict,
        _(
            "{counted} {rows} of {valid} have a text of {test}, ignoring case and spacing.",
            counted=share(count, len(valid)),
            rows=valid.noun,
            valid=valid.name,
            test=test.name,
        )
        + (_(" Validation drops them.") if count else ""),
        valid.examples(np.flatnonzero(is_known)),
        ""
        if verdict == "good"
        else _(
            "Nothing would be left to validate on: leave out {test}, or give two sets without common texts.",
            test=test.name,
        )
        if verdict == "bad"
        else _(
            "Scores of {test} are not affected. If too few are left to validate on, give another {valid}.",
            test=test.name,
            valid=valid.name,
        ),
    )


def _leakage_message(train: CorpusStats, held: CorpusStats, known: NDArray[np.bool_]) -> str:
    counted = share(int(known.any(axis=1).sum()), len(held))
    if len(train.sides) == 1:
        return _(
            "{counted} {rows} of {held_out} also occur in {train}, ignoring case and spacing.",
            counted=counted,
            rows=held.noun,
            held_out=held.name,
            train=train.name,
        )
    is_pair = known.all(axis=1) & np.isin(_combine(held.hashes), _combine(train.hashes))
    sources, targets, pairs = int(known[:, 0].sum()), int(known[:, 1].sum()), int(is_pair.sum())
    return _(
        "{counted} pairs of {held_out} have a side that also occurs in {train} (sources: {sources:,}, targets: "
        "{targets:,}, whole pairs: {pairs:,}), ignoring case and spacing.",
        counted=counted,
        held_out=held.name,
        train=train.name,
        sources=sources,
        targets=targets,
        pairs=pairs,
    )


def check_ratio(stats: CorpusStats) -> Finding:
    """Count pairs with one side much longer than usual."""
    ratios = _log_ratios(stats)
    is_odd = np.abs(ratios) > np.log(_RATIO)
    count = int(is_odd.sum())
    usual = _usual_ratio(stats)
    verdict = verdict_of(count, len(stats), warn=0.005, fail=0.2)
    worst = np.argsort(-np.abs(ratios))[:count]
    n_dropped = int(stats.is_ratio_outlier.sum()) if stats.name == "train" else 0
    return Finding(
        "length ratio",
        verdict,
        _(
            "{name}: a target usually has {usual:.2f} times the bytes of its source; {counted} pairs are "
            "{ratio:.0f} times off that.",
            name=stats.name,
            usual=usual,
            counted=share(count, len(stats)),
            ratio=_RATIO,
        )
        + (_(" Training drops {n_dropped:,} of them (clean.max_ratio).", n_dropped=n_dropped) if n_dropped else ""),
        stats.examples(worst) if count else (),
        "" if verdict == "good" else _("Check the examples for missing or extra text and for misaligned lines."),
    )


def check_long_lines(stats: CorpusStats) -> Finding:
    """Count lines that are too long to be one sentence."""
    longest = stats.n_bytes.max(axis=1) if len(stats) else np.zeros(0, np.int32)
    count = int((longest > _LONG_LINE).sum())
    verdict = verdict_of(count, len(stats), warn=0.001)
    most = int(longest.max()) if len(stats) else 0
    return Finding(
        "long lines",
        verdict,
        _(
            "{name}: {counted} {rows} have a text of more than {limit:,} bytes; the longest line has {most:,}.",
            name=stats.name,
            counted=share(count, len(stats)),
            rows=stats.noun,
            limit=_LONG_LINE,
            most=most,
        ),
        stats.examples(np.argsort(-longest)[:count]) if count else (),
        ""
        if verdict == "good"
        else _("Split them into sentences; training drops rows longer than model.max_length tokens."),
    )


def check_encoding(stats: CorpusStats, clean: CleanSettings) -> Finding:
    """Count lines with lost or garbled characters: U+FFFD, control characters, mojibake."""
    is_lost = (stats.flags & REPLACEMENT) > 0
    is_control = (stats.flags & CONTROL) > 0
    is_any = is_lost | is_control | stats.is_mojibake
    count = int(is_any.any(axis=1).sum())
    is_dropped = clean.drop_bad_encoding and stats.name == "train"
    is_marked = is_lost | ((stats.flags & NUL) > 0)  # what training recognizes
    # Rows that training drops do no harm, unless they are most of the text.
    n_harmful = int((is_any & ~is_marked).any(axis=1).sum()) if is_dropped else count
    verdict = max(
        verdict_of(count, len(stats), warn=0.0, fail=0.2),
        verdict_of(n_harmful, len(stats), warn=0.0, fail=0.01),
        key=("good", "warning", "bad").index,
    )
    return Finding(
        "encoding",
        verdict,
        _(
            "{name}: {counted} {rows} contain garbled text (texts with U+FFFD: {n_lost:,}, with control characters: "
            "{n_control:,}, wrongly decoded: {n_mojibake:,}).",
            name=stats.name,
            counted=share(count, len(stats)),
            rows=stats.noun,
            n_lost=int(is_lost.sum()),
            n_control=int(is_control.sum()),
            n_mojibake=int(stats.is_mojibake.sum()),
        )
        + (_(" Training drops those with U+FFFD or NUL.") if is_marked.any() and is_dropped else ""),
        _side_examples(stats, is_any),
        ""
        if verdict == "good"
        else _("Export the file again with the right encoding, as UTF-8, or remove these lines."),
    )


def check_invisible(stats: CorpusStats) -> Finding:
    """Count invisible characters: zero-width and non-breaking spaces, spaces at the ends of lines."""
    is_odd_space = (stats.flags & ODD_SPACE) > 0
    is_hidden = (stats.flags & ZERO_WIDTH) > 0
    for side in stats.sides:
        if SCRIPTS[main_script(stats, side)] not in _USES_JOINERS:  # joiners are not part of the spelling
            joins = stats.flags[:, side]
            is_hidden[:, side] |= ((joins & JOINER) > 0) & ((joins & EMOJI) == 0)
    is_stray = stats.has_stray_space & ~stats.is_blank
    count = int((is_odd_space | is_hidden | is_stray).any(axis=1).sum())
    verdict = verdict_of(count, len(stats), warn=0.002)
    return Finding(
        "invisible characters",
        verdict,
        _(
            "{name}: {counted} {rows}; texts with non-breaking or unusual spaces: {n_spaces:,}, with zero-width "
            "characters: {n_hidden:,}, with a space at an end: {n_stray:,}.",
            name=stats.name,
            counted=share(count, len(stats)),
            rows=stats.noun,
            n_spaces=int(is_odd_space.sum()),
            n_hidden=int(is_hidden.sum()),
            n_stray=int(is_stray.sum()),
        ),
        tuple(line for kind in (is_odd_space, is_hidden, is_stray) for line in _side_examples(stats, kind, 1)),
        ""
        if verdict == "good"
        else _(
            "Harmless in small numbers, but a word with and without them is two words to the model: replace "
            "them by plain spaces and strip the lines."
        ),
    )


def check_full_width(stats: CorpusStats) -> Finding:
    """Count lines with the rarer width of punctuation in Chinese or Japanese text."""
    check = "full and half width"
    counts = [int(_has_rarer_width(stats, side).sum()) for side in stats.sides]
    side = max(stats.sides, key=lambda side: (counts[side], side))
    verdict = verdict_of(counts[side], len(stats), warn=0.05)
    where = _("source") if side == 0 else _("target")
    lines = _("lines of the {where} side", where=where) if len(counts) == 2 else _("texts")
    counted = share(counts[side], len(stats))
    message = _(
        "{name}: {counted} {lines} use the rarer width of punctuation or letters (，？ against ,? or Ａ against A).",
        name=stats.name,
        counted=counted,
        lines=lines,
    )
    if verdict == "good":
        return Finding(check, verdict, message)
    return Finding(
        check,
        verdict,
        message,
        stats.examples(np.flatnonzero(_has_rarer_width(stats, side)), side),
        _("Use one width throughout: a sign in two widths is two signs to the model."),
    )


def _has_rarer_width(stats: CorpusStats, side: int) -> NDArray[np.bool_]:
    flags = stats.flags[:, side]
    is_narrow, is_wide = (flags & HALF_WIDTH_PUNCTUATION) > 0, (flags & FULL_WIDTH_PUNCTUATION) > 0
    is_cjk = SCRIPTS[main_script(stats, side)] in ("Han", "Kana")
    rarer = is_narrow if is_cjk and is_narrow.sum() <= is_wide.sum() else is_wide
    return np.asarray(rarer | ((flags & FULL_WIDTH_LETTER) > 0))


def main_script(stats: CorpusStats, side: int) -> int:
    """Return the most common script of a side's lines; 0 if there are no letters."""
    counts = np.bincount(stats.scripts[:, side], minlength=len(SCRIPTS))
    counts[0] = 0
    return int(counts.argmax()) if counts.any() else 0


def _dropped_note(count: int, *, is_dropped: bool) -> str:
    return _(" Training drops them.") if count and is_dropped else ""


def _usual_ratio(stats: CorpusStats) -> float:
    is_whole = stats.n_bytes.min(axis=1) > 0
    source, target = stats.n_bytes[is_whole].T
    return float(np.median(target / source)) if is_whole.any() else 1.0


def _log_ratios(stats: CorpusStats) -> NDArray[np.float64]:
    """Return the logarithm of each pair's length ratio over the usual one; 0 for blank and very short pairs."""
    counts = stats.n_bytes.astype(np.float64)
    is_long_enough = (counts.min(axis=1) > 0) & (counts.sum(axis=1) >= _SHORT)
    # A few extra bytes on each side keep short texts from being outliers by chance.
    padded = counts + 5.0 * np.array([1.0, _usual_ratio(stats)])
    return np.where(is_long_enough, np.log(padded[:, 1] / padded[:, 0] / _usual_ratio(stats)), 0.0)


def _combine(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one hash per pair; overflow is intended."""
    return (hashes.astype(np.uint64)[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ hashes.astype(np.uint64)[:, 1]).view(
        np.int64
    )


def _side_examples(stats: CorpusStats, is_affected: NDArray[np.bool_], most: int = MAX_EXAMPLES) -> tuple[str, ...]:
    """Return examples of single lines, on the affected side."""
    affected = np.argwhere(is_affected)[:most]
    return tuple(line for index, side in affected.tolist() for line in stats.examples([index], side))
