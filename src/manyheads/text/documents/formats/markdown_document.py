"""Markdown. Paragraphs, headings, list items and table cells are translated.

Front matter, code, links' targets, HTML tags, formulas and attributes such as {#id} stay. markdown-it finds the blocks;
what is inside a line is divided here, since a parser does not tell where it found it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from manyheads.text.documents.document import (
    Document,
    DocumentFormat,
    DocumentOptions,
    Field,
    decode_text,
    divide,
    missing_library,
)
from manyheads.text.markup.html_segments import split_markup
from manyheads.text.markup.inline_segments import InlineToken, split_inline
from manyheads.text.markup.string_segments import with_placeholders

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*?\r?\n)??\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"!!!|\?\?\?|:::|\{%|\[\[?_?TOC_?\]")  # lines of extensions
_TARGET = r"""\((?:[^()\s\\]|\\.|\([^()\s]*\))*(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)"""
_INLINE = re.compile(
    rf"""
      (?P<escape>\\[!-/:-@\[-`{{-~])
    | (?P<code>(?<!`)(?P<ticks>`++).{{1,4000}}?(?<!`)(?P=ticks)(?!`)
      | \$\$[^$]+\$\$ | \$(?=[^\s$])[^$\n]*(?<=[^\s$])\$(?!\d)             # formulas
      | !\[[^\[\]\n]*\](?:{_TARGET}|\[[^\[\]\n]*\])?                       # images
      | <(?:https?:|mailto:)[^<>\s]*> | \{{[:.\#][^{{}}\n]*\}} | &(?:\w+|\#\w+); | \[\^[^\]\s]{{1,100}}\](?!:) )
    | (?P<lead>\A(?:\[\^[^\]\s]{{1,100}}\]:|\[[ xX]\])[ \t]+)                      # a footnote, an item of a task list
    | (?P<tag></?[A-Za-z][^<>\n]*>|<!--.{{0,4000}}?-->)
    | (?P<open>\[)
    | (?P<close>\](?:{_TARGET}|\[[^\[\]\n]*\])?)
    | (?P<mark>\*{{1,3}}|_{{1,3}}|~~)
    | (?P<break>(?:(?<![ ])[ ]{{2,}}+|\\)?\n)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPECIAL = re.compile(r"([\\`*_\[\]<|])")
_BLOCK_START = re.compile(r"(\d{1,9}(?=[.)](?:\s|\Z)))|(?=[-+#>=](?:\s|\Z))")
_VOID = ("<br", "<img", "<hr", "<input", "<wbr", "<!--")


class MarkdownDocument(DocumentFormat):
    """CommonMark with tables."""

    suffixes = (".md", ".markdown")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a page into its blocks."""
        source = decode_text(content)
        return source.document(divide(source.text, list(_fields(source.text, options))))


def _fields(text: str, options: DocumentOptions) -> Iterator[Field]:
    """Yield the text of all blocks."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise missing_library("markdown-it-py") from None
    front = _FRONT_MATTER.match(text)
    first = front.end() if front else 0
    lines, starts = text[first:].split("\n"), [first]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    references: dict[str, Any] = {}
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    cursors: dict[int, int] = {}  # by line: where the cells of a table that have been found end
    for token in parser.parse(text[first:], references):
        if token.map is None:
            continue
        if token.type == "html_block" and token.level == 0:
            start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
            yield Field(start, end, split_markup(text[start:end], use_placeholders=options.use_placeholders))
        elif token.type == "inline":
            spans = _spans(token.content.split("\n"), token.map[0], lines, starts, cursors)
            if spans:
                content = _content(token.content, text, spans, references.get("references", {}))
                tokens = with_placeholders(content, _unescape, with_code=True)
                markup = split_inline(tokens, _escape, use_placeholders=options.use_placeholders)
                if markup.segments:
                    yield Field(spans[0][0], spans[-1][1], markup)


def _spans(
    content: Sequence[str], first: int, lines: Sequence[str], starts: Sequence[int], cursors: dict[int, int]
) -> list[tuple[int, int]]:
    """Return where the lines of a block are in the file; none if they are written otherwise, as with an escaped |."""
    spans = []
    for number, line in enumerate(content, first):
        column = lines[number].find(line, cursors.get(number, 0)) if number < len(lines) else -1
        if column < 0:
            return []
        cursors[number] = column + len(line)
        spans.append((starts[number] + column, starts[number] + column + len(line)))
    return spans


def _content(
    content: str, text: str, spans: Sequence[tuple[int, int]], references: Mapping[str, Any]
) -> Iterator[InlineToken]:
    """Yield the tokens of a block, whose lines are at these spans of the file."""
    tokens: list[InlineToken] = []
    opened: list[int] = []  # indices of marks and brackets that may have a partner
    position, n_lines, line_start = 0, 0, 0

    def add_text(raw: str) -> None:
        tokens.append(InlineToken("text", raw, text=_unescape(raw)))

    for match in _INLINE.finditer(content):
        if position < match.start():
            add_text(content[position : match.start()])
        position = match.end()
        raw = match[0]
        if match["break"]:
            n_lines += 1
            between = text[spans[n_lines - 1][1] : spans[n_lines][0]]
            line = text[slice(*spans[n_lines - 1])]
            if _DIRECTIVE.match(line):
                del tokens[line_start:]
                tokens.append(InlineToken("block", line + between))
            elif len(raw) > 1:
                tokens.append(InlineToken("point", raw.rstrip("\n") + between, "br"))
            else:
                tokens.append(InlineToken("text", between, text=" "))
            line_start = len(tokens)
            opened = [index for index in opened if index < line_start]
        elif match["code"]:
            tokens.append(InlineToken("atom", raw))
        elif match["lead"]:
            tokens.append(InlineToken("block", raw))
        elif match["tag"]:
            name = re.match(r"</?([\w-]*)", raw)
            is_point = raw.startswith(_VOID) or raw.endswith("/>")
            kind = "point" if is_point else "end" if raw.startswith("</") else "start"
            tokens.append(InlineToken(kind, raw, name[1].lower() if name else ""))
        elif match["open"] or match["mark"]:
            is_closed = match["mark"] and _close_mark(raw, match, content, tokens, opened)
            if not is_closed:
                if raw == "[" or content[match.end() : match.end() + 1].strip():
                    opened.append(len(tokens))
                add_text(raw)
        elif match["close"]:
            _close_link(raw, tokens, opened, references)
        else:
            add_text(raw)
    if position < len(content):
        add_text(content[position:])
    if _DIRECTIVE.match(last := text[slice(*spans[-1])]):
        tokens[line_start:] = [InlineToken("block", last)]
    yield from _merged(tokens)


def _close_mark(raw: str, match: re.Match[str], content: str, tokens: list[InlineToken], opened: list[int]) -> bool:
    """Make a mark the end of an emphasis; return whether it is one."""
    if not content[: match.start()][-1:].strip():
        return False
    if raw[0] == "_" and content[match.end() : match.end() + 1].isalnum():  # snake_case
        return False
    for index in reversed(range(len(opened))):
        start = opened[index]
        if tokens[start].raw == "[":
            return False
        if tokens[start].raw == raw and start < len(tokens) - 1:
            # Between Chinese characters, only * is a mark.
            written = raw.replace("_", "*")
            tokens[start] = InlineToken("start", written, raw)
            tokens.append(InlineToken("end", written, raw))
            del opened[index:]
            return True
    return False


def _close_link(raw: str, tokens: list[InlineToken], opened: list[int], references: Mapping[str, Any]) -> None:
    """Make brackets a link, if they are one."""
    index = next((index for index in reversed(range(len(opened))) if tokens[opened[index]].raw == "["), None)
    if index is not None:
        start = opened[index]
        label = "".join(token.raw for token in tokens[start + 1 :])
        closing = raw if raw not in ("]", "][]") else f"][{label}]"
        is_defined = closing == raw or " ".join(label.split()).upper() in references
        del opened[index:]
        if is_defined:
            tokens[start] = InlineToken("start", "[", "a")
            tokens.append(InlineToken("end", closing, "a"))
            return
    tokens.append(InlineToken("text", raw, text=_unescape(raw)))


def _merged(tokens: Sequence[InlineToken]) -> Iterator[InlineToken]:
    """Yield tokens with neighboring texts joined, so that {user_name} is in one."""
    pending: list[InlineToken] = []
    for token in [*tokens, InlineToken("block", "")]:
        if token.kind == "text":
            pending.append(token)
            continue
        if pending:
            raws, texts = "".join(one.raw for one in pending), "".join(one.text for one in pending)
            yield InlineToken("text", raws, text=texts)
        pending = []
        yield token


def _unescape(raw: str) -> str:
    return _ESCAPED.sub(r"\1", raw)


def _escape(text: str) -> str:
    """Return plain text as Markdown."""
    text = _SPECIAL.sub(r"\\\1", text)
    return _BLOCK_START.sub(lambda match: f"{match[1] or ''}\\", text, count=1) if _BLOCK_START.match(text) else text


FORMAT = MarkdownDocument()
