"""Spans by character offsets, as labeling tools export them, become tags of words.

doccano writes `[start, end, label]`, Prodigy and `manyheads predict --json` write `{"start": …, "end": …, "label": …}`,
and doccano's relations `{"start_offset": …, "end_offset": …, "label": …}`. The text beside them is raw.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.text.reading.tag_schemes import OUTSIDE
from manyheads.text.tokens.words import SplitBy, choose_split_by, split_text

_MARK = "\0"  # before spans as JSON, in place of tags
_STARTS, _ENDS = ("start", "start_offset"), ("end", "end_offset")


class OffsetSpan(NamedTuple):
    """The characters from `start` up to, but not including, `end` of a raw text."""

    start: int
    end: int
    label: str


def parse_spans(value: object) -> list[OffsetSpan] | None:
    """Return the spans in a value of JSON or Parquet; None if it is not a list of spans."""
    if not isinstance(value, list):
        return None
    spans = [_parse(item) for item in value]
    return [span for span in spans if span is not None] if None not in spans else None


def _parse(item: object) -> OffsetSpan | None:
    if isinstance(item, dict):
        start, end = (next((item[name] for name in names if name in item), None) for names in (_STARTS, _ENDS))
        labels = item.get("label", item.get("labels"))
        label = labels[0] if isinstance(labels, list) and labels else labels
    elif isinstance(item, list) and len(item) == 3:
        start, end, label = item
    else:
        return None
    if type(start) is not int or type(end) is not int or not isinstance(label, str) or not label:
        return None
    return OffsetSpan(start, end, label)


def encode_spans(value: object) -> str | None:
    """Return the spans of a value as text that `decode_spans` reads; None if it has none."""
    spans = parse_spans(value)
    return None if spans is None else _MARK + json.dumps(spans, ensure_ascii=False)


def decode_spans(text: str) -> list[OffsetSpan] | None:
    """Return the spans that `encode_spans` wrote; None if the text are tags, even with the same mark."""
    if not text.startswith(_MARK):
        return None
    try:
        return parse_spans(json.loads(text[1:]))
    except (ValueError, RecursionError):
        return None


def split_by_of(texts: Sequence[str]) -> SplitBy:
    """Return whether texts are tagged by word or by character, as a tagger that is trained on them splits its input."""
    return choose_split_by(Counter(len(word.text) for text in texts for word in split_text(text, "word")))


def words_and_tags(
    text: str, spans: Sequence[OffsetSpan], split_by: SplitBy, where: Message
) -> tuple[list[str], list[str], list[DataError]]:
    """Return the words of a raw text, their IOB2 tags, and an error for each span that is left out.

    A span that begins or ends inside a word takes the whole word. One that is outside the text, has no word, or is
    over another span is left out.
    """
    faults = []
    words = split_text(text, split_by)
    tags = [OUTSIDE] * len(words)
    for span in sorted(spans):
        inside = [index for index, word in enumerate(words) if word.start < span.end and span.start < word.end]
        is_valid = 0 <= span.start < span.end <= len(text) and inside
        if not is_valid or any(tags[index] != OUTSIDE for index in inside):
            problem = _("it has no word of the text") if not is_valid else _("another span is there")
            fault = _(
                "{where}: the span {start} to {end} ({label}) is left out: {problem}.",
                where=where,
                start=span.start,
                end=span.end,
                label=span.label,
                problem=problem,
            )
            faults.append(DataError(fault))
            continue
        label = "_".join(span.label.split())
        tags[inside[0]] = f"B-{label}"
        for index in inside[1:]:
            tags[index] = f"I-{label}"
    return [word.text for word in words], tags, faults
