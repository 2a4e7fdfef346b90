"""Word and PowerPoint documents: .docx and .pptx. Paragraphs are translated; pictures, fields and styles stay.

A paragraph is a list of runs, each with its own format. The format that most of its text has is that of the
translation, and runs of another format are around the words that translate theirs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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

_FILES = re.compile(
    r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml"
    r"|ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml"
)
_LINKS = ("hyperlink", "ins", "smartTag", "moveTo", "fldSimple")  # elements around runs
_DROPPED = ("proofErr", "lastRenderedPageBreak", "noBreakHyphen", "softHyphen")
_IDS = re.compile(r'\sw:id="([^"]*)"')


class OfficeDocument(DocumentFormat):
    """Documents of Office Open XML."""

    suffixes = (".docx", ".pptx")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a document into its paragraphs."""
        files = read_archive(content)
        names = {member.filename for member in files if _FILES.fullmatch(member.filename)}
        return zip_document(files, names, _divide, options)


def _divide(name: str, text: str, options: DocumentOptions) -> DividedText:
    """Divide one XML file."""
    prefix = "a" if name.startswith("ppt/") else "w"
    writer = _Writer(prefix, Marks(text).mark, options)
    markup = Markup(list(writer.parts(list(scan_xml(text)))))
    return DividedText([markup], lambda translations: writer.cleaned(translations[0]))


@dataclass(frozen=True)
class _Writer:
    """Divides paragraphs of one file, and writes runs."""

    prefix: str
    mark: str  # before each run that was written
    options: DocumentOptions

    def parts(self, tokens: Sequence[XmlToken]) -> Iterator[str | MarkupSegment]:
        """Yield the segments of all paragraphs, and what is between them."""
        name = f"{self.prefix}:p"
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.kind == "start" and token.name == name:
                paragraph = element_at(tokens, position)
                yield from self._paragraph(paragraph)
                position += len(paragraph)
            else:
                yield token.raw
                position += 1

    def _paragraph(self, tokens: Sequence[XmlToken]) -> Iterator[str | MarkupSegment]:
        if any(token.name == tokens[0].name and token.kind == "start" for token in tokens[1:]):
            yield tokens[0].raw  # it contains others, in a text box: these are translated
            yield from self.parts(tokens[1:])
            return
        children = list(elements(tokens[1:-1]))
        first = next((index for index, own in enumerate(children) if not self._is(own, "pPr")), 0)
        last = len(children) - (bool(children) and self._is(children[-1], "endParaRPr"))
        base = self._base(children[first:last])
        content = with_placeholders(self._content(children[first:last], base), plain_text)
        markup = split_inline(list(content), escape_xml, use_placeholders=self.options.use_placeholders)
        if not markup.segments:
            yield raw_of(tokens)
            return
        yield tokens[0].raw + "".join(map(raw_of, children[:first])) + self._opening(base)
        yield from markup.parts
        yield self._closing + "".join(map(raw_of, children[last:])) + tokens[-1].raw

    def _is(self, element: Sequence[XmlToken], *names: str) -> bool:
        return element[0].name in [f"{self.prefix}:{name}" for name in names]

    def _base(self, children: Sequence[Sequence[XmlToken]]) -> str:
        """Return the format that most of the text has."""
        counts: Counter[str] = Counter()
        for child in children:
            if self._is(child, "r"):
                counts[self._format(child)] += sum(len(token.text) for token in child if token.kind == "text")
        return max(counts, key=lambda one: counts[one], default="")

    def _format(self, run: Sequence[XmlToken]) -> str:
        properties = (raw_of(own) for own in elements(run[1:-1]) if self._is(own, "rPr"))
        return re.sub(r'\s(?:dirty|err)="[^"]*"', "", next(properties, ""))

    def _opening(self, properties: str) -> str:
        space = ' xml:space="preserve"' if self.prefix == "w" else ""
        return f"{self.mark}<{self.prefix}:r>{properties}<{self.prefix}:t{space}>"

    @property
    def _closing(self) -> str:
        return f"</{self.prefix}:t></{self.prefix}:r>"

    def _content(self, children: Sequence[Sequence[XmlToken]], base: str) -> Iterator[InlineToken]:
        """Yield what is in a paragraph or a link; a run with format `base` is open before and after each token."""
        closing, opening = self._closing, self._opening(base)
        for child in children:
            raw = raw_of(child)
            if self._is(child, "r"):
                yield from self._run(child, base)
            elif self._is(child, *_LINKS) and len(child) > 1:
                inner = list(elements(child[1:-1]))
                own = self._base(inner)
                yield InlineToken("start", f"{closing}{child[0].raw}{self._opening(own)}", child[0].name)
                yield from self._content(inner, own)
                yield InlineToken("end", f"{closing}{child[-1].raw}{opening}", child[0].name)
            elif self._is(child, "bookmarkStart", "commentRangeStart", "bookmarkEnd", "commentRangeEnd"):
                name, found = child[0].name, _IDS.search(raw)
                element = f"{name.removesuffix('Start').removesuffix('End')} {found[1] if found else ''}"
                kind = "start" if name.endswith("Start") else "end"
                yield InlineToken(kind, f"{closing}{raw}{opening}", element)
            elif self._is(child, "br"):
                yield InlineToken("point", f"{closing}{raw}{opening}", "br")
            elif not self._is(child, *_DROPPED):
                yield InlineToken("block", f"{closing}{raw}{opening}")

    def _run(self, run: Sequence[XmlToken], base: str) -> Iterator[InlineToken]:
        """Yield a run: its text, breaks in it, or the whole if it has anything else, such as a picture."""
        children = [own for own in elements(run[1:-1]) if not self._is(own, "rPr", *_DROPPED)]
        if not all(self._is(own, "t", "br", "tab") for own in children):
            yield InlineToken("block", f"{self._closing}{raw_of(run)}{self._opening(base)}")
            return
        own_format = self._format(run)
        space = ' xml:space="preserve"' if self.prefix == "w" else ""
        open_text, close_text = f"<{self.prefix}:t{space}>", f"</{self.prefix}:t>"
        if own_format != base:
            yield InlineToken("start", f"{self._closing}{self._opening(own_format)}", "run")
        for child in children:
            if self._is(child, "t"):
                text = "".join(token.text for token in child if token.kind in ("text", "cdata"))
                yield InlineToken("text", escape_xml(text), text=text)
            else:
                raw = f"{close_text}{raw_of(child)}{open_text}"
                yield InlineToken("point", raw, "br") if self._is(child, "br") else InlineToken("block", raw)
        if own_format != base:
            yield InlineToken("end", f"{self._closing}{self._opening(base)}", "run")

    def cleaned(self, text: str) -> str:
        """Return a file without the runs that were written and are empty."""
        p = self.prefix
        empty = re.compile(
            rf"{self.mark}<{p}:r>(?:<{p}:rPr(?:[^>]*/>|[^>]*>(?:(?!</{p}:rPr>).)*</{p}:rPr>))?<{p}:t[^>]*></{p}:t></{p}:r>",
            re.DOTALL,
        )
        return empty.sub("", text).replace(self.mark, "")


FORMAT = OfficeDocument()
