"""Spans of words that carry a label, and the tags that write them down: IOB1, IOB2, BIOES and BMES.

A tag is O, or a letter, a hyphen and a label ("B-PER"); where there is but one kind of span, the letter alone. BIOES is
also known as IOBES and, with L for E and U for S, as BILOU; both are read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Literal, get_args

from manyheads.errors import DataError
from manyheads.text.files import OnBad, raise_or_report

Scheme = Literal["IOB1", "IOB2", "BIOES", "BMES"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

OUTSIDE = "O"
# The letters of each scheme, and which of the four roles each plays: begins, inside, ends, stands alone.
_ROLES: dict[Scheme, dict[str, str]] = {
    "IOB1": {"B": "B", "I": "I"},
    "IOB2": {"B": "B", "I": "I"},
    "BIOES": {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"},
    "BMES": {"B": "B", "M": "I", "E": "E", "S": "S"},
}
_EVERY_ROLE = {letter: role for roles in _ROLES.values() for letter, role in roles.items()}


@dataclass(frozen=True, order=True)
class Span:
    """The words from `start` up to, not including, `end`, and what they are."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class _Tag:
    """A tag taken apart; outside of every span its role is O and its label empty."""

    role: str
    label: str


_OUTSIDE = _Tag(OUTSIDE, "")


def is_tag(text: str) -> bool:
    """Whether this is a tag of any scheme."""
    return text == OUTSIDE or text.partition("-")[0] in _EVERY_ROLE


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme these tags are written in; what is no tag at all is passed over here and found by `tags_to_spans`.

    The letters tell BIOES and BMES, the beginnings of spans tell IOB1 from IOB2. Where there are signs of more than
    one scheme, the more frequent ones decide; where there are none, all mean the same.
    """
    letters: Counter[str] = Counter()
    iob1 = iob2 = 0
    for tags in tag_sequences:
        known = [tag for tag in tags if is_tag(tag)]
        letters.update(tag.partition("-")[0] for tag in known)
        for last, tag in pairwise(map(_tag, chain([OUTSIDE], known))):
            within = last.role != OUTSIDE and last.label == tag.label
            iob1 += tag.role == "I" and not within
            iob2 += tag.role == "B" and not within
    if letters["M"] > letters["I"]:
        return "BMES"
    # With a letter for the end, there are at least as many ends as beginnings; a slip here and there is no scheme.
    if 2 * sum(letters[letter] for letter in "ESLU") > letters["B"]:
        return "BIOES"
    return "IOB1" if iob1 > iob2 else "IOB2"


def tags_to_spans(
    tags: Sequence[str], scheme: Scheme, *, where: str = "tags", on_bad: OnBad | None = None
) -> list[Span]:
    """The spans these tags write down, in order; the first tag that is not valid where it stands raises.

    With `on_bad` the faults are told instead, and the tags are read as the CoNLL evaluation reads them: a span goes
    on as long as its label does and neither a beginning nor an end comes between. What is no tag always raises.
    """
    for position, tag in enumerate(tags, start=1):
        if not is_tag(tag):
            raise DataError(
                f'{where}: tag {position} of {len(tags)} is "{tag}", but a tag is O or one of '
                f"{', '.join(f'{letter}-…' for letter in _ROLES[scheme])}. Choose the column that holds the tags."
            )
    for fault in _faults(tags, scheme):
        raise_or_report(DataError(f"{where}: {fault}"), on_bad)
    return _lenient(tags)


def spans_to_tags(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of that many words with these spans, which may stand in any order but must not overlap."""
    tags = [OUTSIDE] * length
    last = Span(0, 0, "")
    for span in sorted(spans):
        if not last.end <= span.start < span.end <= length:
            raise DataError(
                f"{span} does not fit: spans hold at least one of the {length} words and do not overlap; before it "
                f"comes {last}."
            )
        touching = last.end == span.start and last.start < last.end and last.label == span.label
        letters = _letters(span.end - span.start, scheme, touching)
        tags[span.start : span.end] = [f"{letter}-{span.label}" if span.label else letter for letter in letters]
        last = span
    return tags


def _letters(length: int, scheme: Scheme, touching: bool) -> str:
    """The letters of one span; touching says that it follows directly on one with the same label."""
    if scheme in ("IOB1", "IOB2"):
        return ("I" if scheme == "IOB1" and not touching else "B") + "I" * (length - 1)
    if length == 1:
        return "S"
    return "B" + ("M" if scheme == "BMES" else "I") * (length - 2) + "E"


@lru_cache(1 << 12)
def _tag(tag: str) -> _Tag:
    if tag == OUTSIDE:
        return _OUTSIDE
    letter, _, label = tag.partition("-")
    return _Tag(_EVERY_ROLE[letter], label)


def _lenient(tags: Sequence[str]) -> list[Span]:
    spans: list[Span] = []
    last = _OUTSIDE
    for position, tag in enumerate(map(_tag, tags)):
        if tag.role in ("I", "E") and last.role in ("B", "I") and tag.label == last.label:
            spans[-1] = Span(spans[-1].start, position + 1, tag.label)
        elif tag.role != OUTSIDE:
            spans.append(Span(position, position + 1, tag.label))
        last = tag
    return spans


def _faults(tags: Sequence[str], scheme: Scheme) -> Iterator[str]:
    """One sentence for each tag that the scheme does not have, or not after the tag before it."""
    for position, (last, tag) in enumerate(pairwise(chain([OUTSIDE], tags)), start=1):
        told = f"tag {position} of {len(tags)}, {tag} after {last if position > 1 else 'the beginning'}, is not valid"
        if tag != OUTSIDE and tag.partition("-")[0] not in _ROLES[scheme]:
            yield f"{told}: {scheme} has no such letter. Say which scheme it is, or mend the tag."
        elif not _may_follow(_tag(tag), _tag(last), scheme):
            yield f"{told} in {scheme}. Mend the tag, or say which scheme it is."
    if tags and scheme in ("BIOES", "BMES") and _tag(tags[-1]).role in ("B", "I"):
        yield f"tag {len(tags)} of {len(tags)}, {tags[-1]}, begins what does not end. Mend the tag."


def _may_follow(tag: _Tag, last: _Tag, scheme: Scheme) -> bool:
    within = last.role != OUTSIDE and last.label == tag.label
    if scheme == "IOB1":
        return tag.role != "B" or within
    if scheme == "IOB2":
        return tag.role != "I" or within
    if last.role in ("B", "I"):
        return tag.role in ("I", "E") and within
    return tag.role not in ("I", "E")
