"""`manyheads predict --format html`: fragments line by line, or whole documents, with their tags in place."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.prediction_remarks import Remarks
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.lens.markup_translation import MarkupTranslation, MarkupTranslator
    from manyheads.tasks import TextOptions

_DOCUMENT_SUFFIXES = (".html", ".htm", ".xhtml")


def is_document(file: str) -> bool:
    """Return whether a file is translated as one document; each line of any other is a fragment."""
    return Path(file).suffix.lower() in _DOCUMENT_SUFFIXES


def require_translator(bundle: "Bundle", path: Path) -> "MarkupTranslator":
    """Return what translates HTML with this bundle."""
    from manyheads.errors import BundleError
    from manyheads.lens.markup_translation import MarkupTranslator

    try:
        return MarkupTranslator(bundle)
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


class MarkupWriter:
    """Turns HTML into its translations, and collects remarks on them."""

    def __init__(self, translator: "MarkupTranslator", *, as_json: bool, options: "TextOptions | None" = None) -> None:
        self.translator, self.as_json, self.options = translator, as_json, options
        self.remarks = Remarks()

    def document(self, html: str) -> str:
        """Return the translation of a document."""
        (translation,) = self.translator.translate([html], options=self.options)
        unseen = self._remark(1, translation)
        return self._as_json(1, html, translation, unseen) + "\n" if self.as_json else translation.answer

    def answer(self, lines: list[str], start: int) -> Iterator[str]:
        """Yield the output lines of a batch of fragments; `start` is the number of its first line, counted from 1."""
        from manyheads.tasks import one_line
        from manyheads.text.tokens.words import is_blank

        translations = self.translator.translate(lines, first=start - 1, options=self.options)
        for number, (text, translation) in enumerate(zip(lines, translations, strict=True), start):
            unseen = self._remark(number, translation)
            if is_blank(text):
                self.remarks.blank_lines.append(number)
            if self.as_json:
                yield self._as_json(number, text, translation, unseen)
            else:
                yield one_line(translation.answer)

    def _remark(self, number: int, translation: "MarkupTranslation") -> list[str]:
        unseen = [word for text in translation.segments for word in self.translator.bundle.unseen_words(text)]
        unseen = list(dict.fromkeys(unseen))
        self.remarks.add(number, unseen, translation.warnings)
        rated = [one for one in translation.translations if one.confidence is not None]
        if rated:
            self.remarks.rate(number, min(rated, key=lambda one: one.confidence or 0.0))
        self.remarks.n_cut_off += sum(not one.candidates[0].finished for one in translation.translations)
        return unseen

    def _as_json(self, number: int, text: str, translation: "MarkupTranslation", unseen: list[str]) -> str:
        payload = {"line": number, "source": text, **translation.table()}
        if self.translator.bundle.seen_words is not None:
            payload["unseen_words"] = unseen
        return json.dumps(payload, ensure_ascii=False)
