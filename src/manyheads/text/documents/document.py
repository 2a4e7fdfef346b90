"""`DocumentFormat`: what a format of documents defines, one file a format in `formats/`.

A format divides a file into `Markup`, whose segments are translated and joined by others, and writes the file with the
results. Bytes that are not text to translate stay as they are.
"""

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.language_codes import base_of
from manyheads.text.markup.inline_segments import Markup

MAX_DOCUMENT_BYTES = 100_000_000

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DECLARED = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_DECLARED_WITHIN = 2048  # bytes
_PRIVATE_USE = range(0xE000, 0xF900)  # characters that no text should have


@dataclass(frozen=True)
class DocumentOptions:
    """What a format needs to know."""

    source_language: str = ""  # codes such as "en"; "" if unknown
    target_language: str = ""
    use_placeholders: bool = False  # see `split_markup`
    replaces: bool = False  # also translate what has a translation already


@dataclass(frozen=True)
class Document:
    """A file that was divided: `write` returns it with these translations of `markups`."""

    markups: Sequence[Markup]
    write: Callable[[Sequence[str]], bytes]


class DocumentFormat(ABC):
    """A format of documents."""

    suffixes: ClassVar[tuple[str, ...]]  # of file names, in lower case

    @abstractmethod
    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a file; raise DataError, without its name, if it is damaged or unsupported."""


@dataclass(frozen=True)
class DividedText:
    """A text that was divided: `join` returns it with these translations of `markups`."""

    markups: Sequence[Markup]
    join: Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Field:
    """A part of a text that is replaced by the translation of its markup; `encode` writes it in the format."""

    start: int
    end: int
    markup: Markup
    encode: Callable[[str], str] = str


def divide(text: str, fields: Sequence[Field]) -> DividedText:
    """Return a text with these fields, which are in order."""

    def join(translations: Sequence[str]) -> str:
        pieces, position = [], 0
        for field, translation in zip(fields, translations, strict=True):
            pieces += [text[position : field.start], field.encode(translation)]
            position = field.end
        return "".join([*pieces, text[position:]])

    return DividedText([field.markup for field in fields], join)


class Marks:
    """Sets parts of a text aside while it is divided: a mark is written in place of each, and replaced afterwards."""

    def __init__(self, text: str) -> None:
        unused = (character for character in map(chr, _PRIVATE_USE) if character not in text)
        self.mark = next(unused)
        self.markups: list[Markup] = []
        self._encoders: list[Callable[[str], str]] = []

    def put(self, markup: Markup, encode: Callable[[str], str] = str) -> str:
        """Return the mark of a part; what it contains may have marks, too."""
        self.markups.append(markup)
        self._encoders.append(encode)
        return f"{self.mark}{len(self.markups) - 1}{self.mark}"

    def restored(self, text: str, translations: Sequence[str]) -> str:
        """Return a text with these translations of `markups` instead of the marks."""

        def part(match: re.Match[str]) -> str:
            number = int(match[1])
            return self.restored(self._encoders[number](translations[number]), translations)

        return re.sub(f"{self.mark}([0-9]+){self.mark}", part, text) if self.mark in text else text

    def divided(self, markup: Markup) -> DividedText:
        """Return the text with this markup, in which marks are."""
        return DividedText([markup, *self.markups], lambda texts: self.restored(texts[0], texts[1:]))


@dataclass(frozen=True)
class SourceText:
    """The text of a file, and how it was encoded."""

    text: str
    codec: str = "utf-8"
    bom: bytes = b""
    errors: str = "strict"  # "xmlcharrefreplace" where a character may be written as &#29483;

    def encode(self, text: str) -> bytes:
        """Return a text in the encoding of the file."""
        try:
            return self.bom + text.encode(self.codec, self.errors)
        except UnicodeEncodeError as error:
            raise DataError(
                _(
                    "{character!r} of the translation cannot be written in its encoding, {codec}. Convert the file to "
                    "UTF-8.",
                    character=error.object[error.start],
                    codec=self.codec,
                )
            ) from None

    def document(self, divided: DividedText) -> Document:
        """Return the document with this text."""
        return Document(divided.markups, lambda translations: self.encode(divided.join(translations)))


def decode_text(content: bytes, codec: str = "utf-8", errors: str = "strict") -> SourceText:
    """Return the text of a file; a byte order mark decides the encoding."""
    bom = next((bom for bom in _BOMS if content.startswith(bom)), b"")
    codec = _BOMS.get(bom, codec)
    try:
        text = content[len(bom) :].decode(codec)
    except LookupError:
        raise DataError(_("Its encoding, {codec}, is not known. Convert it to UTF-8.", codec=codec)) from None
    except UnicodeDecodeError as error:
        raise DataError(
            _(
                "Byte {number} is not {codec}. Convert the file to UTF-8.",
                number=error.start + len(bom),
                codec=codec.upper(),
            )
        ) from None
    return SourceText(text, codec, bom, errors)


def decode_markup(content: bytes) -> SourceText:
    """Return the text of an HTML or XML file; what its encoding lacks is written as a character reference."""
    declared = _DECLARED.search(content[:_DECLARED_WITHIN])
    codec = (declared[1] or declared[2]).decode("ascii", "replace") if declared else "utf-8"
    if codec.lower().startswith("utf-16"):  # what can be read as ASCII is not UTF-16
        codec = "utf-8"
    return decode_text(content, codec, "xmlcharrefreplace")


def check_language(found: str, expected: str, *, is_source: bool) -> None:
    """Raise if a file names another language than the one that the model reads or writes."""
    if not found or not expected or base_of(found) == base_of(expected):
        return
    languages = {"found": found, "expected": expected}
    if is_source:
        raise DataError(_("Its source language is {found}, but the model translates from {expected}.", **languages))
    raise DataError(_("Its target language is {found}, but the model translates into {expected}.", **languages))


def missing_library(name: str) -> DataError:
    """Return the error for a library that a format needs."""
    return DataError(_("{name} is needed to read it: pip install 'manyheads[documents]'.", name=name))
