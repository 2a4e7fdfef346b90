"""XLIFF 1.2 and 2.x, the files of translation tools: the target is written, the source stays.

Units without a translation are translated, with `replaces` all; those with translate="no" never.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import (
    Document,
    DocumentFormat,
    DocumentOptions,
    Field,
    check_language,
    decode_markup,
    divide,
)
from manyheads.text.markup.inline_segments import InlineToken, Markup, split_inline
from manyheads.text.markup.string_segments import with_placeholders
from manyheads.text.markup.xml_scanner import XmlToken, check_xml, escape_xml, plain_text, scan_xml

# Elements around text; all other elements of a source are codes, which are copied with what is in them.
_AROUND_TEXT = frozenset(("g", "pc", "mrk", "hi"))
_UNITS = frozenset(("trans-unit", "segment"))  # of 1.2 and 2.x
_MACHINE = {"trans-unit": ' state="needs-review-translation"', "segment": ""}


@dataclass
class _Unit:
    """A unit: the tokens of its source, and where its target is."""

    name: str
    is_translated: bool  # whether it may be translated
    source: list[XmlToken] = field(default_factory=list)
    segmented: list[XmlToken] = field(default_factory=list)  # seg-source of 1.2
    source_end: int = 0
    target: tuple[int, int] | None = None
    target_tag: str = "<target>"
    target_text: str = ""


class XliffDocument(DocumentFormat):
    """Files of translation tools."""

    suffixes = (".xliff", ".xlf", ".sdlxliff", ".mqxliff")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a file into its units."""
        check_xml(content)
        source = decode_markup(content)
        tokens = list(scan_xml(source.text))
        if not any(_local(token.name) == "xliff" for token in tokens[:10]):
            raise DataError(_("It is not XLIFF: its first element is another one."))
        fields = [*_language_fields(tokens, options)]
        for unit in _units(tokens):
            if unit.is_translated and (options.replaces or not unit.target_text.strip()):
                fields += _unit_fields(unit, source.text, options)
        fields.sort(key=lambda one: one.start)
        return source.document(divide(source.text, fields))


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _language_fields(tokens: Sequence[XmlToken], options: DocumentOptions) -> Iterator[Field]:
    """Check the languages of the file, and yield the tags that lack the target language."""
    for token in tokens:
        names = {"xliff": ("srcLang", "trgLang"), "file": ("source-language", "target-language")}
        source, target = names.get(_local(token.name), ("", ""))
        attributes = token.attributes if source and token.kind == "start" else {}
        if source not in attributes:
            continue
        check_language(attributes[source], options.source_language, is_source=True)
        check_language(attributes.get(target, ""), options.target_language, is_source=False)
        if not attributes.get(target) and options.target_language:
            yield Field(token.start, token.end, Markup([token.with_attribute(target, options.target_language)]))


def _units(tokens: Sequence[XmlToken]) -> Iterator[_Unit]:
    """Yield the units of a file."""
    unit: _Unit | None = None
    inside = ""  # which part of the unit
    depth = 0  # of elements inside that part
    n_ignored = 0  # open elements with suggestions, which have a source of their own
    may_translate = [True]  # of each open element
    start = 0
    for token in tokens:
        name = _local(token.name)
        if token.kind == "start":
            value = token.attributes.get("translate", "") if "translate" in token.raw else ""
            may_translate.append(value != "no" if value else may_translate[-1])
        elif token.kind == "end":
            may_translate.pop()
        if name in ("alt-trans", "matches", "ignorable") and token.kind in ("start", "end"):
            n_ignored += 1 if token.kind == "start" else -1
        elif n_ignored:
            continue
        elif unit is None:
            if token.kind == "start" and name in _UNITS:
                unit = _Unit(name, may_translate[-1])
        elif inside:
            if token.kind == "end" and not depth:
                if inside == "target":
                    unit.target = (start, token.end)
                else:
                    unit.source_end = token.end
                inside = ""
                continue
            depth += {"start": 1, "end": -1}.get(token.kind, 0)
            if inside == "target":
                unit.target_text += token.text if token.kind in ("text", "cdata") else ""
            else:
                (unit.source if inside == "source" else unit.segmented).append(token)
        elif token.kind == "start" and name in ("source", "seg-source", "target"):
            inside, start = name, token.start
            if name == "target":
                unit.target_tag = token.raw
        elif token.kind == "empty" and name == "target":
            unit.target, unit.target_tag = (token.start, token.end), f"{token.raw[:-2].rstrip()}>"
        elif token.kind == "end" and name == unit.name:
            yield unit
            unit = None


def _unit_fields(unit: _Unit, text: str, options: DocumentOptions) -> Iterator[Field]:
    """Yield the target of a unit."""
    tokens = with_placeholders(_inline_tokens(unit.segmented or unit.source), plain_text)
    markup = split_inline(tokens, escape_xml, use_placeholders=options.use_placeholders)
    if not markup.segments:
        return
    prefix = re.match(r"<(\w+:)?", unit.target_tag)
    close = f"</{prefix[1] or ''}target>" if prefix else "</target>"
    if unit.target is not None:
        tag = re.sub(r'\s(state|state-qualifier)="[^"]*"', "", unit.target_tag)
        tag = f"{tag[:-1]}{_MACHINE[unit.name]}>"
        yield Field(*unit.target, markup, lambda body: f"{tag}{body}{close}")
        return
    # On a line of its own, indented like the source.
    source_start = text.rfind("<", 0, unit.source[0].start if unit.source else unit.source_end)
    line = text[text.rfind("\n", 0, source_start) + 1 : source_start]
    separator = f"\n{line}" if line.isspace() or not line else ""
    new = f"{separator}<target{_MACHINE[unit.name]}>"
    yield Field(unit.source_end, unit.source_end, markup, lambda body: f"{new}{body}</target>")


def _inline_tokens(tokens: Sequence[XmlToken]) -> Iterator[InlineToken]:
    """Yield the content of a source; codes are points, and segments of 1.2 divide."""
    code: list[str] = []  # of a code that is being read
    depth = 0
    divides: list[bool] = []  # of each open element around text
    for token in tokens:
        name = _local(token.name)
        if depth:
            code.append(token.raw)
            depth += {"start": 1, "end": -1}.get(token.kind, 0)
            if not depth:
                yield InlineToken("point", "".join(code))
        elif token.kind in ("text", "cdata"):
            yield InlineToken("text", token.raw if token.kind == "text" else escape_xml(token.text), text=token.text)
        elif token.kind == "start" and name in _AROUND_TEXT:
            divides.append('mtype="seg"' in token.raw)
            yield InlineToken("block" if divides[-1] else "start", token.raw, token.name)
        elif token.kind == "end":
            yield InlineToken("block" if divides.pop() else "end", token.raw, token.name)
        elif token.kind == "start":
            code, depth = [token.raw], 1
        else:
            yield InlineToken("point", token.raw)


FORMAT = XliffDocument()
