"""How the remarks of `manyheads predict` read on standard error: one line per kind, however long the input is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from manyheads.messages import Message, _, _n

if TYPE_CHECKING:
    from manyheads.answer.remarks import LineNumbers, Remarks

_N_WORDS = 5  # named in a remark
_WARNINGS = {
    "repetition": Message("repetition"),
    "length": Message("unusual length"),
    "short": Message("text left out"),
    "missing": Message("code, markup or URLs lost"),
    "glossary": Message("a required term lost"),
}


def show_remarks(remarks: "Remarks") -> None:
    """Write the remarks to standard error, and forget them."""
    if remarks.blank_lines.n_lines:
        click.echo(_describe_blank(remarks.blank_lines), err=True)
    if remarks.unseen:
        click.echo(_describe_unseen(list(remarks.unseen.values())), err=True)
    if remarks.out_of_scope.n_lines:
        click.echo(_describe_out_of_scope(remarks.out_of_scope), err=True)
    if remarks.suspect:
        click.echo(_describe_suspect(remarks.suspect), err=True)
    if remarks.low_confidence.n_lines:
        click.echo(_describe_low_confidence(remarks.low_confidence, remarks.n_rated), err=True)
    if remarks.abstained.n_lines:
        click.echo(_describe_abstained(remarks.abstained, remarks.n_rated), err=True)
    remarks.clear()


def show_errors(remarks: "Remarks", n_most: int | None = None) -> None:
    """Write the errors of lines to standard error, at most `n_most` of them, and forget them."""
    for error in remarks.errors[:n_most]:
        click.echo(_("Error: {error} Its output line stays empty.", error=error), err=True)
    n_more = len(remarks.errors[n_most:]) if n_most is not None else 0
    if n_more:
        click.echo(_n("Error: 1 more line is too long.", "Error: {n:,} more lines are too long.", n_more), err=True)
    remarks.errors.clear()


def show_cut_off(remarks: "Remarks") -> None:
    """Write how many translations were cut off to standard error."""
    if remarks.n_cut_off:
        text = _("{n_cut_off} of the translations were cut off at the maximum length.", n_cut_off=remarks.n_cut_off)
        click.echo(text, err=True)


def _describe_blank(lines: "LineNumbers") -> str:
    return _n(
        "Warning: 1 line has no text ({lines}): its output line is empty.",
        "Warning: {n:,} lines have no text ({lines}): their output lines are empty.",
        lines.n_lines,
        lines=_name_lines(lines),
    )


def _describe_out_of_scope(lines: "LineNumbers") -> str:
    return _n(
        "Warning: 1 line looks out of scope ({lines}): probably no label fits.",
        "Warning: {n:,} lines look out of scope ({lines}): probably no label fits.",
        lines.n_lines,
        lines=_name_lines(lines),
    )


def _describe_low_confidence(lines: "LineNumbers", n_rated: int) -> str:
    from manyheads.tasks.seq2seq.translation_search import LOW_CONFIDENCE

    return _n(
        "Warning: 1 of {n_rated:,} translations has a low confidence ({lines}): as improbable as the lowest {share} of "
        "the validation set.",
        "Warning: {n:,} of {n_rated:,} translations have a low confidence ({lines}): as improbable as the lowest "
        "{share} of the validation set.",
        lines.n_lines,
        n_rated=n_rated,
        lines=_name_lines(lines),
        share=f"{LOW_CONFIDENCE:.0%}".replace("%", " %"),
    )


def _describe_abstained(lines: "LineNumbers", n_rated: int) -> str:
    return _n(
        "Warning: 1 of {n_rated:,} translations has a confidence below --abstain ({lines}): its output line is empty.",
        "Warning: {n:,} of {n_rated:,} translations have a confidence below --abstain ({lines}): their output lines "
        "are empty.",
        lines.n_lines,
        n_rated=n_rated,
        lines=_name_lines(lines),
    )


def _describe_unseen(words: Sequence[tuple[str, list[int]]]) -> str:
    from manyheads.answer.remarks import MAX_UNSEEN, LineNumbers

    named = [
        _("{word} ({lines})", word=word, lines=_name_lines(LineNumbers(len(lines), lines)))
        for word, lines in words[:_N_WORDS]
    ]
    listed, n_more = _(", ").join(named), len(words) - len(named)
    if n_more:
        listed = _("{words} and {n_more:,} more", words=listed, n_more=n_more)
    if len(words) >= MAX_UNSEEN:
        return _("Warning: at least {n:,} words did not occur in training: {words}.", n=len(words), words=listed)
    return _n(
        "Warning: 1 word did not occur in training: {words}.",
        "Warning: {n:,} words did not occur in training: {words}.",
        len(words),
        words=listed,
    )


def _describe_suspect(suspect: "Mapping[str, LineNumbers]") -> str:
    named = [
        _("{warning} in {lines}", warning=_WARNINGS[warning], lines=_name_lines(lines))
        for warning, lines in suspect.items()
    ]
    return _(
        "Warning: suspect outputs: {outputs}. The model may not know such input; check these lines.",
        outputs=_("; ").join(named),
    )


def _name_lines(lines: "LineNumbers") -> str:
    from manyheads.answer.remarks import N_LINES

    numbers = _(", ").join(map(str, lines.first[:N_LINES]))
    if lines.n_lines > N_LINES:
        return _("lines {numbers}, …", numbers=numbers)
    return _n("line {numbers}", "lines {numbers}", lines.n_lines, numbers=numbers)
