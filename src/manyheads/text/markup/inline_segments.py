"""Inline content as segments to translate: `inline_parts` divides it, `Markup.join` puts the tags back.

Inline tags inside a segment are spans over its plain text, which are placed again by word alignment
(`place_elements`). All else is copied unchanged. What a tag is, and how text is written, is a matter of the format:
HTML, Markdown, XML or the strings of a program.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from manyheads.text.markup.element_placement import Inline, Link, escape_html, needs_alignment, place_elements

Escape = Callable[[str], str]  # writes plain text in a format

_IMAGES = frozenset(("img", "input"))  # shown like a word
_SEPARATING = _IMAGES | {"br"}  # words on both sides are not one word
_MAX_INLINES = 200  # of a segment; with more, every tag divides

_SPACE = re.compile(r"(?:[ \t\n\r\f\u00a0]|&(?:nbsp|#160|#[xX][aA]0);)+")
_SPACE_REFERENCES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;", "&#Xa0;", "&#XA0;")
_WHITE = " \t\n\r\f\u00a0"
_COLLAPSED = re.compile(r"[ \t\n\r\f]+")
_SENTENCE_END = re.compile(r"[.!?:;…。！？：；][\"'”’»)\]」』）]*\s*\Z")


@dataclass(frozen=True)
class MarkupSegment:
    """A text to translate with its inline tags; `before` and `after` are copied unchanged."""

    before: str
    after: str
    text: str
    inlines: Sequence[Inline]  # in the order in which they start
    escape: Escape = escape_html

    @property
    def needs_alignment(self) -> bool:
        """Whether the position of a tag depends on the words of the translation."""
        return needs_alignment(self.text, self.inlines)

    def join(self, translation: str, links: Sequence[Link]) -> str:
        """Return the translation with tags. `links` are those between the words of `text` and of the translation."""
        placed = place_elements(self.text, self.inlines, translation, links, self.escape)
        return f"{self.before}{placed}{self.after}"


@dataclass(frozen=True)
class Markup:
    """Text with tags that was divided into segments and what is between them."""

    parts: Sequence[str | MarkupSegment]

    @property
    def segments(self) -> list[MarkupSegment]:
        """The segments to translate, in order."""
        return [part for part in self.parts if isinstance(part, MarkupSegment)]

    @property
    def texts(self) -> list[str]:
        """The plain texts to translate, in order."""
        return [segment.text for segment in self.segments]

    def join(self, translations: Sequence[str], alignments: Sequence[Sequence[Link]]) -> str:
        """Return the whole with these translations of `texts`.

        An alignment is a list of links between the words of a text and of its translation (`split_text` defines the
        words); it may be empty, in particular of a segment that does not need one.
        """
        own = iter(zip(translations, alignments, strict=True))
        return "".join(part if isinstance(part, str) else part.join(*next(own)) for part in self.parts)


@dataclass
class InlineToken:
    """A token of inline content; `partner` is the index of the other tag of its element."""

    kind: str  # "text", "start", "end", "point", "atom", or "block", which divides
    raw: str
    name: str = ""  # of a tag; "br", "img" and "sup" are treated as those of HTML
    text: str = ""  # of kind "text": the plain text that `raw` stands for
    partner: int = -1


def split_inline(tokens: Iterable[InlineToken], escape: Escape = escape_html, *, use_placeholders: bool) -> Markup:
    """Divide inline content into segments; see `split_markup` for `use_placeholders`."""
    return Markup(list(_merged(_parts(tokens, escape, use_placeholders=use_placeholders))))


def _parts(tokens: Iterable[InlineToken], escape: Escape, *, use_placeholders: bool) -> Iterator[str | MarkupSegment]:
    run: list[InlineToken] = []
    for token in tokens:
        if token.kind == "block":
            yield from _run_parts(run, escape, use_placeholders=use_placeholders)
            run = []
            yield token.raw
        else:
            run.append(token)
    yield from _run_parts(run, escape, use_placeholders=use_placeholders)


def _merged(parts: Iterator[str | MarkupSegment]) -> Iterator[str | MarkupSegment]:
    """Yield the parts with neighboring strings joined."""
    pending: list[str] = []
    for part in parts:
        if isinstance(part, str):
            pending.append(part)
            continue
        if pending:
            yield "".join(pending)
        pending = []
        yield part
    if pending:
        yield "".join(pending)


def _run_parts(run: list[InlineToken], escape: Escape, *, use_placeholders: bool) -> Iterator[str | MarkupSegment]:
    """Yield the segments of a run of inline content, and what is between them."""
    if not any(token.kind == "text" for token in run):
        yield "".join(token.raw for token in run)
        return
    run = _with_note_marks(run)
    dividing = _dividing(run)
    start = 0
    for index in [*(index for index, divides in enumerate(dividing) if divides), len(run)]:
        yield from _segment_parts(run[start:index], start, escape, use_placeholders=use_placeholders)
        if index < len(run):
            yield run[index].raw
        start = index + 1


def _with_note_marks(run: list[InlineToken]) -> list[InlineToken]:
    """Return a run with each superscript without letters, such as the number of a footnote, as one token."""
    tokens: list[InlineToken] = []
    opened: int | None = None  # where the superscript starts
    for token in run:
        tokens.append(token)
        if token.name == "sup" and token.kind == "start":
            opened = len(tokens) - 1
        elif opened is not None and token.kind == "text" and any(map(str.isalpha, token.text)):
            opened = None
        elif opened is not None and token.name == "sup" and token.kind == "end":
            inner = tokens[opened + 1 : -1]
            if Counter(token.name for token in inner if token.kind == "start") == Counter(
                token.name for token in inner if token.kind == "end"
            ):
                tokens[opened:] = [InlineToken("point", "".join(token.raw for token in tokens[opened:]))]
            opened = None
    return tokens


def _dividing(run: Sequence[InlineToken]) -> list[bool]:
    """Return which tokens of a run divide it: tags without partner, and line breaks between sentences."""
    n_inlines = sum(token.kind != "text" for token in run)
    if n_inlines > _MAX_INLINES:
        return [token.kind != "text" for token in run]
    dividing = [False] * len(run)
    for index in _dividing_breaks(run):
        dividing[index] = True
    opened: list[int] = []
    n_open: dict[str, int] = {}
    for index, token in enumerate(run):
        if token.kind == "start":
            opened.append(index)
            n_open[token.name] = n_open.get(token.name, 0) + 1
        elif token.kind == "end":
            dividing[index] = not n_open.get(token.name, 0)
            while not dividing[index] and token.partner < 0:
                other = opened.pop()
                n_open[run[other].name] -= 1
                if run[other].name == token.name:
                    token.partner, run[other].partner = other, index
    for index, token in enumerate(run):
        dividing[index] |= token.kind == "start" and token.partner < 0
    # An element with a dividing token inside is divided too.
    n_before = [0]
    for divides in dividing:
        n_before.append(n_before[-1] + divides)
    for index, token in enumerate(run):
        if token.kind == "start" and token.partner >= 0 and n_before[token.partner] > n_before[index + 1]:
            dividing[index] = dividing[token.partner] = True
    return dividing


def _dividing_breaks(run: Sequence[InlineToken]) -> Iterator[int]:
    """Yield the line breaks after a sentence, beside another, and at either end of the run."""
    previous = "start"  # of the content before: "start", "break", "end" of a sentence, or "text"
    pending: int | None = None  # a break after text, which divides if no text follows
    for index, token in enumerate(run):
        if token.kind == "point" and token.name == "br":
            if pending is not None:
                yield pending
            if pending is not None or previous != "text":
                yield index
                pending = None
            else:
                pending = index
            previous = "break"
        elif token.kind == "atom" or (token.kind == "text" and not _is_space(token.raw)):
            pending = None
            previous = "end" if token.kind == "text" and _SENTENCE_END.search(token.raw[-40:]) else "text"
    if pending is not None:
        yield pending


def _segment_parts(
    run: Sequence[InlineToken], offset: int, escape: Escape, *, use_placeholders: bool
) -> Iterator[str | MarkupSegment]:
    """Yield a run without dividing tokens as a segment, or unchanged if it has no letter."""
    text = "".join(token.text for token in run if token.kind == "text")
    if not any(map(str.isalpha, text)):
        yield "".join(token.raw for token in run)
        return
    first, last = _peeled(run, offset, keep_atoms=use_placeholders)
    inner = run[first:last]
    before, after = ("".join(token.raw for token in outer) for outer in (run[:first], run[last:]))
    lead, trail = _border_space(inner)
    builder = _Builder(use_placeholders=use_placeholders and "⟦" not in text)
    for token in inner:
        builder.add(token)
    yield builder.segment(before + lead, trail + after, escape)


def _peeled(run: Sequence[InlineToken], offset: int, *, keep_atoms: bool) -> tuple[int, int]:
    """Return the part of a run that is left without tags and white space around all of its text."""
    n_texts = [0]  # tokens with text before each index
    for token in run:
        is_text = (token.kind == "text" and not _is_space(token.raw)) or (keep_atoms and token.kind == "atom")
        n_texts.append(n_texts[-1] + is_text)

    first, last = 0, len(run)
    while first < last:
        token, other = run[first], run[last - 1]
        if token.kind == "start":
            partner = token.partner - offset
            if n_texts[partner] == n_texts[first]:  # without text
                first = partner + 1
            elif partner == last - 1:
                first, last = first + 1, last - 1
            elif n_texts[last] == n_texts[last - 1] and other.kind != "end":
                last -= 1
            elif other.kind == "end" and n_texts[last] == n_texts[other.partner - offset]:
                last = other.partner - offset
            else:
                break
        elif n_texts[first + 1] == n_texts[first]:
            first += 1
        elif n_texts[last] == n_texts[last - 1] and other.kind != "end":
            last -= 1
        elif other.kind == "end" and n_texts[last] == n_texts[other.partner - offset]:
            last = other.partner - offset
        else:
            break
    return first, last


def _border_space(run: Sequence[InlineToken]) -> tuple[str, str]:
    """Return the white space before the first and after the last character of a run's text, unchanged."""
    texts = [token.raw for token in run if token.kind == "text"]
    if not texts or run[0].kind == "atom" or run[-1].kind == "atom":
        return "", ""
    lead: list[str] = []
    for raw in texts:
        match = _SPACE.match(raw)
        lead.append(match[0] if match else "")
        if len(lead[-1]) < len(raw):
            break
    trail: list[str] = []
    for raw in reversed(texts):
        trail.append(raw[_trailing_space(raw) :])
        if len(trail[-1]) < len(raw):
            break
    return "".join(lead), "".join(reversed(trail))


class _Builder:
    """Collects the text of a segment and the spans of its inline tags."""

    def __init__(self, *, use_placeholders: bool) -> None:
        self.use_placeholders = use_placeholders
        self.pieces: list[str] = []
        self.length = 0
        self.ends_with_space = True  # white space at the start is not part of the text
        self.inlines: list[Inline] = []
        self.opened: list[int] = []
        self.n_placeholders = 0

    def add(self, token: InlineToken) -> None:
        """Add a token."""
        if token.kind == "text":
            if self.inlines and self.inlines[-1].is_atom and self.inlines[-1].start == self.length:
                has_space = token.text[:1].isspace()
                self.inlines[-1] = replace(self.inlines[-1], has_space_after=has_space)
            self._add_text(_COLLAPSED.sub(" ", token.text))
        elif token.kind == "start":
            self.opened.append(self._add_inline(Inline(self.length, 0, token.raw, parent=self._parent)))
        elif token.kind == "end":
            number = self.opened.pop()
            self.inlines[number] = replace(self.inlines[number], end=self.length, closing=token.raw)
        elif token.kind == "atom" and self.use_placeholders:
            self.n_placeholders += 1
            symbol, start = f"⟦{self.n_placeholders}⟧", self.length
            self._add_text(symbol)
            self._add_inline(Inline(start, self.length, token.raw, "", self._parent, is_atom=True, symbol=symbol))
        else:
            position = self.length
            is_break = token.name == "br" and not self.ends_with_space
            if token.name in _SEPARATING:
                self._add_text(" ")
            is_atom = token.kind == "atom" or token.name in _IMAGES
            parent = self._parent
            self._add_inline(Inline(position, position, token.raw, "", parent, is_atom=is_atom, is_break=is_break))

    def segment(self, before: str, after: str, escape: Escape) -> MarkupSegment:
        """Return the segment."""
        text = "".join(self.pieces)
        stripped = text.rstrip(_WHITE)
        lead = len(stripped) - len(stripped.lstrip(_WHITE))

        def moved(position: int) -> int:
            return min(max(position - lead, 0), len(stripped) - lead)

        inlines = [replace(inline, start=moved(inline.start), end=moved(inline.end)) for inline in self.inlines]
        return MarkupSegment(before, after, stripped[lead:], inlines, escape)

    @property
    def _parent(self) -> int:
        return self.opened[-1] if self.opened else -1

    def _add_inline(self, inline: Inline) -> int:
        self.inlines.append(inline)
        return len(self.inlines) - 1

    def _add_text(self, text: str) -> None:
        if self.ends_with_space:
            text = text.removeprefix(" ")
        if text:
            self.pieces.append(text)
            self.length += len(text)
            self.ends_with_space = text.endswith(" ")


def _is_space(raw: str) -> bool:
    match = _SPACE.match(raw)
    return match is not None and match.end() == len(raw)


def _trailing_space(raw: str) -> int:
    """Return where the white space at the end of HTML text starts."""
    end = len(raw)
    while end:
        stripped = len(raw[:end].rstrip(_WHITE)) if raw[end - 1] in _WHITE else end
        reference = next((text for text in _SPACE_REFERENCES if raw.endswith(text, 0, stripped)), "")
        if stripped == end and not reference:
            break
        end = stripped - len(reference)
    return end
