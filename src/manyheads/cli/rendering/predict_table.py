"""`manyheads predict BUNDLE TABLE`: the same table with columns for the answer, in its own format or as JSONL."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import column_option
from manyheads.cli.rendering.answer_lines import (
    BATCH_LINES,
    AnswerLines,
    PredictOptions,
    show_cut_off,
    show_errors,
    show_remarks,
)
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.answer.answer import Answer
    from manyheads.bundle import Bundle
    from manyheads.text.reading.row_spec import RowSpec
    from manyheads.text.reading.table_format import NumberedRow, TableFormat

ShowProgress = Callable[[int], None]  # called with the number of rows done


def check_table(options: PredictOptions, files: Sequence[str], output: Path | None) -> "TableFormat":
    """Return the format of the only file; raise UsageError for options that need lines."""
    from manyheads.text.reading.files import is_compressed
    from manyheads.text.reading.formats import format_of, is_table

    path = next(file for file in files if is_table(Path(file)))
    if len(files) > 1:
        raise click.UsageError(_("{file} is a table, which is answered alone: give one FILE.", file=path))
    if not options.as_json and (options.answer.align or options.answer.decode.get("n_best", 1) > 1):
        raise click.UsageError(_("A table has one answer in each row: add --json, or leave out --align and --n-best."))
    table = format_of(Path(path))
    assert table is not None  # it is a table
    if output is None:
        if not table.is_text and not options.as_json:
            raise click.UsageError(
                _(
                    "{file}: a {suffix} file is not text. Write it to a file: -o FILE.",
                    file=path,
                    suffix=table.suffixes[0],
                )
            )
        return table
    suffixes = (".jsonl",) if options.as_json else table.suffixes
    own = format_of(output)
    if is_compressed(output) or (own is not None and own.suffixes != suffixes):
        raise click.UsageError(
            _(
                "{output}: the output is a {suffix} file. Name it so; --json writes .jsonl.",
                output=output,
                suffix=suffixes[0],
            )
        )
    return table


def predict_table(
    options: PredictOptions, table: "TableFormat", file: str, output: Path | None, column: str, progress: ShowProgress
) -> int:
    """Answer every row of a table, and write the table with the answers; return the exit code."""
    from manyheads.answer.table_answers import answer_rows, input_spec
    from manyheads.cli.rendering.output import open_output
    from manyheads.text.reading.files import check_readable

    path = Path(file)
    check_readable(path)
    loaded = options.load()
    spec = input_spec(loaded, _text_column(loaded, path, column))
    lines = AnswerLines(loaded, options, lambda number: _name_row(table, path, number))
    n_done = 0

    def answer(texts: Sequence[str], numbers: Sequence[int]) -> "list[Answer]":
        nonlocal n_done
        answers = list(lines.answers(texts, n_done, numbers))
        n_done += len(texts)
        show_errors(lines.remarks)
        progress(n_done)
        return answers

    with open_output(output, file, keep_partial=True) as stream:
        if options.as_json:
            stream.writelines(_json_lines(path, table, spec, lines))
        else:
            table.append(path, stream.buffer, spec, lambda rows: answer_rows(answer, BATCH_LINES, rows))
    show_errors(lines.remarks)
    show_remarks(lines.remarks)
    show_cut_off(lines.remarks)
    return 1 if lines.remarks.n_errors else 0


def _text_column(loaded: "Bundle", path: Path, column: str) -> str:
    from manyheads.errors import DataError
    from manyheads.run.bundle_columns import columns_for

    field = loaded.task.fields(loaded.task.settings)[0]
    columns = columns_for(loaded, [path], [field], {field: column} if column else {}, column_option)
    if field not in columns:
        raise DataError(
            _("{path} has one word on each line. Give the texts in a table or as lines of a .txt file.", path=path)
        )
    return columns[field]


def _name_row(table: "TableFormat", path: Path, number: int) -> str:
    if table.has_lines:
        return _("{path}, line {number}", path=path, number=number)
    return _("{path}, row {number}", path=path, number=number)


def _json_lines(path: Path, table: "TableFormat", spec: "RowSpec", lines: AnswerLines) -> Iterator[str]:
    """Yield the JSON object of each row: that of a line, and the row as it was."""
    from itertools import islice

    from manyheads.answer.table_answers import table_records
    from manyheads.text.reading.readers import columns_of

    has_header = table.has_header(dict(zip(spec.fields, spec.column_names, strict=True)))
    records = table_records(path, columns_of(path), has_header=has_header)
    rows: Iterator[tuple[NumberedRow, dict[str, object]]] = zip(table.rows(path, spec), records, strict=True)
    n_done = 0
    while batch := list(islice(rows, BATCH_LINES)):
        numbers = [number for (number, _row), _record in batch]
        answers = lines.answers([row[0] for (_number, row), _record in batch], n_done, numbers)
        for number, answer, (_row, record) in zip(numbers, answers, batch, strict=True):
            yield json.dumps(lines.fields(number, answer) | {"row": record}, ensure_ascii=False) + "\n"
        n_done += len(batch)
