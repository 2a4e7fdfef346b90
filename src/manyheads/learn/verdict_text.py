"""A verdict as lines of text: the sentence, the smallest input with both results as small tables, the hints."""

import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
from rich.cells import cell_len

from manyheads.learn.examiner import Evidence, Verdict
from manyheads.learn.exercise import Place
from manyheads.learn.references.reference import Raised
from manyheads.learn.submission import Submission
from manyheads.messages import Message, _

MAX_ROWS = 24  # of one table
_GAP = "   "
_N_PRINTED = 20  # lines of what the code printed
N_HINTS = 3
_HINTS = (Message("Hint 1: {text}"), Message("Hint 2: {text}"), Message("Hint 3: the line is {text}"))


def show_verdict(verdict: Verdict, submission: Submission, *, hints: int = 0, width: int = 80) -> list[str]:
    """The lines that a learner reads."""
    title = f"{verdict.exercise.name} · {verdict.exercise.title}"
    lines = [title, ""]
    if verdict.outcome == "solved":
        lines += [_("Correct."), *verdict.remarks]
    elif verdict.outcome == "refused":
        lines += [verdict.reason]
    else:
        is_hidden = submission.is_debugged and bool(verdict.variants)
        lines += [_("The fault is still there.")] if is_hidden else verdict.sentences()
        if not verdict.is_certain:
            lines.append(_("There is another mistake beside it, whose cause is unknown."))
        if verdict.evidence is not None:
            lines += ["", *show_evidence(verdict.evidence, width)]
        lines += ["", *show_hints(verdict, submission, hints)]
    if verdict.printed.strip():
        lines += ["", _("Your code printed:"), *_first_lines(verdict.printed)]
    return lines


def _first_lines(text: str) -> list[str]:
    lines = text.splitlines()
    shown = ["  " + "".join(c for c in line if c.isprintable())[:200] for line in lines[:_N_PRINTED]]
    return [*shown, "  …"] if len(lines) > _N_PRINTED else shown


def show_evidence(evidence: Evidence, width: int) -> list[str]:
    """The smallest input on which it shows, and both results."""
    inputs = [table(name, value) for name, value in evidence.inputs.items()]
    given = [_("yours"), evidence.error or _("error")] if isinstance(evidence.given, Raised) else None
    results = [
        *_result_tables(_("expected"), evidence.expected),
        *([given] if given else _result_tables(_("yours"), evidence.given)),
    ]
    return [
        _("The smallest input on which it shows:"),
        *side_by_side(inputs, width),
        "",
        _("Its result:"),
        *side_by_side(results, width),
    ]


def _result_tables(name: str, value: Any) -> list[list[str]]:
    if isinstance(value, tuple):
        return [table(f"{name} {n}", part) for n, part in enumerate(value, 1)]
    return [table(name, value)]


def show_hints(verdict: Verdict, submission: Submission, level: int) -> list[str]:
    """The hints up to a level; without a level, how to get the first one."""
    if not verdict.variants:
        return [_("No known mistake behaves like this, so there is no hint. Compute this input by hand.")]
    if level < 1:
        return [_("For a hint, add --hint 1, 2 or 3: where to look, what has to hold, the line.")]
    places = {verdict.exercise.variants[name].place: verdict.exercise.place_of(name) for name in verdict.variants}
    lines = []
    for place in places.values():
        texts = (place.look, place.rule, place.line)
        for n in range(min(level, N_HINTS)):
            lines.append(_(_HINTS[n].text, text=texts[n]))
        if level >= N_HINTS and (own := _own_line(place, submission)) is not None:
            where, text = submission.place(own), submission.text_of_line(own)
            lines.append(_("Your line: {where}: {text}", where=where, text=text))
    return lines


def _own_line(place: Place, submission: Submission) -> int | None:
    """The learner's line of a place, if only one can be meant."""
    if not place.find:
        return None
    lines = submission.source.splitlines()
    found = [
        n
        for n, line in enumerate(lines, 1)
        if n > submission.line and re.search(place.find, line.partition("#")[0]) and '"""' not in line
    ]
    return found[0] if len(found) == 1 else None


# Tables --------------------------------------------------------------------------------------------------------------


def table(name: str, value: Any) -> list[str]:
    """A value under its name: a matrix by rows, an array of more axes as numbered matrices."""
    if isinstance(value, np.ndarray) and value.ndim:
        return [f"{name} {_shape(value)}", *_rows(value)]
    if isinstance(value, tuple | list) and any(isinstance(part, np.ndarray) for part in value):
        return [name, *(line for n, part in enumerate(value, 1) for line in table(f"  {n}", part))]
    if isinstance(value, dict):
        return [name, *(f"{key!r}: {item!r}" for key, item in list(value.items())[:MAX_ROWS])]
    text = _number(float(value)) if isinstance(value, np.ndarray | np.generic | float) else repr(value)
    return [name, text[:200]]


def _shape(value: np.ndarray[Any, Any]) -> str:
    return "×".join(map(str, value.shape))


def _rows(value: np.ndarray[Any, Any]) -> list[str]:
    cells = np.vectorize(_cell, otypes=[object])(value) if value.size else value.astype(object)
    width = max((len(cell) for cell in cells.reshape(-1)), default=0)
    matrices = cells.reshape(-1, *cells.shape[-2:]) if cells.ndim > 1 else cells.reshape(1, 1, -1)
    lines = []
    for n, matrix in enumerate(matrices):
        if len(matrices) > 1:
            index = np.unravel_index(n, value.shape[:-2])
            lines.append("[" + ", ".join(map(str, index)) + "]")
        lines += [" ".join(cell.rjust(width) for cell in row) for row in matrix]
    return [*lines[:MAX_ROWS], "…"] if len(lines) > MAX_ROWS else lines


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    return str(value) if isinstance(value, int | np.integer | str) else _number(float(value))


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "∞" if value > 0 else "-∞"
    rounded = round(value, 3)
    if rounded == round(rounded, 1):
        return f"{rounded:.1f}".removesuffix(".0") if abs(rounded) >= 100 else f"{rounded:.1f}"
    return f"{rounded:.3f}"


def side_by_side(tables: Iterable[list[str]], width: int) -> list[str]:
    """Tables beside one another as far as they fit, then below."""
    lines: list[str] = []
    row: list[list[str]] = []
    used = 0
    for one in tables:
        needed = max(map(cell_len, one)) + len(_GAP)
        if row and used + needed > width - 2:
            lines += [*_join(row), ""]
            row, used = [], 0
        row.append(one)
        used += needed
    return [*lines, *_join(row)]


def _join(row: list[list[str]]) -> list[str]:
    widths = [max(map(cell_len, one)) for one in row]
    return [
        "  " + _GAP.join(text + " " * (n - cell_len(text)) for text, n in zip(texts, widths, strict=True)).rstrip()
        for texts in zip_longest(*row, fillvalue="")
    ]
