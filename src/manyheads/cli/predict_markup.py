"""`manyheads predict --format html`: fragments line by line, or whole documents, with their tags in place."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from manyheads.cli.prediction_remarks import Remarks
from manyheads.language import pick

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
            f"--format html needs a translation model; {path} is a bundle of the task {bundle.kind}. Leave it out."
        ) from None


def read_document(file: str) -> str:
    """Read a whole file with its line ends."""
    from manyheads.text.files import check_readable, file_lines

    path = Path(file)
    check_readable(path, may_be_pipe=True)
    return "".join(file_lines(path, None, with_ends=True))


class MarkupWriter:
    """Writes translations of HTML, and collects remarks on them."""

    def __init__(
        self, translator: "MarkupTranslator", stream: TextIO, *, as_json: bool, options: "TextOptions | None" = None
    ) -> None:
        self.translator, self.stream, self.as_json, self.options = translator, stream, as_json, options
        self.remarks = Remarks()
        self.n_cut_off = 0

    def document(self, html: str) -> None:
        """Write the translation of a document."""
        (translation,) = self.translator.translate([html], options=self.options)
        unseen = self._remark(1, translation)
        self.stream.write(self._as_json(1, html, translation, unseen) + "\n" if self.as_json else translation.answer)
        self._finish()

    def fragments(self, batches: Iterable[tuple[list[str], bool]]) -> None:
        """Write one line for each line; a batch tells whether the writer of standard input pauses after it."""
        start = 1
        for batch, is_pause in batches:
            for answer, is_blank in self._answers(batch, start):
                if is_blank:
                    self.remarks.blank_lines.append(start)
                self.stream.write(f"{answer}\n")
                start += 1
            self.stream.flush()
            if is_pause:
                self.remarks.show()
        self._finish()

    def _answers(self, texts: list[str], start: int) -> Iterator[tuple[str, bool]]:
        """Yield the output of each text, and whether the text is blank."""
        from manyheads.tasks import one_line
        from manyheads.text.words import is_blank

        translations = self.translator.translate(texts, first=start - 1, options=self.options)
        for number, (text, translation) in enumerate(zip(texts, translations, strict=True), start):
            unseen = self._remark(number, translation)
            if self.as_json:
                yield self._as_json(number, text, translation, unseen), is_blank(text)
            else:
                yield one_line(translation.answer), is_blank(text)

    def _remark(self, number: int, translation: "MarkupTranslation") -> list[str]:
        unseen = [word for text in translation.segments for word in self.translator.bundle.unseen_words(text)]
        unseen = list(dict.fromkeys(unseen))
        self.remarks.add(number, unseen, translation.warnings)
        rated = [one for one in translation.translations if one.confidence is not None]
        if rated:
            self.remarks.rate(number, min(rated, key=lambda one: one.confidence or 0.0))
        self.n_cut_off += sum(not one.candidates[0].finished for one in translation.translations)
        return unseen

    def _as_json(self, number: int, text: str, translation: "MarkupTranslation", unseen: list[str]) -> str:
        payload = {"line": number, "source": text, **translation.table()}
        if self.translator.bundle.seen_words is not None:
            payload["unseen_words"] = unseen
        return json.dumps(payload, ensure_ascii=False)

    def _finish(self) -> None:
        self.remarks.show()
        if self.n_cut_off:
            click.echo(
                pick(
                    f"{self.n_cut_off} of the translations were cut off at the maximum length.",
                    f"{self.n_cut_off} 条译文达到最大长度而被截断。",
                ),
                err=True,
            )
