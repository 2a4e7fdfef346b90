"""Glossary files: one term per line, source TAB target; lines that begin with # are comments."""

from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import line_name, read_lines
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.words import is_blank


def read_glossary(path: Path | str) -> dict[str, str]:
    """Return the target term of each source term of a file, which may be compressed as .gz or .zst.

    A line that is not a pair of terms, or that has another target for the source of an earlier line, raises DataError.
    """
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if is_blank(line) or line.startswith("#"):
            continue
        terms = [" ".join(term.split()) for term in line.split("\t")]
        if len(terms) != 2 or any(map(is_blank, terms)):
            raise DataError(
                _(
                    "{where}: {line!r} is not a source term, a tab and a target term. Correct the line, or put # "
                    "before it.",
                    where=line_name(path, number),
                    line=shortened(line),
                )
            )
        source, target = terms
        earlier = found.setdefault(source, (target, number))
        if earlier[0] != target:
            raise DataError(
                _(
                    "{where}: {term!r} has another target term in line {earlier}. Remove one of the two lines.",
                    where=line_name(path, number),
                    term=shortened(source),
                    earlier=earlier[1],
                )
            )
    if not found:
        raise DataError(_("{path} has no terms. Write one per line: a source term, a tab, a target term.", path=path))
    return {source: target for source, (target, _number) in found.items()}
