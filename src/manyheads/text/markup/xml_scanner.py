"""XML of unknown origin: `scan_xml` checks a file and yields tokens that together are exactly its text.

The standard library's expat decides what is well-formed. A DTD with declarations is refused: its entities could expand
without bounds or name other files. External files are never read.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn
from xml.parsers import expat

from manyheads.errors import DataError
from manyheads.messages import _

MAX_DEPTH = 256

# Exact for well-formed XML: an attribute's value may contain > but no <.
_TOKEN = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?:[^>"']|"[^"]*"|'[^']*')*+>"""
    r"""|<(/?)([^\s/<>"']+)((?:[^>"']|"[^"]*"|'[^']*')*+)>|[^<]+""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""([^\s=/"']+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True, slots=True)
class XmlToken:
    """A part of the input, unchanged."""

    kind: str  # "text", "start", "end", "empty", "cdata", or "other": a comment, an instruction, a declaration
    raw: str
    start: int
    name: str = ""

    @property
    def end(self) -> int:
        """Where it ends in the input."""
        return self.start + len(self.raw)

    @property
    def text(self) -> str:
        """The plain text of a text or a CDATA section."""
        return self.raw[9:-3] if self.kind == "cdata" else plain_text(self.raw)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a tag."""
        return {name: html.unescape(value[1:-1]) for name, value in _ATTRIBUTE.findall(self.raw)}

    def with_attribute(self, name: str, value: str) -> str:
        """Return a start tag with an attribute set."""
        written = f'{name}="{escape_xml(value)}"'
        pattern = re.compile(rf"""(?<=\s){re.escape(name)}\s*=\s*("[^"]*"|'[^']*')""")
        if pattern.search(self.raw):
            return pattern.sub(lambda _match: written, self.raw, count=1)
        end = 2 if self.raw.endswith("/>") else 1
        return f"{self.raw[:-end].rstrip()} {written}{self.raw[-end:]}"


def scan_xml(text: str) -> Iterator[XmlToken]:
    """Yield the tokens of XML that `check_xml` has accepted."""
    for match in _TOKEN.finditer(text):
        raw = match[0]
        if match[2] is not None:
            kind = "end" if match[1] else "empty" if raw.endswith("/>") else "start"
            yield XmlToken(kind, raw, match.start(), match[2])
        elif raw.startswith("<"):
            yield XmlToken("cdata" if raw.startswith("<![CDATA[") else "other", raw, match.start())
        else:
            yield XmlToken("text", raw, match.start())


def elements(tokens: Sequence[XmlToken]) -> Iterator[Sequence[XmlToken]]:
    """Yield the tokens of each element, or the one token of what is no element, side by side in a list of tokens."""
    start, depth = 0, 0
    for index, token in enumerate(tokens):
        depth += {"start": 1, "end": -1}.get(token.kind, 0)
        if not depth:
            yield tokens[start : index + 1]
            start = index + 1


def element_at(tokens: Sequence[XmlToken], start: int) -> Sequence[XmlToken]:
    """Return the tokens of the element that starts at an index."""
    depth, end = 0, start
    while True:
        depth += {"start": 1, "end": -1}.get(tokens[end].kind, 0)
        end += 1
        if not depth:
            return tokens[start:end]


def raw_of(tokens: Sequence[XmlToken]) -> str:
    """Return tokens as they are written."""
    return "".join(token.raw for token in tokens)


def plain_text(raw: str) -> str:
    """Return the text that a part of an XML text stands for."""
    return html.unescape(raw) if "&" in raw else raw


def escape_xml(text: str) -> str:
    """Return a text as XML; characters that XML does not have are left out."""
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
    return html.escape(text)


def safe_parser(
    on_start: Callable[[str, dict[str, str]], None] = lambda name, attributes: None,
    on_end: Callable[[str], None] = lambda name: None,
) -> expat.XMLParserType:
    """Return a parser that refuses declarations and deep nesting, and reads no other file."""
    parser = expat.ParserCreate()
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(_("Its XML is nested more than {most} levels deep.", most=MAX_DEPTH))
        on_start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        on_end(name)

    def refuse(*_declaration: object) -> NoReturn:
        raise DataError(_("Its XML declares entities, which could read other files or fill the memory."))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = parser.ElementDeclHandler = refuse
    parser.AttlistDeclHandler = parser.NotationDeclHandler = parser.ExternalEntityRefHandler = refuse
    return parser


def xml_error(error: expat.ExpatError) -> DataError:
    """Return the error for XML that is not well-formed."""
    reason = expat.ErrorString(error.code)
    return DataError(_("Its XML is damaged in line {line} ({reason}).", line=error.lineno, reason=reason))


def check_xml(content: bytes | str) -> None:
    """Raise DataError unless a whole file is well-formed XML without declarations of entities."""
    try:
        safe_parser().Parse(content, True)
    except expat.ExpatError as error:
        raise xml_error(error) from None
