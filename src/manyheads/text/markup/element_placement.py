"""`place_elements`: inline tags of a text, put around the aligned words of its translation.

Every tag occurs once. An element becomes one interval of target words inside that of its parent, and siblings do not
overlap, so the tags are nested as in the source whatever the alignment is.
"""

import html
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from manyheads.text.tokens.words import is_chinese_or_kana, split_text

Link = tuple[int, int]  # (source word, target word)
_Interval = tuple[int, int]  # target words from the first up to, but not including, the last

_BEFORE_NEXT = 0.9  # the weight of a position before the next word; after the previous word it is 1
_OPENING = frozenset("([{<\"'“‘«–—+=×&")  # after these there is no space, but before
_UNALIGNED_COST = 0.1  # of a word between two aligned ones; a word aligned with other words costs 1


@dataclass(frozen=True, slots=True)
class Inline:
    """An inline element over a span of the text, or, with an empty span, something between two words."""

    start: int
    end: int
    opening: str  # the start tag; the whole of something without content
    closing: str = ""
    parent: int = -1  # the index of the enclosing element
    is_atom: bool = False  # shown like a word, and not translated
    symbol: str = ""  # what stands for it in the text
    is_break: bool = False  # a line break in place of a space
    has_space_after: bool = False  # of an atom: white space follows, one with what is before it in the text


def escape_html(text: str) -> str:
    """Return a text as HTML."""
    return html.escape(text, quote=False).replace("\u00a0", "&nbsp;")


def needs_alignment(text: str, inlines: Sequence[Inline]) -> bool:
    """Return whether the position of a tag depends on an alignment: it is not around or beside the whole text."""
    end = len(text)
    return any(
        not inline.symbol and (inline.start, inline.end) not in ((0, 0), (0, end), (end, end)) for inline in inlines
    )


def place_elements(
    text: str,
    inlines: Sequence[Inline],
    translation: str,
    links: Sequence[Link],
    escape: Callable[[str], str] = escape_html,
) -> str:
    """Return the translation with the inline elements of the text around the words aligned with theirs.

    `escape` writes plain text in the format of the elements.
    """
    if not inlines:
        return escape(translation)
    symbols = [inline.symbol for inline in inlines if inline.symbol]
    source, target = _Words.of(text, symbols), _Words.of(translation, symbols)
    aligned = [(source.unit_of[i], target.unit_of[j]) for i, j in links if i < source.n_words and j < target.n_words]
    placement = _Placement(inlines, source, target, _completed(aligned, source, target), escape)
    placement.run()
    return "".join(placement.written(translation))


@dataclass(frozen=True)
class _Words:
    """The words of a text; a symbol that stands for an element is one word."""

    starts: list[int]
    ends: list[int]
    unit_of: list[int]  # of each word of `split_text`
    symbols: dict[str, int]  # the word of each symbol, where it occurs first
    repeated: list[_Interval]  # characters of symbols that occur again
    is_word: list[bool]  # whether a word has a letter or digit
    is_character: list[bool]  # whether it is a Chinese character or kana

    @property
    def n_words(self) -> int:
        return len(self.unit_of)

    @classmethod
    def of(cls, text: str, symbols: Sequence[str]) -> "_Words":
        found: dict[str, _Interval] = {}
        repeated: list[_Interval] = []
        for symbol in symbols:
            position = text.find(symbol)
            while position >= 0:
                span = (position, position + len(symbol))
                if symbol in found:
                    repeated.append(span)
                else:
                    found[symbol] = span
                position = text.find(symbol, span[1])
        whole = sorted([*found.values(), *repeated])
        starts: list[int] = []
        ends: list[int] = []
        unit_of: list[int] = []
        for word in split_text(text, "word"):
            index = bisect_right(whole, (word.start, len(text) + 1)) - 1
            start, end = word.start, word.end
            if index >= 0 and start < whole[index][1]:
                start, end = whole[index]
                end = max(end, word.end)
            if starts and start <= starts[-1]:
                ends[-1] = max(end, ends[-1])
            else:
                starts.append(start)
                ends.append(end)
            unit_of.append(len(starts) - 1)
        units = {symbol: bisect_right(starts, span[0]) - 1 for symbol, span in found.items()}
        words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        is_word = [any(map(str.isalnum, word)) for word in words]
        return cls(starts, ends, unit_of, units, repeated, is_word, [is_chinese_or_kana(word[0]) for word in words])


def _completed(links: Sequence[Link], source: _Words, target: _Words) -> set[Link]:
    """Return the links that a tag should follow.

    Punctuation is not linked with a word. A Chinese character or kana without a link has those of the character before
    it: the rest of a word follows from its start, so that the model hardly attends to the source there.
    """
    kept = {(i, j) for i, j in links if source.is_word[i] == target.is_word[j]}
    sources: dict[int, list[int]] = {}
    for i, j in kept:
        sources.setdefault(j, []).append(i)
    for j in range(1, len(target.starts)):
        if j not in sources and j - 1 in sources and target.is_character[j] and target.is_character[j - 1]:
            sources[j] = sources[j - 1]
            kept.update((i, j) for i in sources[j])
    return kept


class _Placement:
    """Finds an interval of target words for each inline element."""

    def __init__(
        self,
        inlines: Sequence[Inline],
        source: _Words,
        target: _Words,
        links: Iterable[Link],
        escape: Callable[[str], str],
    ) -> None:
        self.inlines, self.source, self.target, self.escape = inlines, source, target, escape
        self.n_source, self.n_target = len(source.starts), len(target.starts)
        self.targets: list[set[int]] = [set() for _ in range(self.n_source)]  # of each source word
        self.sources: list[set[int]] = [set() for _ in range(self.n_target)]  # of each target word
        for i, j in links:
            self.targets[i].add(j)
            self.sources[j].add(i)
        self.n_linked = _cumulative([bool(own) for own in self.sources])
        self.children: dict[int, list[int]] = {}
        for number, inline in enumerate(inlines):
            self.children.setdefault(inline.parent, []).append(number)
        self.intervals: dict[int, _Interval] = {-1: (0, self.n_target)}
        self.spans = [self._source_words(inline) for inline in inlines]

    def run(self) -> None:
        """Place all elements, those outside first."""
        for parent in (-1, *range(len(self.inlines))):
            if parent not in self.children:
                continue
            taken: list[_Interval] = []  # of those of the children that have words
            own = self.children[parent]
            with_words = [number for number in own if self.spans[number][0] < self.spans[number][1]]
            # Symbols are where they are; of the others the longest has the first choice.
            with_words.sort(key=lambda number: (not self._has_symbol(number), -len(self._aligned(number))))
            for number in with_words:
                self.intervals[number] = self._place(number, parent, taken)
                if self.intervals[number][0] < self.intervals[number][1]:
                    taken.append(self.intervals[number])
            for number in own:
                if number not in self.intervals:
                    boundary = self._boundary(self.spans[number][0], parent, taken)
                    self.intervals[number] = (boundary, boundary)

    def _source_words(self, inline: Inline) -> _Interval:
        first = bisect_right(self.source.ends, inline.start)
        if inline.start == inline.end:  # also inside a word, such as the dashes of --{name}-
            return first, first
        return first, max(first, bisect_left(self.source.starts, inline.end))

    def _has_symbol(self, number: int) -> bool:
        return self.inlines[number].symbol in self.target.symbols

    def _aligned(self, number: int) -> set[int]:
        first, last = self.spans[number]
        return set().union(*self.targets[first:last])

    def _place(self, number: int, parent: int, taken: Sequence[_Interval]) -> _Interval:
        """Return the target words of an element that has source words; there may be none."""
        low, high = self.intervals[parent]
        if self._has_symbol(number):
            unit = self.target.symbols[self.inlines[number].symbol]
            if low <= unit < high:
                return unit, unit + 1
            boundary = self._boundary(self.spans[number][0], parent, taken)
            return boundary, boundary
        if self.inlines[number].symbol:  # the translation lacks it
            boundary = self._boundary(self.spans[number][0], parent, taken)
            return boundary, boundary
        if not taken and self.spans[number] == self._parent_span(parent):
            return low, high
        free = [j for j in sorted(self._aligned(number)) if low <= j < high and not _inside(j, taken)]
        if free:
            return self._densest(free, taken)
        return self._gap(number, parent, taken)

    def _parent_span(self, parent: int) -> _Interval:
        return self.spans[parent] if parent >= 0 else (0, self.n_source)

    def _densest(self, aligned: Sequence[int], taken: Sequence[_Interval]) -> _Interval:
        """Return the interval with most of the aligned words and fewest others (the largest sum of an interval)."""
        blocked = sorted(taken)
        best, found = (0.0, 0), (aligned[0], aligned[0] + 1)  # score and number of aligned words
        score, n_aligned, start, previous = 0.0, 0, aligned[0], aligned[0] - 1
        for j in aligned:
            n_foreign = self.n_linked[j] - self.n_linked[previous + 1]
            n_unaligned = j - previous - 1 - n_foreign
            score -= n_foreign + _UNALIGNED_COST * n_unaligned
            if score < 0 or _crosses(blocked, previous, j):
                score, n_aligned, start = 0.0, 0, j
            score, n_aligned = score + 1, n_aligned + 1
            if (score, n_aligned) > best:
                best, found = (score, n_aligned), (start, j + 1)
            previous = j
        return found

    def _gap(self, number: int, parent: int, taken: Sequence[_Interval]) -> _Interval:
        """Return the words without links between those of the words around an element, or the position there."""
        first, last = self.spans[number]
        low, high = self.intervals[parent]
        before = next((max(self.targets[i]) + 1 for i in reversed(range(first)) if self.targets[i]), 0)
        after = next((min(self.targets[i]) for i in range(last, self.n_source) if self.targets[i]), self.n_target)
        start, end = max(before, low), min(after, high)
        if start < end and self.n_linked[end] == self.n_linked[start] and not _overlaps((start, end), taken):
            return start, end
        boundary = self._boundary(first, parent, taken)
        return boundary, boundary

    def _boundary(self, source_word: int, parent: int, taken: Sequence[_Interval]) -> int:
        """Return the position in the translation of what is before a source word."""
        low, high = self.intervals[parent]
        first, last = self._parent_span(parent)
        if source_word <= first or low == high:
            wanted = low
        elif source_word >= last:
            wanted = high
        else:
            wanted = self._best_boundary(source_word, low, high)
        for start, end in taken:
            if start < wanted < end:
                return start if wanted - start <= end - wanted else end
        return wanted

    def _best_boundary(self, source_word: int, low: int, high: int) -> int:
        """Return the boundary beside the words aligned with the neighbors, else the one that divides links best."""
        is_before = [any(i < source_word for i in self.sources[j]) for j in range(low, high)]
        is_after = [any(i >= source_word for i in self.sources[j]) for j in range(low, high)]
        n_before, n_after = _cumulative(is_before), _cumulative(is_after)

        def score(boundary: int) -> float:
            index = boundary - low
            divided = (n_before[index] + n_after[-1] - n_after[index]) / (high - low + 1)
            beside = boundary > low and source_word - 1 in self.sources[boundary - 1]
            follows = boundary < high and source_word in self.sources[boundary]
            return beside + _BEFORE_NEXT * follows + (1 - _BEFORE_NEXT) * divided

        return max(range(low, high + 1), key=score)

    def written(self, translation: str) -> Iterator[str]:
        """Yield the translation with its tags."""
        self.starts = [*self.target.starts, len(translation)]
        self.ends = [0, *self.target.ends]
        self.translation = translation
        yield from self._content(-1, 0, len(translation))

    def _content(self, parent: int, position: int, end: int) -> Iterator[str]:
        for number in sorted(self.children.get(parent, ()), key=lambda number: (*self.intervals[number], number)):
            first, last = self.intervals[number]
            inline = self.inlines[number]
            if first < last:
                start, stop = self.starts[first], self.ends[last]
            else:
                # In the gap between two words; a tag that followed white space is after it.
                follows_space = inline.start == 0 or self._is_space_before(inline.start)
                start = stop = self.starts[first] if follows_space else self.ends[first]
            start = min(max(start, position), end)
            stop = min(max(stop, start), end)
            yield self._text(position, start)
            if inline.is_atom:
                yield inline.opening if inline.symbol and first < last else self._spaced(inline, start)
            else:
                yield inline.opening
                yield from self._content(number, start, stop)
                yield inline.closing
            position = stop + (inline.is_break and self.translation[stop:end].startswith(" "))
        yield self._text(position, end)

    def _is_space_before(self, position: int) -> bool:
        """Return whether a position of the source is not directly after a word."""
        index = bisect_left(self.source.ends, position)
        return index == len(self.source.ends) or self.source.ends[index] != position

    def _text(self, start: int, end: int) -> str:
        """Return characters of the translation, without symbols that were repeated."""
        pieces = []
        for first, last in self.target.repeated:
            if start <= first < end:
                pieces.append(self.translation[start:first])
                start = min(last, end)
        return self.escape("".join([*pieces, self.translation[start:end]]))

    def _spaced(self, inline: Inline, position: int) -> str:
        """Return a word that is put into the translation, with spaces where words are separated by spaces."""
        before, after = self.translation[:position][-1:], self.translation[position : position + 1]
        is_apart = _is_spaced(after) or (inline.has_space_after and after in _OPENING)
        return f"{' ' * _is_spaced(before)}{inline.opening}{' ' * is_apart}"


def _is_spaced(character: str) -> bool:
    return character.isalnum() and not is_chinese_or_kana(character)


def _inside(word: int, intervals: Sequence[_Interval]) -> bool:
    return any(start <= word < end for start, end in intervals)


def _overlaps(interval: _Interval, others: Sequence[_Interval]) -> bool:
    return any(start < interval[1] and interval[0] < end for start, end in others)


def _crosses(blocked: Sequence[_Interval], first: int, last: int) -> bool:
    """Return whether one of the intervals is between two words."""
    return any(first < start < last for start, _ in blocked)


def _cumulative(values: Sequence[bool]) -> list[int]:
    total = [0]
    for value in values:
        total.append(total[-1] + value)
    return total
