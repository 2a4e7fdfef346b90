"""HTML as segments to translate: `split_markup` divides it at block-level tags.

All else is copied unchanged: attributes, comments, scripts, code, and elements with translate="no" or
class="notranslate".
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from manyheads.text.markup.inline_segments import InlineToken, Markup, split_inline
from manyheads.text.markup.markup_scanner import RAW_ELEMENTS, MarkupToken, scan_markup


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INLINE = _names(
    "a abbr acronym area audio b bdi bdo big br canvas cite code data del dfn em embed font i img input ins kbd label "
    "link map mark meta meter noscript object output param picture progress q rp rt ruby s samp script small source "
    "span strike strong style sub sup svg math time track tt u var video wbr xmp"
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_UNTOUCHED = _names("pre code kbd samp var svg math") | RAW_ELEMENTS
# Their end tag may be left out before another of the same name.
_IMPLIED_END = _names("p li dt dd tr td th option")
_INVISIBLE = _names("script style link meta")

_LONG_REFERENCE = re.compile(r"&#[0-9]{8,};?")


def split_markup(source: str, *, use_placeholders: bool = False) -> Markup:
    """Divide an HTML document or fragment into segments.

    An inline element that is not translated, such as `<code>`, is left out of the text. With `use_placeholders` a
    placeholder such as ⟦1⟧ stands for it, for a model that has learned to copy them.
    """
    return split_inline(html_tokens(source), use_placeholders=use_placeholders)


def html_tokens(source: str, on_tag: Callable[[MarkupToken], str] = lambda tag: tag.raw) -> Iterator[InlineToken]:
    """Yield the tokens of HTML; `on_tag` returns what is written for a tag outside what is not translated."""
    return _with_atoms(scan_markup(source), on_tag)


@dataclass
class _Untouched:
    """An element that is being copied, up to its end tag."""

    name: str
    is_inline: bool
    raws: list[str]
    depth: int = 1  # open elements of this name
    others: dict[str, int] = field(default_factory=dict)  # open elements of other names


def _with_atoms(tokens: Iterator[MarkupToken], on_tag: Callable[[MarkupToken], str]) -> Iterator[InlineToken]:
    """Yield tokens of inline content and those that divide it; an element that is not translated is one token."""
    untouched: _Untouched | None = None
    open_names: dict[str, int] = {}
    for token in tokens:
        if untouched is not None:
            if not _ends_before(untouched, token, open_names):
                untouched.raws.append(token.raw)
                if _has_ended(untouched, token):
                    yield _finished(untouched)
                    untouched = None
                continue
            yield _finished(untouched)
            untouched = None
        if token.kind == "start" and token.name not in _VOID and not token.is_self_closing and _is_untouched(token):
            untouched = _Untouched(token.name, token.name in _INLINE, [token.raw])
            continue
        if token.kind == "start" and token.name not in _VOID:
            open_names[token.name] = open_names.get(token.name, 0) + 1
        elif token.kind == "end" and open_names.get(token.name, 0):
            open_names[token.name] -= 1
        yield _plain_token(token if token.kind != "start" else replace(token, raw=on_tag(token)))
    if untouched is not None:
        yield _finished(untouched)


def _plain_token(token: MarkupToken) -> InlineToken:
    if token.kind == "text":
        return InlineToken("text", token.raw, text=unescape_html(token.raw))
    if token.kind == "other":
        return InlineToken("point", token.raw)
    if token.name not in _INLINE:
        return InlineToken("block", token.raw)
    if token.name in _VOID or token.is_self_closing:
        return InlineToken("point", token.raw, token.name)
    return InlineToken(token.kind, token.raw, token.name)


def _is_untouched(token: MarkupToken) -> bool:
    if token.name in _UNTOUCHED:
        return True
    if "translate" not in token.raw.lower():
        return False
    attributes = token.attributes
    return attributes.get("translate", "").lower() == "no" or "notranslate" in attributes.get("class", "").split()


def _ends_before(element: _Untouched, token: MarkupToken, outer: dict[str, int]) -> bool:
    """Return whether an element without end tag ends where a token starts."""
    if element.name in RAW_ELEMENTS:
        return False
    if token.kind == "start":
        return token.name == element.name in _IMPLIED_END and not any(element.others.values())
    is_outer = token.kind == "end" and token.name != element.name and outer.get(token.name, 0) > 0
    return is_outer and not element.others.get(token.name, 0)


def _has_ended(element: _Untouched, token: MarkupToken) -> bool:
    """Count a tag inside an element, and return whether it was the element's end tag."""
    change = {"start": 1, "end": -1}.get(token.kind, 0)
    if not change or token.is_self_closing or token.name in _VOID:
        return False
    if token.name == element.name:
        element.depth += change
    else:
        element.others[token.name] = max(0, element.others.get(token.name, 0) + change)
    return element.depth == 0


def _finished(element: _Untouched) -> InlineToken:
    raw = "".join(element.raws)
    if not element.is_inline:
        return InlineToken("block", raw)
    return InlineToken("point" if element.name in _INVISIBLE else "atom", raw, element.name)


def unescape_html(raw: str) -> str:
    """Return the text that HTML stands for; Python refuses to convert numbers of thousands of digits."""
    return html.unescape(_LONG_REFERENCE.sub("\ufffd", raw)) if "&" in raw else raw
