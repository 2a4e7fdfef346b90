"""Sentence splitting for English, German, French, Chinese and other languages with similar punctuation.

`split_sentences` finds whole sentences; `split_long` also divides a sentence that is too long for a model.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from manyheads.text.markup.copyable_spans import Span, copyable_spans
from manyheads.text.tokens.words import is_chinese_or_kana

_CLOSING = "\"'”’»›)]}」』】）〉》＂＇"
_OPENING = "\"'“‘„‚«‹([{「『【（〈《¿¡*_-–—•"
_END_MARKS = ".!?…‽。！？｡؟۔।॥"
_END = re.compile(rf"[{_END_MARKS}]+[{re.escape(_CLOSING)}]*|\n\s*")
_END_CHARACTERS = frozenset(f"{_END_MARKS}\n")
_NEXT = re.compile(rf"(\s*)[{re.escape(_OPENING)}\s]*(\S?[^\s,]{{0,20}})")
_ENDS_WITHOUT_SPACE = "。！？｡؟۔।॥"
_QUOTES = (
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
    ("(", ")"),
    ("[", "]"),
    ("「", "」"),
    ("『", "』"),
    ("（", "）"),
    ("《", "》"),
)
_LAST_WORD = re.compile(r"[^\s(\[{\"“„«‘]+$")
_BACKTICKS = re.compile(r"``[^`\n]+``|`[^`\n]+`")
_INITIAL = re.compile(r"[^\W\d_]\.")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A period after these does not end a sentence.
_TITLES = _words(
    "Mr Mrs Ms Dr Prof St Sen Rep Gov Gen Col Lt Sgt Capt Mt Ft Rev Hon Hr Fr Mme Mmes Mlle Mlles MM Mgr Str"
)
_ABBREVIATIONS = _words(
    "vs e.g i.e cf viz resp incl approx dept ca bzw d.h z.b u.a o.ä s.o s.u v.a i.d.r bsp evtl ggf inkl sog vgl zzgl "
    "mio mrd p.ex c.-à-d env tél"
)
_BEFORE_NUMBERS = _words("no nos vol fig figs pp sec eq eqs ch chap nr abb abs art bd av apr")
# After these, a period ends a sentence only before a word that is unlikely to belong to them.
_MAY_END = _words("etc inc ltd co corp bros a.m p.m u.s u.k u.n usw u.s.w jan feb mar jun jul aug sep sept oct nov dec")
_STARTERS = _words(
    "the a an this that these those it he she they we you i in on at but and so however der die das es er sie wir ich "
    "le la les il elle ils elles nous je ce c'est"
)
_CLAUSES = (re.compile(r"[;；:：](?=\s)|[；：]"), re.compile(r"[,—–](?=\s)|[，、—]"), re.compile(r"\s+"))


def split_sentences(text: str, language: str = "", kept: Sequence[Span] = ()) -> list[Span]:
    """Return the spans of the sentences of a text, without the white space between them.

    Quotations, brackets, URLs and code are not divided, nor the spans `kept`. `language` is a code such as "de" or
    empty.
    """
    if _END_CHARACTERS.isdisjoint(text[:-1]):  # most texts are one sentence
        span = (0, len(text)) if text[:1].isalnum() and not text[-1].isspace() else _stripped(text, 0, len(text))
        return [span] if span[0] < span[1] else []
    ends = [end for end in _ends(text, language) if end < len(text)]
    return list(_spans(text, _inside([*copyable_spans(text), *_enclosed(text), *kept], ends) if ends else ()))


def split_long(text: str, fits: Callable[[str], bool], language: str = "", kept: Sequence[Span] = ()) -> list[Span]:
    """Return the spans of parts that fit, divided where it does least harm.

    These are the ends of sentences, even inside a quotation; then semicolons and colons; then commas; then spaces. A
    word that does not fit is cut. The spans `kept` are divided only if they do not fit.
    """
    parts: list[Span] = []
    pending = [_stripped(text, 0, len(text))] if text.strip() else []
    while pending:
        start, end = pending.pop()
        if end - start < 2 or fits(text[start:end]):
            parts.append((start, end))
            continue
        own = [(first - start, last - start) for first, last in kept if start <= first and last <= end]
        cut = start + _best_cut(text[start:end], language, own)
        pending += [_stripped(text, cut, end), _stripped(text, start, cut)]
    return parts


def _best_cut(text: str, language: str, kept: Sequence[Span]) -> int:
    """Return the best place to divide a text: near its middle."""
    protected = [*copyable_spans(text), *kept]
    for pattern in (None, *_CLAUSES):
        cuts = [match.end() for match in pattern.finditer(text)] if pattern else _ends(text, language)
        margin = 0 if pattern is _CLAUSES[-1] else len(text) // 6  # a part of a few words is hard to translate
        candidates = [cut for cut in _inside(protected, cuts) if max(margin, 1) <= cut < len(text) - margin]
        if candidates:
            return min(candidates, key=lambda cut: abs(cut - len(text) // 2))
    return len(text) // 2


def _ends(text: str, language: str) -> list[int]:
    """Return where sentences end, quotations and brackets aside."""
    return [match.end() for match in _END.finditer(text) if _is_end(text, match, language)]


def _is_end(text: str, match: "re.Match[str]", language: str) -> bool:
    end = match.end()
    if "\n" in match[0] or end == len(text):
        return True
    if any(character in _ENDS_WITHOUT_SPACE for character in match[0]):
        return True
    space, following = _NEXT.match(text, end).groups()  # type: ignore[union-attr]
    if not space:  # 3.14, example.com; but Chinese text may have ASCII punctuation
        return match[0][0] in "!?" and is_chinese_or_kana(text[end])
    if not following or following[0].islower():
        return False
    if match[0] != ".":
        return True
    found = _LAST_WORD.search(text, max(0, match.start() - 30), match.start())
    return found is None or _ends_sentence(found[0], found.start() == 0, following, language)


def _ends_sentence(word: str, is_first: bool, following: str, language: str) -> bool:
    """Return whether the period after a word ends the sentence."""
    if word.isdecimal() and len(word) <= 2 and (is_first or language.startswith("de")):
        return False  # 1. Introduction; am 3. Mai
    folded = word.lower()
    if word in _TITLES or folded in _ABBREVIATIONS:
        return False
    if folded in _BEFORE_NUMBERS:
        return not following[0].isdecimal()
    if folded in _MAY_END or ("." in word and len(word) <= 5):
        return following.lower() in _STARTERS
    if len(word) > 1 or not word.isalpha() or is_chinese_or_kana(word):
        return True
    return word == "I" or (word.islower() and not _INITIAL.match(following))  # not J. Smith, z. B.


def _enclosed(text: str) -> Iterator[Span]:
    """Yield the spans between quotation marks or brackets that belong together."""
    for opening, closing in _QUOTES:
        if opening not in text:
            continue
        start = -1
        for position, character in enumerate(text):
            if character == opening and start < 0:
                start = position
            elif character == closing and start >= 0:
                yield start, position + 1
                start = -1
    yield from (match.span() for match in _BACKTICKS.finditer(text))
    marks = [position for position, character in enumerate(text) if character == '"']
    if len(marks) % 2 == 0:
        yield from ((first, last + 1) for first, last in zip(marks[::2], marks[1::2], strict=True))


def _inside(protected: Sequence[Span], cuts: Sequence[int]) -> Iterator[int]:
    """Yield the cuts that are not inside a protected span."""
    spans = sorted(protected)
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    starts = [start for start, _ in merged]
    for cut in cuts:
        index = bisect_right(starts, cut - 1) - 1
        if index < 0 or cut >= merged[index][1]:
            yield cut


def _spans(text: str, cuts: "Iterator[int] | Sequence[int]") -> Iterator[Span]:
    """Yield the parts of a text between cuts, without white space around them; parts without a letter are joined."""
    found: list[Span] = []
    for start, end in pairwise([0, *cuts, len(text)]):
        span = _stripped(text, start, end)
        if span[0] == span[1]:
            continue
        is_on_same_line = bool(found) and "\n" not in text[found[-1][1] : span[0]]
        if is_on_same_line and not (_has_word(text[slice(*span)]) and _has_word(text[slice(*found[-1])])):
            found[-1] = (found[-1][0], span[1])
        else:
            found.append(span)
    yield from found


def _stripped(text: str, start: int, end: int) -> Span:
    """Return a span without the white space around it; it may be empty."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, max(start, start + len(part.strip()))


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))
