"""Labelled spans of words, and the tagging schemes that encode them: IOB1, IOB2, BIOES and BMES.

A tag is O, or a letter, a hyphen and a label ("B-PER"). If there is only one kind of span, the tag may be the letter
alone. BIOES is also called IOBES and, with L for E and U for S, BILOU; all three spellings are read.

Two schemes have labels without letters and are only read: in IO, words with the same label next to one another are one
span; with "words", such as parts of speech, each word is a span of its own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Literal

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.text.reading.files import OnBad, raise_or_report
from manyheads.text.suggestions import shortened

Scheme = Literal["IOB1", "IOB2", "BIOES", "BMES"]
PlainScheme = Literal["IO", "words"]  # labels without letters
AnyScheme = Scheme | PlainScheme

OUTSIDE = "O"
# The letters of each scheme and their roles: B begin, I inside, E end, S single.
_ROLES: dict[Scheme, dict[str, str]] = {
    "IOB1": {"B": "B", "I": "I"},
    "IOB2": {"B": "B", "I": "I"},
    "BIOES": {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"},
    "BMES": {"B": "B", "M": "I", "E": "E", "S": "S"},
}
_ALL_ROLES = {letter: role for roles in _ROLES.values() for letter, role in roles.items()}


@dataclass(frozen=True, order=True)
class Span:
    """The words from `start` up to, but not including, `end`, and their label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class _Tag:
    """A parsed tag; outside of all spans the role is O and the label is empty."""

    role: str
    label: str


_OUTSIDE = _Tag(OUTSIDE, "")


def is_tag(text: str) -> bool:
    """Return whether the text is a tag of any scheme."""
    return text == OUTSIDE or text.partition("-")[0] in _ALL_ROLES


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> AnyScheme:
    """Return the scheme of these tags. A few strings that are not tags are ignored; `tags_to_spans` reports them.

    The letters identify BIOES and BMES; the tags at the start of spans distinguish IOB1 from IOB2. If the evidence is
    mixed, the majority decides. If there is none, all schemes give the same spans. If most labels have no letter, the
    scheme is IO where O occurs, and otherwise "words".
    """
    letters: Counter[str] = Counter()
    iob1 = iob2 = n_plain = 0
    for tags in tag_sequences:
        known = [tag for tag in tags if is_tag(tag)]
        n_plain += len(tags) - len(known)
        letters.update(tag.partition("-")[0] for tag in known)
        for previous, tag in pairwise(map(_parse_tag, chain([OUTSIDE], known))):
            continues = previous.role != OUTSIDE and previous.label == tag.label
            iob1 += tag.role == "I" and not continues
            iob2 += tag.role == "B" and not continues
    if n_plain > letters.total() - letters[OUTSIDE]:
        return "IO" if letters[OUTSIDE] else "words"
    if letters["M"] > letters["I"]:
        return "BMES"
    # In BIOES there are at least as many ends as beginnings; a few stray end tags are annotation errors.
    if 2 * sum(letters[letter] for letter in "ESLU") > letters["B"]:
        return "BIOES"
    return "IOB1" if iob1 > iob2 else "IOB2"


class TagFaultError(DataError):
    """A tag that its scheme does not allow in its position: where it is, what is wrong, and what to do."""

    def __init__(self, where: str | Message, fault: str, advice: str) -> None:
        self.where, self.fault = where, fault
        super().__init__(_("{where}: {fault}. {advice}", where=where, fault=fault, advice=advice))


def tags_to_spans(
    tags: Sequence[str], scheme: AnyScheme, *, where: str | Message = "tags", on_bad: OnBad | None = None
) -> list[Span]:
    """Return the spans that these tags encode, in order; the first tag that is invalid in its position raises.

    With `on_bad`, the errors are passed to `on_bad`, and the tags are read as the CoNLL evaluation script reads them:
    a span continues while the label stays the same, up to a begin or end tag. A string that is not a tag always raises.
    """
    if scheme == "IO" or scheme == "words":
        return _plain_spans(tags, scheme)
    wrong = find_wrong_tag(tags, scheme, where)
    if wrong is not None:
        raise wrong
    for fault, advice in _faults(tags, scheme):
        raise_or_report(TagFaultError(where, fault, advice), on_bad)
    return _lenient_spans(tags)


def find_wrong_tag(tags: Sequence[str], scheme: AnyScheme, where: str | Message) -> DataError | None:
    """Return the error for the first string that is not a tag; None if all are."""
    if scheme == "IO" or scheme == "words":
        return None
    for position, tag in enumerate(tags, start=1):
        if not is_tag(tag):
            return DataError(
                _(
                    '{where}: tag {position} of {n_tags} is "{tag}"; a tag must be O or one of {known}. '
                    "Choose the column that holds the tags.",
                    where=where,
                    position=position,
                    n_tags=len(tags),
                    tag=shortened(tag),
                    known=", ".join(f"{letter}-…" for letter in _ROLES[scheme]),
                )
            )
    return None


def spans_to_tags(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Return the tags of `length` words with these spans, which may come in any order but must not overlap."""
    tags = [OUTSIDE] * length
    previous = Span(0, 0, "")
    for span in sorted(spans):
        if not previous.end <= span.start < span.end <= length:
            raise DataError(
                _(
                    "{span} is not valid after {previous}: spans must not overlap, and each must cover at least "
                    "one of the {length} words.",
                    span=span,
                    previous=previous,
                    length=length,
                )
            )
        is_adjacent = previous.end == span.start and previous.start < previous.end and previous.label == span.label
        letters = _letters(span.end - span.start, scheme, is_adjacent)
        tags[span.start : span.end] = [f"{letter}-{span.label}" if span.label else letter for letter in letters]
        previous = span
    return tags


def _letters(length: int, scheme: Scheme, is_adjacent: bool) -> str:
    """Return the letters of one span; `is_adjacent` means it directly follows a span with the same label."""
    if scheme in ("IOB1", "IOB2"):
        return ("I" if scheme == "IOB1" and not is_adjacent else "B") + "I" * (length - 1)
    if length == 1:
        return "S"
    return "B" + ("M" if scheme == "BMES" else "I") * (length - 2) + "E"


@lru_cache(1 << 12)
def _parse_tag(tag: str) -> _Tag:
    if tag == OUTSIDE:
        return _OUTSIDE
    letter, _hyphen, label = tag.partition("-")
    return _Tag(_ALL_ROLES[letter], label)


def _plain_spans(tags: Sequence[str], scheme: PlainScheme) -> list[Span]:
    spans: list[Span] = []
    for position, (previous, tag) in enumerate(pairwise(chain([OUTSIDE], tags))):
        if scheme == "IO" and tag == previous and tag != OUTSIDE:
            spans[-1] = Span(spans[-1].start, position + 1, tag)
        elif tag != OUTSIDE:
            spans.append(Span(position, position + 1, tag))
    return spans


def _lenient_spans(tags: Sequence[str]) -> list[Span]:
    spans: list[Span] = []
    previous = _OUTSIDE
    for position, tag in enumerate(map(_parse_tag, tags)):
        if tag.role in ("I", "E") and previous.role in ("B", "I") and tag.label == previous.label:
            spans[-1] = Span(spans[-1].start, position + 1, tag.label)
        elif tag.role != OUTSIDE:
            spans.append(Span(position, position + 1, tag.label))
        previous = tag
    return spans


def _faults(tags: Sequence[str], scheme: Scheme) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with each tag that the scheme does not have or does not allow there, and advice."""
    for position, (previous, tag) in enumerate(pairwise(chain([OUTSIDE], tags)), start=1):
        if tag != OUTSIDE and tag.partition("-")[0] not in _ROLES[scheme]:
            reason = _(": {scheme} has no such letter", scheme=scheme)
        elif not _may_follow(_parse_tag(tag), _parse_tag(previous), scheme):
            reason = _(" in {scheme}", scheme=scheme)
        else:
            continue
        fault = _(
            "tag {position} of {n_tags}, {tag} {after}, is not valid{reason}",
            position=position,
            n_tags=len(tags),
            tag=shortened(tag),
            after=_("after {previous}", previous=shortened(previous)) if position > 1 else _("at the start"),
            reason=reason,
        )
        yield fault, _("Correct the tag, or set the scheme.")
    if tags and scheme in ("BIOES", "BMES") and _parse_tag(tags[-1]).role in ("B", "I"):
        fault = _(
            "tag {position} of {n_tags}, {tag}, starts a span that does not end",
            position=len(tags),
            n_tags=len(tags),
            tag=shortened(tags[-1]),
        )
        yield fault, _("Correct the tag.")


def _may_follow(tag: _Tag, previous: _Tag, scheme: Scheme) -> bool:
    continues = previous.role != OUTSIDE and previous.label == tag.label
    if scheme == "IOB1":
        return tag.role != "B" or continues
    if scheme == "IOB2":
        return tag.role != "I" or continues
    if previous.role in ("B", "I"):
        return tag.role in ("I", "E") and continues
    return tag.role not in ("I", "E")
