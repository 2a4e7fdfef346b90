"""Catalogs of messages: .po and .pot of gettext. msgid stays; msgstr gets the translation.

Messages without a translation and fuzzy ones are translated, with `replaces` all. A fuzzy message that was translated
is no longer fuzzy. Obsolete messages (#~) stay.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import (
    Document,
    DocumentFormat,
    DocumentOptions,
    Field,
    check_language,
    decode_text,
    divide,
)
from manyheads.text.language_codes import base_of
from manyheads.text.markup.inline_segments import Markup
from manyheads.text.markup.string_segments import split_string

_KEYWORD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)[ \t]+(?=")')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*\r?\Z')
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
_CODES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_N_PLURALS = re.compile(r"nplurals\s*=\s*([1-9])\s*;")
_ONE_FORM = re.compile("zh|ja|ko|vi|th|id|ms|lo|my|km|bo|dz|jv|su")  # languages without plural
_TWO_FORMS = re.compile("en|de|nl|sv|da|nb|nn|no|fi|et|es|it|pt|el|he|hu|eu|gl|ca|bg")
_MOST_PLURALS = 6


@dataclass
class _Message:
    """A message: its strings by keyword, and where its translation and its flags are in the file."""

    strings: dict[str, str] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # of each string, with its keyword
    fuzzy: list[tuple[int, int]] = field(default_factory=list)  # lines with the flag, and of the previous msgid
    end: int = 0

    @property
    def translations(self) -> list[str]:
        """The keywords of its translations."""
        return [name for name in self.strings if name.startswith("msgstr")]


class PoCatalog(DocumentFormat):
    """Catalogs of gettext."""

    suffixes = (".po", ".pot")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a catalog into the messages to translate."""
        charset = re.search(rb"charset=([\w.-]+)", content)
        codec = charset[1].decode() if charset and charset[1] != b"CHARSET" else "utf-8"
        source = decode_text(content, codec)
        line_end = "\r\n" if "\r\n" in source.text else "\n"
        messages = list(_messages(source.text))
        header = next((one.strings["msgstr"] for one in messages if one.strings.get("msgid") == ""), "")
        language = re.search(r"^Language: *(\S+)", header, re.M)
        check_language(language[1] if language else "", options.target_language, is_source=False)
        n_plurals = _n_plurals(header, options.target_language)
        fields: list[Field] = []
        for message in messages:
            if message.strings.get("msgid") == "" and "msgctxt" not in message.strings:
                fields += _header_fields(message, options, line_end)
            elif options.replaces or message.fuzzy or not any(message.strings[name] for name in message.translations):
                fields += _message_fields(source.text, message, n_plurals, options, line_end)
        fields.sort(key=lambda one: one.start)
        return source.document(divide(source.text, fields))


def _messages(text: str) -> Iterator[_Message]:
    """Yield the messages of a catalog."""
    message, keyword, position = _Message(), "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        start, position = position, position + len(line) + 1
        content = line.strip()
        if not content or content.startswith("#"):
            if message.strings:
                yield message
                message = _Message()
            keyword = ""
            if (content.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", content)) or content.startswith("#|"):
                message.fuzzy.append((start, position))
            continue
        found = _KEYWORD.match(content)
        value = _STRING.match(content[found.end() :] if found else content)
        if value is None or not (found or keyword):
            raise DataError(_("Line {number} is not a line of a catalog of messages.", number=number))
        if found:
            keyword = found[1]
            if keyword in message.strings or (keyword in ("msgctxt", "msgid") and message.translations):
                yield message
                message = _Message()
            message.strings[keyword], message.spans[keyword] = "", (start, 0)
        message.strings[keyword] += _unescape(value[1])
        message.spans[keyword] = (message.spans[keyword][0], start + len(line.rstrip("\r")))
    if message.strings:
        yield message


def _message_fields(
    text: str, message: _Message, n_plurals: int, options: DocumentOptions, line_end: str
) -> Iterator[Field]:
    """Yield the fields of a message without translation."""
    names = message.translations
    if "msgid" not in message.strings or not names:
        return
    singular = message.strings["msgid"]
    plural = message.strings.get("msgid_plural")
    texts = {"msgstr": singular}
    if plural is not None:
        count = n_plurals or len(names)
        texts = {f"msgstr[{index}]": plural if index or count == 1 else singular for index in range(count)}
    start, end = message.spans[names[0]][0], message.spans[names[-1]][1]
    markups = [split_string(one, use_placeholders=options.use_placeholders) for one in texts.values()]
    if not any(markup.segments for markup in markups):
        return
    for flag_start, flag_end in message.fuzzy:
        yield Field(flag_start, flag_end, Markup([_without_fuzzy(text[flag_start:flag_end])]))
    for index, (name, markup) in enumerate(zip(texts, markups, strict=True)):
        is_last = index == len(texts) - 1
        yield Field(start, end if is_last else start, markup, _writer(name, "" if is_last else line_end, line_end))


def _writer(name: str, after: str, line_end: str) -> Callable[[str], str]:
    return lambda text: f"{name} {_quoted(text, line_end)}{after}"


def _header_fields(message: _Message, options: DocumentOptions, line_end: str) -> Iterator[Field]:
    """Yield the header with the language and its plural forms, where the header leaves them open."""
    lines = message.strings["msgstr"].splitlines()
    changed = [_header_line(line, options.target_language) for line in lines]
    if changed != lines:
        text = "\n".join(changed) + "\n"
        yield Field(*message.spans["msgstr"], Markup([text]), _writer("msgstr", "", line_end))


def _header_line(line: str, language: str) -> str:
    name, _colon, value = line.partition(":")
    if name == "Language" and not value.strip() and language:
        return f"Language: {language.replace('-', '_')}"
    forms = _plural_forms(language)
    if name == "Plural-Forms" and not _N_PLURALS.search(value) and forms:
        return f"Plural-Forms: {forms}"
    return line


def _plural_forms(language: str) -> str:
    base = base_of(language)
    if _ONE_FORM.fullmatch(base):
        return "nplurals=1; plural=0;"
    if base == "fr":
        return "nplurals=2; plural=(n > 1);"
    return "nplurals=2; plural=(n != 1);" if _TWO_FORMS.fullmatch(base) else ""


def _n_plurals(header: str, language: str) -> int:
    """Return the number of plural forms; 0 if neither the header nor the language tells."""
    forms = re.search(r"^Plural-Forms:(.*)", header, re.M)
    found = _N_PLURALS.search(forms[1] if forms else "") or _N_PLURALS.search(_plural_forms(language))
    return min(int(found[1]), _MOST_PLURALS) if found else 0


def _without_fuzzy(line: str) -> str:
    """Return a line of flags without the flag fuzzy; nothing if it has no other, or is a previous msgid."""
    if line.lstrip().startswith("#|"):
        return ""
    flags = [flag.strip() for flag in line.strip()[2:].split(",")]
    others = [flag for flag in flags if flag and flag != "fuzzy"]
    end = "\r\n" if line.endswith("\r\n") else "\n"
    return f"#, {', '.join(others)}{end}" if others else ""


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else _CODES.get(code, code)

    return _ESCAPED.sub(plain, text)


def _quoted(text: str, line_end: str) -> str:
    """Return a string as gettext writes it: one line of the catalog for each line of the text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\r", "\\r")
    lines: Sequence[str] = escaped.replace("\n", "\\n\n").split("\n")
    lines = [line for line in lines if line]
    if len(lines) < 2:
        return f'"{escaped}"' if not lines else f'"{lines[0]}"'
    return line_end.join(['""', *(f'"{line}"' for line in lines)])


FORMAT = PoCatalog()
