"""OpenDocument texts and presentations: .odt and .odp. Paragraphs and notes are translated, pictures stay."""

from collections.abc import Iterator, Sequence

from manyheads.text.documents.document import DividedText, Document, DocumentFormat, DocumentOptions, Marks
from manyheads.text.documents.zip_archive import read_archive, zip_document
from manyheads.text.markup.inline_segments import InlineToken, Markup, MarkupSegment, split_inline
from manyheads.text.markup.string_segments import with_placeholders
from manyheads.text.markup.xml_scanner import (
    XmlToken,
    element_at,
    elements,
    escape_xml,
    plain_text,
    raw_of,
    scan_xml,
)

_FILES = frozenset(("content.xml", "styles.xml"))  # headers and footers are in the styles
_PARAGRAPHS = frozenset(("text:p", "text:h"))
_AROUND_TEXT = frozenset(("text:span", "text:a"))


class OpenDocument(DocumentFormat):
    """Documents of OpenOffice and LibreOffice."""

    suffixes = (".odt", ".odp")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a document into its paragraphs."""
        return zip_document(read_archive(content), _FILES, _divide, options)


def _divide(name: str, text: str, options: DocumentOptions) -> DividedText:
    marks = Marks(text)
    return marks.divided(Markup(list(_parts(list(scan_xml(text)), marks, options))))


def _parts(tokens: Sequence[XmlToken], marks: Marks, options: DocumentOptions) -> Iterator[str | MarkupSegment]:
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "start" and token.name in _PARAGRAPHS:
            paragraph = element_at(tokens, position)
            content = with_placeholders(_content(paragraph[1:-1], marks, options), plain_text)
            yield token.raw
            yield from split_inline(content, escape_xml, use_placeholders=options.use_placeholders).parts
            yield paragraph[-1].raw
            position += len(paragraph)
        else:
            yield token.raw
            position += 1


def _content(tokens: Sequence[XmlToken], marks: Marks, options: DocumentOptions) -> Iterator[InlineToken]:
    """Yield what is in a paragraph. A note, whose paragraphs are translated apart, is one token with a mark."""
    for element in elements(tokens):
        first, raw = element[0], raw_of(element)
        if first.kind in ("text", "cdata"):
            yield InlineToken("text", escape_xml(first.text) if first.kind == "cdata" else raw, text=first.text)
        elif first.name == "text:s":
            yield InlineToken("text", raw, text=" ")
        elif first.name == "text:tab":
            yield InlineToken("block", raw)
        elif first.name == "text:line-break":
            yield InlineToken("point", raw, "br")
        elif first.name in _AROUND_TEXT and len(element) > 1:
            yield InlineToken("start", first.raw, first.name)
            yield from _content(element[1:-1], marks, options)
            yield InlineToken("end", element[-1].raw, first.name)
        elif any(token.name in _PARAGRAPHS for token in element):
            yield InlineToken("point", marks.put(Markup(list(_parts(element, marks, options)))))
        else:
            yield InlineToken("point", raw)


FORMAT = OpenDocument()
