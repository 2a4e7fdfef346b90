"""`scan_markup`: HTML as a sequence of tokens that together are exactly the input.

It takes linear time for every input, also for tags, comments and quotes that do not close (html.parser takes
quadratic time for them; docs/decisions/0036). Nothing is an error: what is not a tag is text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["text", "start", "end", "other"]  # other: a comment, a declaration, the content of a script

# Their content has no tags; in a title it is text.
RAW_ELEMENTS = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"))
_TEXT_ELEMENTS = frozenset(("title",))

_NAME = r"[A-Za-z][^\s/<>]*+"
# The > is optional so that a match tells how far a tag that does not close was read.
_TAG = re.compile(rf"""<(/?)({_NAME})(?>[^<>=]++|=\s*+(?>"[^"]*+"|'[^']*+')?)*+(>?)""")
_TAG_WITHOUT_QUOTES = re.compile(rf"<(/?)({_NAME})[^<>]*+(>?)")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"""[\s/]([^\s/>="'][^\s/>=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>"']++)?)?""")


@dataclass(frozen=True, slots=True)
class MarkupToken:
    """A part of the input, unchanged; `name` is that of a tag, in lower case."""

    kind: TokenKind
    raw: str
    name: str = ""

    @property
    def is_self_closing(self) -> bool:
        """Whether a tag ends in />, and the slash is not part of an attribute's value."""
        return self.raw.endswith("/>") and (self.raw[-3] in "\"' \t\n\r\f" or len(self.raw) == len(self.name) + 3)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a tag: names in lower case, values as they are written, without quotes."""
        found: dict[str, str] = {}
        for name, value in _ATTRIBUTE.findall(self.raw, len(self.name) + 1):
            found.setdefault(name.lower(), value.strip("\"'"))
        return found


def scan_markup(html: str) -> Iterator[MarkupToken]:
    """Yield the tokens of a document or a fragment; joined, their `raw` is the input."""
    last_close = html.rfind(">")
    n_wasted = 0  # characters that were read for tags that do not close
    position = text_start = 0
    while (position := html.find("<", position)) >= 0:
        # Where quotes do not match, a tag may be read far in vain. After too much of this, quotes do not count.
        match = (_TAG if n_wasted <= 4 * len(html) else _TAG_WITHOUT_QUOTES).match(html, position)
        if match is not None and match[3]:
            token = MarkupToken("end" if match[1] else "start", match[0], match[2].lower())
        elif match is None and (end := _declaration_end(html, position, last_close)) > position:
            token = MarkupToken("other", html[position:end])
        else:  # a stray <
            n_wasted += match.end() - position if match else 0
            position += 1
            continue
        if text_start < position:
            yield MarkupToken("text", html[text_start:position])
        yield token
        position = text_start = position + len(token.raw)
        if token.kind == "start" and token.name in RAW_ELEMENTS | _TEXT_ELEMENTS:
            position = _raw_end(html, position, token.name)
            if text_start < position:
                kind: TokenKind = "text" if token.name in _TEXT_ELEMENTS else "other"
                yield MarkupToken(kind, html[text_start:position])
            text_start = position
    if text_start < len(html):
        yield MarkupToken("text", html[text_start:])


def _declaration_end(html: str, position: int, last_close: int) -> int:
    """Return where a comment or declaration ends; `position` if none starts there."""
    if html.startswith("<!--", position):
        if html.startswith(("<!-->", "<!--->"), position):  # empty ones
            return html.index(">", position) + 1
        closing = _COMMENT_END.search(html, position + 4)
        return closing.end() if closing else len(html)
    if position > last_close or not html.startswith(("<!", "<?", "</"), position):
        return position
    if html.startswith("</", position) and html[position + 2].isspace():
        return position  # a comment to browsers; here more likely text
    return html.index(">", position) + 1


def _raw_end(html: str, position: int, name: str) -> int:
    """Return where the content of an element without tags ends: at its end tag, or with the input."""
    closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(html, position)
    return closing.start() if closing else len(html)
