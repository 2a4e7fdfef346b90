"""`manyheads predict --format html`: which files are documents, and which bundles translate them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.bundle import Bundle

_DOCUMENT_SUFFIXES = (".html", ".htm", ".xhtml")


def is_document(file: str) -> bool:
    """Return whether a file is translated as one document; each line of any other is a fragment."""
    return Path(file).suffix.lower() in _DOCUMENT_SUFFIXES


def require_translator(bundle: "Bundle", path: Path) -> None:
    """Raise UsageError if the bundle does not translate HTML."""
    from manyheads.answer.markup_translation import MarkupTranslator
    from manyheads.errors import BundleError

    try:
        MarkupTranslator(bundle)
    except BundleError:
        raise click.UsageError(
            _(
                "--format html needs a translation model; {path} is a bundle of the task {kind}. Leave it out.",
                path=path,
                kind=bundle.kind,
            )
        ) from None


def read_document(file: str) -> str:
    """Read a whole file with its line ends."""
    from manyheads.text.reading.files import check_readable, file_lines

    path = Path(file)
    check_readable(path, may_be_pipe=True)
    return "".join(file_lines(path, None, with_ends=True))
