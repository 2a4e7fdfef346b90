"""`columns_for`: which columns of a table a bundle reads: those it was trained with, unless others are chosen."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from manyheads.bundle import Bundle
from manyheads.errors import DataError
from manyheads.messages import _, join_and
from manyheads.run.recipe import DataSettings, Recipe
from manyheads.tasks.data_files import DataFiles
from manyheads.text.reading.formats import format_of
from manyheads.text.reading.readers import columns_of
from manyheads.text.suggestions import shortened

NameOption = Callable[[str, str], str]  # how a caller chooses the column of a field: "--text-column body"


def columns_for(
    bundle: Bundle,
    files: Sequence[Path],
    fields: Sequence[str],
    chosen: Mapping[str, str],
    name_option: NameOption,
) -> dict[str, str]:
    """Return the column of each field in some files; {} for files that are not one table.

    A column that the table lacks raises a DataError with the columns it has.
    """
    if not DataFiles(files).is_table:
        return dict(chosen)
    header = columns_of(files[0])
    trained = _trained_columns(bundle, files[0], header)
    columns = {field: chosen.get(field) or trained.get(field) or field for field in fields}
    missing = [field for field in fields if not _has_column(header, columns[field])]
    if missing:
        names = [f'"{columns[field]}"' for field in missing]
        options = [name_option(field, shortened(header[0], 40) if header else "…") for field in missing]
        are_trained = all(field in trained for field in missing)
        raise DataError(
            _(
                "{path} has no column {names}, with which this bundle was trained. It has: {header}. Choose with "
                "{options}.",
                path=files[0],
                names=join_and(names),
                header=shortened(", ".join(header)),
                options=" ".join(options),
            )
            if are_trained
            else _(
                "{path} has no column {names}. It has: {header}. Choose with {options}.",
                path=files[0],
                names=join_and(names),
                header=shortened(", ".join(header)),
                options=" ".join(options),
            )
        )
    return columns


def _has_column(header: Sequence[str], column: str) -> bool:
    if column in header:
        return True
    return column.isdecimal() and 1 <= int(column[:6]) <= len(header)


def _trained_columns(bundle: Bundle, path: Path, header: Sequence[str]) -> dict[str, str]:
    """Return the columns of the bundle's training files; without any, the numbers of a .tsv file without a header."""
    data = Recipe.from_table(bundle.recipe).data if "data" in bundle.recipe else DataSettings(builtin="en")
    columns = next((own for own in map(data.columns, data.corpora) if own), data.columns())
    fields = bundle.task.fields(bundle.task.settings)
    table = format_of(path)
    if columns or table is None or not table.is_tab_separated or {*fields} & {*header}:
        return columns
    # As everywhere, a .tsv file whose first line names no field has its fields in order.
    trained = [format_of(Path(corpus.files[0])) for corpus in data.corpora if len(corpus.files) == 1]
    is_trained_on = any(one is not None and one.is_tab_separated for one in trained)
    if is_trained_on or len(header) in (1, len(fields)):
        return {field: str(number) for number, field in enumerate(fields, start=1)}
    return {}
