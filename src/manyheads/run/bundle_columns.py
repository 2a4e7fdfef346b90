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
    """Return the columns of the bundle's training files; their numbers if these were tables without a header."""
    if "data" not in bundle.recipe:
        return {}
    data: DataSettings = Recipe.from_table(bundle.recipe).data
    columns = next((own for own in map(data.columns, data.corpora) if own), data.columns())
    if columns or not data.corpora:
        return columns
    fields = bundle.task.fields(bundle.task.settings)
    tables = [format_of(Path(corpus.files[0])) for corpus in data.corpora if len(corpus.files) == 1]
    own = format_of(path)
    are_in_order = own is not None and own.may_lack_header and not {*fields} & {*header}
    if are_in_order and tables and all(table is not None and table.is_tab_separated for table in tables):
        return {field: str(number) for number, field in enumerate(fields, start=1)}
    return {}
