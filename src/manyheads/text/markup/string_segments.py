"""Strings of programs as segments to translate: placeholders and tags in them are copied unchanged.

A string is plain text with placeholders such as {name}, %s, %(x)d, {{ value }} and ${x}, tags, and line ends. A plural
in the syntax of ICU, {n, plural, …}, is one placeholder: its forms are not translated.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from manyheads.text.markup.copyable_spans import copyable_spans
from manyheads.text.markup.inline_segments import InlineToken, Markup, split_inline

_BRACES = r"\{(?:[^{}]++|\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\})*+\}"
_PLACEHOLDER = re.compile(
    rf"""
      \{{\{{[^{{}}\n]{{0,500}}\}}\}} | \{{%[^%\n]{{0,500}}%\}}     # {{{{ value }}}}, {{% tag %}}
    | (?=\{{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal|number|date|time|duration)\b){_BRACES}  # ICU
    | [$%\#@]?\{{[^\s{{}}]*+(?:,\s*\w+)?\}}                       # {{name}}, ${{name}}, %{{name}}, {{0:.2f}}
    | (?<![0-9%])%(?:\([A-Za-z_]\w*\)|[0-9]+\$)?[-+\#0]*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*))?
      (?:hh?|ll?|[Lqjzt])?[sdiufFxXoeEgGcra@%](?![A-Za-z])        # %s, %(x)d, %1$s
    | (?<![\w-])--[A-Za-z{{][\w{{}}-]*                              # --{{name}}-option
    | (?<![\w.])(?:[A-Za-z]\w*\.)+[A-Za-z]\w*_\w+                 # module.some_name
    | \$[A-Za-z_]\w*\$ | \$t\([^()\n]*\)                          # $name$, $t(key)
    """,
    re.VERBOSE,
)
_HINT = re.compile(r"[{%$_]|--")
_TAG = re.compile(r"<(/?)([A-Za-z0-9][\w:.-]*)(?:\s[^<>]*)?(/?)>")
_VOID = frozenset(("br", "hr", "img", "input", "wbr"))
_LINE_END = re.compile(r"\r\n?|\n")


def split_string(text: str, *, use_placeholders: bool) -> Markup:
    """Divide a string into segments, usually one. Nothing is escaped."""
    tokens = with_placeholders(_lines(text), str, with_code=True)
    return split_inline(tokens, str, use_placeholders=use_placeholders)


def _lines(text: str) -> Iterator[InlineToken]:
    """Yield a string as texts, tags and the line ends between them, which are treated as <br>."""
    position = 0
    for match in re.finditer(rf"{_TAG.pattern}|{_LINE_END.pattern}", text):
        if position < match.start():
            yield _text(text[position : match.start()])
        position = match.end()
        if match[2] is None:
            yield InlineToken("point", match[0], "br")
        elif match[3] or match[2].lower() in _VOID:
            yield InlineToken("point", match[0], match[2].lower())
        else:
            yield InlineToken("end" if match[1] else "start", match[0], match[2])
    if position < len(text):
        yield _text(text[position:])


def with_placeholders(
    tokens: Iterable[InlineToken], unescape: Callable[[str], str], *, with_code: bool = False
) -> Iterator[InlineToken]:
    """Yield tokens with each placeholder in a text as one token, and `with_code` also each URL and code.

    `unescape` returns the plain text that a part of a raw text stands for.
    """
    for token in tokens:
        if token.kind != "text":
            yield token
            continue
        position = 0
        for start, end in _spans(token.raw, with_code=with_code):
            if position < start:
                yield InlineToken("text", token.raw[position:start], text=unescape(token.raw[position:start]))
            yield InlineToken("atom", token.raw[start:end])
            position = end
        if not position:
            yield token
        elif position < len(token.raw):
            yield InlineToken("text", token.raw[position:], text=unescape(token.raw[position:]))


def _spans(text: str, *, with_code: bool) -> Iterator[tuple[int, int]]:
    """Yield where placeholders are, and between them what `copyable_spans` finds."""
    position = 0
    found = [match.span() for match in _PLACEHOLDER.finditer(text)] if _HINT.search(text) else []
    for start, end in [*found, (len(text), len(text))]:
        if with_code:
            between = copyable_spans(text[position:start])
            yield from ((position + first, position + last) for first, last in between)
        if start < end:
            yield start, end
        position = end


def _text(text: str) -> InlineToken:
    return InlineToken("text", text, text=text)
