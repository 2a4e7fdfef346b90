"""`manyheads translate-file`: a document in, the same document in another language out."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import (
    check_text_options,
    decode_changes,
    decode_options,
    read_text_options,
    text_options,
    with_decode_changes,
)
from manyheads.cli.rendering.output import check_folder_of
from manyheads.messages import _, _n
from manyheads.text.documents.formats import document_suffixes

if TYPE_CHECKING:
    from manyheads.answer.document_translation import DocumentTranslation
    from manyheads.bundle import Bundle

_N_SHOWN = 5  # words of a warning
_MAX_TEXT = 60  # characters of a text in a warning


@click.command(
    short_help=_("Translate a document: a page, a book, a catalog of messages."),
    help=_(
        """Translate FILE and write it to another file. Only its text changes.

        Formats: {suffixes}. Tags and formats are put around the words that translate theirs. Code, links, keys,
        placeholders such as {{name}} and %s, times and everything else stay as they are.

        In .po and XLIFF files, texts without a translation and fuzzy ones are translated, with --all every text; the
        source text is never changed. In HTML, alt, title and the description are translated as well, and lang names
        the new language.

        With --abstain, a text whose translation has a lower confidence stays in its language.

        \b
        Example:
          manyheads translate-file runs/quickstart/bundle page.html -o page.zh.html
          manyheads translate-file runs/quickstart/bundle letter.docx -o letter.zh.docx --glossary terms.tsv
          manyheads translate-file runs/quickstart/bundle zh.po -o zh.new.po
        """,
        suffixes=document_suffixes(),
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help=_("Write the translated document to this file."),
)
@click.option(
    "--all",
    "replaces",
    is_flag=True,
    help=_("Translate texts that have a translation, too (.po, XLIFF)."),
)
@decode_options
@text_options
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    help=_("Inference engine: native, torch or auto."),
)
@click.option("--device", default="auto", show_default=True, help=_("cpu, cuda, mps or auto."))
def translate_file(
    bundle: Path,
    file: Path,
    output: Path,
    replaces: bool,
    engine: str,
    device: str,
    glossary: Path | None,
    keep: tuple[str, ...],
    prefix: str | None,
    **decoding: Any,
) -> None:
    """Translate one document."""
    changes = decode_changes(**decoding)
    requirements = read_text_options(glossary, keep, prefix)
    content = _read(file, output)
    from manyheads.answer.document_translation import DocumentTranslator
    from manyheads.answer.request import AnswerOptions
    from manyheads.bundle import load
    from manyheads.storage import atomic_write, naming_full_disk
    from manyheads.tasks import TextOptions

    loaded = with_decode_changes(load(bundle, device=device, engine=engine), bundle, changes)
    check_text_options(loaded, bundle, AnswerOptions(changes, **requirements))
    found = DocumentTranslator(loaded).translate(
        file,
        content,
        replaces=replaces,
        options=TextOptions(**requirements) if requirements else None,
        progress=_make_progress(),
    )
    with naming_full_disk(output):
        atomic_write(output.resolve(), found.content)
    _show_result(found, loaded, output)


def _read(file: Path, output: Path) -> bytes:
    """Return the content of a document that can be translated and written."""
    from manyheads.bounded_files import BoundsError, read_bounded
    from manyheads.errors import DataError
    from manyheads.text.documents.document import MAX_DOCUMENT_BYTES
    from manyheads.text.documents.formats import document_format
    from manyheads.text.reading.files import check_readable

    check_readable(file)
    if document_format(file) is None:
        raise DataError(
            _(
                "{path}: documents end in {suffixes}. Lines of text are translated by `manyheads predict`.",
                path=file,
                suffixes=document_suffixes(),
            )
        )
    if output.resolve() == file.resolve():
        raise DataError(_("{path} is the file being read. Choose another output file.", path=output))
    if output.is_dir():
        raise DataError(_("{path} is a folder. Choose a file to write to.", path=output))
    check_folder_of(output)
    try:
        return read_bounded(file, MAX_DOCUMENT_BYTES)
    except BoundsError as error:
        raise DataError(_("{path}: {reason}.", path=file, reason=error)) from None
    except OSError as error:
        raise DataError(_("{path} cannot be read: {reason}.", path=file, reason=error.strerror)) from None


def _make_progress() -> Callable[[int, int], None]:
    """Return a callback that shows how many texts are done, in a terminal."""
    if not sys.stderr.isatty():
        return lambda done, of: None

    def show(done: int, of: int) -> None:
        counts = _("{done:,} of {of:,} texts", done=done, of=of)
        click.echo(f"\r{counts} ", err=True, nl=done == of)

    return show


def _show_result(found: "DocumentTranslation", bundle: "Bundle", output: Path) -> None:
    """Write what was translated, and what to check, to standard error."""
    n_texts = len(found.texts)
    click.echo(
        _n("{path}: 1 text was translated.", "{path}: {n:,} texts were translated.", n_texts, path=output), err=True
    )
    unseen = list(dict.fromkeys(word for text in found.texts for word in bundle.unseen_words(text)))
    if unseen:
        click.echo(
            _n(
                "Warning: 1 word did not occur in training: {words}.",
                "Warning: {n:,} words did not occur in training: {words}.",
                len(unseen),
                words=_(", ").join(unseen[:_N_SHOWN]) + ("…" if len(unseen) > _N_SHOWN else ""),
            ),
            err=True,
        )
    pairs = list(zip(found.texts, found.translations, strict=True))
    abstained = [text for text, one in pairs if one.abstained]
    suspect = [text for text, one in pairs if not one.abstained and (one.is_low_confidence or one.warnings)]
    if abstained:
        click.echo(
            _n(
                "Warning: 1 text has a confidence below --abstain and stays as it is: {first}",
                "Warning: {n:,} texts have a confidence below --abstain and stay as they are, such as: {first}",
                len(abstained),
                first=_excerpt(abstained[0]),
            ),
            err=True,
        )
    if suspect:
        click.echo(
            _n(
                "Warning: check the translation of 1 text, which has a low confidence or looks wrong: {first}",
                "Warning: check the translations of {n:,} texts, which have a low confidence or look wrong, such as: "
                "{first}",
                len(suspect),
                first=_excerpt(suspect[0]),
            ),
            err=True,
        )


def _excerpt(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
