"""Tables of strings as JSON: values that are strings are translated; keys, numbers and layout stay.

Values of keys that start with @ or $, such as the descriptions in .arb files, are not translated.
"""

import json
import re
from collections.abc import Iterator

from manyheads.bounded_files import BoundsError, parse_json
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import Document, DocumentFormat, DocumentOptions, Field, decode_text, divide
from manyheads.text.markup.string_segments import split_string

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_NOT_TRANSLATED = ("@", "$")  # starts of keys


class JsonStrings(DocumentFormat):
    """JSON files, also .arb."""

    suffixes = (".json", ".arb")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a table of strings."""
        source = decode_text(content)
        try:
            parse_json(source.text)
        except BoundsError as error:
            raise DataError(_("{reason}.", reason=error)) from None
        is_ascii = source.text.isascii() and "\\u" in source.text

        def encode(text: str) -> str:
            return json.dumps(text, ensure_ascii=is_ascii)

        fields = []
        for start, end in _values(source.text):
            text = json.loads(source.text[start:end])
            markup = split_string(text, use_placeholders=options.use_placeholders)
            if markup.segments:
                fields.append(Field(start, end, markup, encode))
        return source.document(divide(source.text, fields))


def _values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the strings that are values are, in valid JSON."""
    opened: list[tuple[str, bool]] = []  # brackets, and whether what is in them is translated
    is_translated, is_key, key = True, False, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            own = is_translated and not key.startswith(_NOT_TRANSLATED)
            opened.append((token, is_translated))
            is_translated, is_key, key = own, token == "{", ""
        elif token in "}]":
            _bracket, is_translated = opened.pop()
            key = ""
        elif token == ":":
            is_key = False
        elif token == ",":
            is_key = opened[-1][0] == "{"
            key = ""
        elif is_key:
            key = token[1:]
        elif is_translated and not key.startswith(_NOT_TRANSLATED):
            yield match.span()


FORMAT = JsonStrings()
