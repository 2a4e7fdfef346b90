"""Answers to the rows of a table: the text of each row is in one column, and columns with the answer are added."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from manyheads.answer.answer import Answer
from manyheads.bundle import Bundle
from manyheads.text.reading.formats import format_of
from manyheads.text.reading.readers import read_rows
from manyheads.text.reading.row_spec import Converter, RowSpec, label_text
from manyheads.text.reading.table_format import NewCells, NumberedRow

FLAGS = "flags"

AnswerTexts = Callable[[Sequence[str], Sequence[int]], Iterable[Answer]]  # texts and the numbers of their rows


def input_spec(bundle: Bundle, column: str) -> RowSpec:
    """Return how to read the text of each row; a missing text is blank, and a number is its digits."""
    settings = bundle.task.settings
    return RowSpec((bundle.task.fields(settings)[0],), (column,), (_text_or_blank(bundle),), leaves_out_rejected=False)


def table_records(path: Path, columns: Sequence[str], *, has_header: bool) -> Iterator[dict[str, object]]:
    """Yield the rows of a table as JSON values by column; columns without a header are named by their numbers."""
    table = format_of(path)
    assert table is not None  # the caller has checked it
    if has_header or not table.may_lack_header:
        return table.records(path)
    numbers = [str(number) for number in range(1, len(columns) + 1)]
    return (dict(zip(numbers, row, strict=True)) for row in read_rows([path], numbers, numbers))


def answer_rows(answer: AnswerTexts, size: int, rows: Iterator[NumberedRow]) -> Iterator[NewCells]:
    """Yield the cells to append to each row: the answer's own, and its flags. `size` rows are answered together."""
    names: list[str] = []
    while batch := list(islice(rows, size)):
        answers = answer([row[0] for _number, row in batch], [number for number, _row in batch])
        cells = [one.prediction.cells() | {FLAGS: " ".join(one.flags)} for one in answers]
        # A blank text has fewer cells than others, such as no label.
        names = names or [*dict.fromkeys(name for own in cells for name in own if name != FLAGS), FLAGS]
        yield from ({name: own.get(name) for name in names} for own in cells)


def _text_or_blank(bundle: Bundle) -> Converter:
    own = bundle.task.text_converter(bundle.task.settings)

    def convert(value: object) -> str | None:
        return "" if value is None else own(value) or label_text(value)

    return convert
