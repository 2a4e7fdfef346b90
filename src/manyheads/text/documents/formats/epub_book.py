"""Electronic books: .epub. Chapters, their titles in the table of contents and the title of the book are translated."""

from collections.abc import Iterator

from manyheads.text.documents.document import DividedText, Document, DocumentFormat, DocumentOptions, Field, divide
from manyheads.text.documents.formats.html_document import divide_page
from manyheads.text.documents.zip_archive import read_archive, zip_document
from manyheads.text.markup.inline_segments import Markup
from manyheads.text.markup.string_segments import split_string
from manyheads.text.markup.xml_scanner import XmlToken, escape_xml, scan_xml

_PAGES = (".xhtml", ".html", ".htm")
_TITLES = frozenset(("dc:title", "text"))  # in the package file, and in the table of contents of EPUB 2


class EpubBook(DocumentFormat):
    """Electronic books."""

    suffixes = (".epub",)

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a book into its chapters."""
        files = read_archive(content)
        suffixes = (*_PAGES, ".opf", ".ncx")
        names = {member.filename for member in files if member.filename.lower().endswith(suffixes)}
        return zip_document(files, names, _divide, options)


def _divide(name: str, text: str, options: DocumentOptions) -> DividedText:
    if name.lower().endswith(_PAGES):
        return divide_page(text, options, is_xml=True)
    return divide(text, list(_titles(text, options)))


def _titles(text: str, options: DocumentOptions) -> Iterator[Field]:
    """Yield titles, and the language of the book."""
    tag = XmlToken("other", "", 0)
    for token in scan_xml(text):
        if token.kind == "text" and tag.kind == "start":
            markup = split_string(token.text, use_placeholders=options.use_placeholders)
            if tag.name == "dc:language" and options.target_language:
                yield Field(token.start, token.end, Markup([options.target_language]))
            elif tag.name in _TITLES and markup.segments:
                yield Field(token.start, token.end, markup, escape_xml)
        tag = token


FORMAT = EpubBook()
