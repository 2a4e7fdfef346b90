"""The formats of documents, one file a format. Every module of this folder is one, by its `FORMAT`."""

from importlib import import_module
from pathlib import PurePath
from pkgutil import iter_modules

from manyheads.errors import DataError
from manyheads.messages import _, join_or
from manyheads.text.documents.document import Document, DocumentFormat, DocumentOptions


def _find_formats() -> list[DocumentFormat]:
    return [import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__)]


FORMATS = _find_formats()


def document_format(name: str | PurePath) -> DocumentFormat | None:
    """Return the format that a file name ends in, or None."""
    suffix = PurePath(name).suffix.lower()
    return next((one for one in FORMATS if suffix in one.suffixes), None)


def document_suffixes() -> str:
    """Return the suffixes of all formats for a message."""
    return join_or(suffix for one in FORMATS for suffix in one.suffixes)


def split_document(name: str | PurePath, content: bytes, options: DocumentOptions) -> Document:
    """Divide the file of this name; an error names it."""
    found = document_format(name)
    if found is None:
        raise DataError(_("{path}: documents end in {suffixes}.", path=name, suffixes=document_suffixes()))
    if not content:
        raise DataError(_("{path} is empty. Give a file with text.", path=name))
    try:
        return found.split(content, options)
    except DataError as error:
        raise DataError(_("{path}: {reason}", path=name, reason=error)) from None
    except RecursionError:
        raise DataError(_("{path}: it is nested too deeply.", path=name)) from None
