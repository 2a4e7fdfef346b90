"""Subtitles: .srt and .vtt. Numbers, times and settings of cues stay; the lines of one cue are one text."""

import re

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import Document, DocumentFormat, DocumentOptions, Field, decode_text, divide
from manyheads.text.markup.string_segments import split_string

_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = re.compile(rf"^[ \t]*{_TIME}[ \t]+-->[ \t]+{_TIME}.*$", re.MULTILINE)
_TEXT = re.compile(r"(?:\r\n|\n|\r)((?:(?=[^\S\r\n]*+\S)[^\r\n]*+(?:\r\n|\n|\r|\Z))+)")


class Subtitles(DocumentFormat):
    """SubRip and WebVTT."""

    suffixes = (".srt", ".vtt")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide subtitles into their cues."""
        source = decode_text(content)
        fields = []
        times = list(_TIMES.finditer(source.text))
        if not times:
            raise DataError(_("It has no times such as 00:00:01,000 --> 00:00:02,000."))
        for time in times:
            lines = _TEXT.match(source.text, time.end())
            if lines is not None:
                start, end = lines.span(1)
                markup = split_string(source.text[start:end], use_placeholders=options.use_placeholders)
                if markup.segments:
                    fields.append(Field(start, end, markup))
        return source.document(divide(source.text, fields))


FORMAT = Subtitles()
