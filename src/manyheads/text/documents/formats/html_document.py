"""HTML pages. Besides the text, alt, title and similar attributes are translated, and lang names the new language."""

import re
from collections.abc import Callable, Container

from manyheads.text.documents.document import (
    DividedText,
    Document,
    DocumentFormat,
    DocumentOptions,
    Marks,
    decode_markup,
)
from manyheads.text.language_codes import base_of
from manyheads.text.markup.element_placement import escape_html
from manyheads.text.markup.html_segments import html_tokens, unescape_html
from manyheads.text.markup.inline_segments import Escape, split_inline
from manyheads.text.markup.markup_scanner import MarkupToken
from manyheads.text.markup.string_segments import split_string, with_placeholders
from manyheads.text.markup.xml_scanner import escape_xml

_ATTRIBUTES = ("alt", "title", "placeholder", "aria-label", "label")
_DESCRIPTIONS = frozenset(("description", "og:title", "og:description", "twitter:title", "twitter:description"))
_ATTRIBUTE = re.compile(r"""(\s(?P<name>[^\s/>="'][^\s/>=]*+)\s*+=\s*+)("[^"]*+"|'[^']*+'|[^\s>"']++)""")


class HtmlFormat(DocumentFormat):
    """Web pages, also as XHTML."""

    suffixes = (".html", ".htm", ".xhtml")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a page."""
        source = decode_markup(content)
        return source.document(divide_page(source.text, options, is_xml=source.text.lstrip().startswith("<?xml")))


def divide_page(text: str, options: DocumentOptions, *, is_xml: bool) -> DividedText:
    """Divide an HTML page into its text and its attributes."""
    marks = Marks(text)
    tokens = html_tokens(text, lambda tag: _with_language(tag, _with_marks(tag, marks, options), options))
    escape: Escape = escape_xml if is_xml else escape_html
    tokens = with_placeholders(tokens, unescape_html)
    return marks.divided(split_inline(list(tokens), escape, use_placeholders=options.use_placeholders))


def _with_marks(tag: MarkupToken, marks: Marks, options: DocumentOptions) -> str:
    """Return a start tag with marks for the attributes that are translated."""
    attributes = tag.attributes
    names = {name for name in _ATTRIBUTES if name in attributes}
    if tag.name == "meta" and (attributes.get("name") or attributes.get("property", "")).lower() in _DESCRIPTIONS:
        names.add("content")

    def marked(match: re.Match[str]) -> str:
        value = unescape_html(match[3].strip("\"'") if match[3][0] in "\"'" else match[3])
        markup = split_string(value, use_placeholders=options.use_placeholders)
        return f'{match[1]}"{marks.put(markup, escape_xml)}"' if markup.segments else match[0]

    return _changed(tag.raw, names, marked) if names else tag.raw


def _with_language(tag: MarkupToken, raw: str, options: DocumentOptions) -> str:
    """Return a start tag that names the language of the translation if it named that of the source."""
    source, target = base_of(options.source_language), options.target_language
    if not target or (tag.name != "html" and "lang" not in raw.lower()):
        return raw
    attributes = tag.attributes
    names = {
        name
        for name in ("lang", "xml:lang")
        if name in attributes and (tag.name == "html" or base_of(attributes[name]) == source)
    }
    raw = _changed(raw, names, lambda match: f'{match[1]}"{target}"')
    if tag.name == "html" and not names:
        raw = f'{raw[:5]} lang="{target}"{raw[5:]}'
    return raw


def _changed(raw: str, names: Container[str], change: Callable[[re.Match[str]], str]) -> str:
    """Return a tag with the attributes of these names changed."""
    return _ATTRIBUTE.sub(lambda match: change(match) if match["name"].lower() in names else match[0], raw)


FORMAT = HtmlFormat()
