"""Copyable spans: code, markup, URLs and the like, which a translation repeats unchanged.

`Placeholders` replaces them by tokens such as ⟦3⟧, which a model learns to copy, and puts them back afterwards.
"""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

# Character classes are ASCII: Chinese characters may touch a span on either side.
_COPYABLE = re.compile(
    r"""
      ``(?:(?!``)[^\n])+``                                               # ``code``
    | :[A-Za-z][A-Za-z0-9_.+-]{0,40}(?::[A-Za-z0-9_.+-]{1,40}){0,3}:`    # :role:`x`,
      (?:[^`\n]*[^`\n>]`|(?=[^`\n]*>`))                                  # or the opening of :ref:`title <label>`
    | (?<![`:A-Za-z0-9_])`[^`<>\s](?:[^`<>\n]*[^`<>\s])?`(?![`_A-Za-z0-9])  # `code`
    | <[^`<>\n]+>`_{0,2}                                                 # the closing of :ref:`title <label>`
    | (?:(?:https?|ftp)://|www\.)[^\s<>"`{}|\\^\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]*[A-Za-z0-9/_#&=~$%-]  # a URL
    | (?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+  # an e-mail address
    | </?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>\n]*)?/?>                         # an HTML tag
    | &(?:[A-Za-z][A-Za-z0-9]{1,31}|\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6});  # an HTML entity
    | (?<![0-9%])%(?:\([A-Za-z_][A-Za-z0-9_]*\))?[-+\#0]*(?:[0-9]+|\*)?(?:\.[0-9]+)?[sdiufxXoeEgGcra%](?![A-Za-z])  # %s
    | \$?\{[A-Za-z0-9_.!:\[\]]*\}                                        # {name}, ${name}
    | \|[A-Za-z][A-Za-z0-9_-]*\|                                         # |substitution|
    | (?<![A-Za-z0-9_])(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|__[A-Za-z0-9_]+__)(?:\(\))?(?![A-Za-z0-9_])  # a_name
    | ⟦[0-9]+⟧                                                           # text that looks like a placeholder
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(r"https?://|ftp://|www\.|[^<>]*@")
_HINT = re.compile(r"[`<@&%{|_⟦]|://|www\.")  # texts without any of these have no copyable span
_PLACEHOLDER = re.compile("⟦[0-9]+⟧")


def placeholder_symbols(count: int) -> list[str]:
    """Return the first placeholder tokens: ⟦1⟧, ⟦2⟧, … No other token is like them, since digits are split."""
    return [f"⟦{number}⟧" for number in range(1, count + 1)]


def copyable_spans(text: str) -> list[Span]:
    """Return the spans of a text that a translation repeats unchanged, in order."""
    return [match.span() for match in _matches(text)]


def is_address(span: str) -> bool:
    """Return whether a copyable span is a URL or an e-mail address."""
    return _ADDRESS.match(span) is not None and " " not in span


def without_copyable_spans(text: str, replacement: str) -> str:
    """Return the text with each copyable span replaced."""
    return _COPYABLE.sub(replacement, text)


def count_copied(source: str, target: str) -> int:
    """Count the different copyable spans that a source and its target have in common."""
    return len(_distinct(source) & _distinct(target))


def _distinct(text: str) -> set[str]:
    return {match[0] for match in _matches(text)}


def _matches(text: str) -> "Iterable[re.Match[str]]":
    return _COPYABLE.finditer(text) if _HINT.search(text) else ()


@dataclass(frozen=True)
class Rewrite:
    """A text with some spans replaced, and where they were: (start, end) before, (start, end) after."""

    text: str
    edits: Sequence[tuple[Span, Span]] = ()

    def to_original(self, start: int, end: int) -> Span:
        """The span of the original text that a span of the new text stands for."""
        return self._map(start, end, [(after, before) for before, after in self.edits])

    def from_original(self, start: int, end: int) -> Span:
        """The span of the new text that a span of the original text has become."""
        return self._map(start, end, self.edits)

    @staticmethod
    def _map(start: int, end: int, edits: Iterable[tuple[Span, Span]]) -> Span:
        new_start, new_end = start, end
        for (old_from, old_to), (new_from, new_to) in edits:
            if old_to <= start:
                new_start = start + new_to - old_to
            elif old_from <= start:
                new_start = new_from
            if old_to <= end:
                new_end = end + new_to - old_to
            elif old_from < end:
                new_end = new_to
        return new_start, max(new_start, new_end)


@dataclass(frozen=True)
class Placeholders:
    """The placeholder tokens of a tokenizer; there may be none."""

    symbols: tuple[str, ...]

    def assign(self, source: str, among: Iterable[str] | None = None, kept: Sequence[Span] = ()) -> dict[str, str]:
        """Return the placeholder of each copyable span of a source, or of those that are `among` some.

        Where the numbering starts depends on the source, so that every placeholder is learned equally well. Spans
        beyond the number of placeholders have none. The spans `kept` have one as well.
        """
        if not self.symbols:
            return {}
        chosen = None if among is None else set(among)
        copied = (source[start:end] for start, end in spans_with(source, kept))
        spans = dict.fromkeys(span for span in copied if chosen is None or span in chosen)
        first = zlib.crc32(source.encode("utf-8", "surrogatepass"))
        return {
            span: self.symbols[(first + number) % len(self.symbols)]
            for number, span in enumerate(list(spans)[: len(self.symbols)])
        }

    def mask_pair(self, source: str, target: str) -> tuple[str, str]:
        """Replace the copyable spans that a source and its target have in common."""
        if not self.symbols:
            return source, target
        assigned = self.assign(source, _distinct(target))
        return mask(source, assigned).text, mask(target, assigned).text


def mask(text: str, assigned: Mapping[str, str], kept: Sequence[Span] = ()) -> Rewrite:
    """Replace copyable spans, and those that are `kept`, by the placeholders that are assigned to them."""
    if not assigned:
        return Rewrite(text)
    return _rewrite(text, ((span, assigned.get(text[slice(*span)])) for span in spans_with(text, kept)))


def spans_with(text: str, kept: Sequence[Span]) -> list[Span]:
    """Return the copyable spans of a text and others, in order; of spans that overlap, the others win."""
    spans = copyable_spans(text)
    if not kept:
        return spans
    apart = [span for span in spans if not any(span[0] < end and start < span[1] for start, end in kept)]
    return sorted([*apart, *kept])


def restore(text: str, assigned: Mapping[str, str]) -> Rewrite:
    """Replace placeholders by the spans that they are assigned to; others, which no span has, are removed."""
    if not assigned:
        return Rewrite(text)
    spans = {symbol: span for span, symbol in assigned.items()}
    return _rewrite(text, ((match.span(), spans.get(match[0], "")) for match in _PLACEHOLDER.finditer(text)))


def _rewrite(text: str, replacements: Iterable[tuple[Span, str | None]]) -> Rewrite:
    parts: list[str] = []
    edits: list[tuple[Span, Span]] = []
    position = length = 0
    for (start, end), new in replacements:
        if new is None:
            continue
        parts += [text[position:start], new]
        length += start - position
        edits.append(((start, end), (length, length + len(new))))
        length += len(new)
        position = end
    return Rewrite("".join([*parts, text[position:]]), tuple(edits))
