"""The formats of tables, one file a format. Every module of this folder is one, by its `FORMAT`."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from manyheads.messages import join_or
from manyheads.text.reading.files import format_suffix
from manyheads.text.reading.table_format import TableFormat


def _find_formats() -> list[TableFormat]:
    return [import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__)]


FORMATS = _find_formats()


def format_of(path: Path) -> TableFormat | None:
    """Return the format that the name of a file ends in, or None if it is not that of a table."""
    suffix = format_suffix(path)
    return next((table for table in FORMATS if suffix in table.suffixes), None)


def is_table(path: Path) -> bool:
    """Return whether the file name ends in the suffix of a format with columns."""
    return format_of(path) is not None


def table_suffixes() -> str:
    """Return the suffixes of all formats for a message: ".csv, .json, .jsonl, .parquet, .tsv or .xlsx"."""
    return join_or(suffix for table in FORMATS for suffix in table.suffixes)
