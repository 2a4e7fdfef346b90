"""Measure where the tags of marked-up sentences land in their translations, as a markdown table.

    python benchmarks/markup.py BUNDLE [--sentences 1000] [--seed 1]

BUNDLE is a translation model that was trained on the built-in corpus (`manyheads quickstart`). Sentences of its test
set get one to three random inline elements around one to three words, sometimes nested, with void tags between words.
The corpus knows which words of the translation express the same meaning, which tells where an element belongs.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from html.parser import HTMLParser

from manyheads.answer.markup_translation import MarkupTranslator
from manyheads.bundle import Bundle, load
from manyheads.corpora import Sentence, sentences
from manyheads.lens.aligner import OcclusionAligner
from manyheads.metrics import quick_score
from manyheads.text.tokens.words import split_text

_TAGS = ("b", "i", "em", "a", "span", "u")
_VOID = ('<img src="a.png">', "<wbr>", "<!-- note -->")
_MARKUP = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)


@dataclass(frozen=True)
class Marked:
    """A sentence with tags; each element has a number, which its id attribute tells, and its source words."""

    sentence: Sentence
    html: str
    elements: Sequence[tuple[int, int]]  # source words from … up to


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--occlusion", action="store_true", help="align by occlusion instead of chosen heads")
    args = parser.parse_args()
    bundle = load(args.bundle)
    source, target = bundle.task.languages(bundle.task.settings)
    rng = random.Random(args.seed)
    marked = [mark(sentence, source, rng) for sentence in sentences("test", args.sentences, args.seed)]
    translator = MarkupTranslator(bundle)
    if args.occlusion:
        translator.__dict__["aligner"] = OcclusionAligner(bundle.task)
    report(bundle, translator, marked, source, target)


def mark(sentence: Sentence, language: str, rng: random.Random) -> Marked:
    """Put random elements around words of a sentence."""
    rendering = sentence.rendering(language)
    n_words = len(rendering.words) - 1  # without the final punctuation
    elements: list[tuple[int, int]] = []
    for _ in range(rng.randint(1, 3)):
        first = rng.randrange(n_words)
        last = min(first + rng.randint(1, 3), n_words)
        if all(_is_nested((first, last), other) for other in elements):
            elements.append((first, last))
    openings: dict[int, list[tuple[int, str]]] = {}
    closings: dict[int, list[tuple[int, str]]] = {}
    for number, (first, last) in enumerate(elements):
        tag = rng.choice(_TAGS)
        openings.setdefault(first, []).append((-last, f'<{tag} id="{number}">'))
        closings.setdefault(last - 1, []).append((-first, f"</{tag}>"))
    pieces, position = [], 0
    void_before = rng.randrange(n_words) if rng.random() < 0.3 else -1
    for index, (start, end) in enumerate(rendering.spans):
        pieces.append(escape(rendering.text[position:start], quote=False))
        if index == void_before:
            pieces.append(rng.choice(_VOID))
        pieces += [tag for _, tag in sorted(openings.get(index, ()), key=lambda one: one[0])]
        pieces.append(escape(rendering.text[start:end], quote=False))
        pieces += [tag for _, tag in sorted(closings.get(index, ()), key=lambda one: one[0])]
        position = end
    return Marked(sentence, "".join(pieces), elements)


def _is_nested(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two different spans are apart, or one is inside the other."""
    if one == other:
        return False
    apart = one[1] <= other[0] or other[1] <= one[0]
    return apart or (one[0] <= other[0] and other[1] <= one[1]) or (other[0] <= one[0] and one[1] <= other[1])


class _Elements(HTMLParser):
    """The characters of each numbered element, and whether tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.is_balanced = "", True
        self.opened: list[tuple[str, int, int]] = []
        self.spans: dict[int, tuple[int, int]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _TAGS:
            self.opened.append((tag, int(dict(attrs)["id"] or 0), len(self.text)))

    def handle_endtag(self, tag: str) -> None:
        name, number, start = self.opened.pop() if self.opened else ("", -1, 0)
        self.is_balanced &= name == tag
        self.spans[number] = (start, len(self.text))

    def handle_data(self, data: str) -> None:
        self.text += data


def read_elements(html: str) -> _Elements:
    """Parse a translation."""
    parser = _Elements()
    parser.feed(html)
    parser.close()
    parser.is_balanced &= not parser.opened
    return parser


def report(bundle: Bundle, translator: MarkupTranslator, marked: Sequence[Marked], source: str, target: str) -> None:
    """Translate and print the table."""
    translator.translate(["A <b>b</b> c."])  # chooses alignment heads
    started = time.perf_counter()
    answers = [one.answer for one in translator.translate([one.html for one in marked])]
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    plain = bundle.predict([one.sentence.text(source) for one in marked])
    plain_seconds = time.perf_counter() - started
    references = [one.sentence.text(target) for one in marked]
    parsed = [read_elements(answer) for answer in answers]
    stripped = [unescape(_MARKUP.sub("", answer)) for answer in answers]
    n_balanced = sum(
        own.is_balanced and Counter(_MARKUP.findall(answer)) == Counter(_MARKUP.findall(one.html))
        for own, answer, one in zip(parsed, answers, marked, strict=True)
    )
    counts, ceiling = Counter[str](), Counter[str]()
    for own, text, one, reference in zip(parsed, stripped, marked, references, strict=True):
        if text == reference:  # the gold is known
            counts["texts"] += 1
            counts.update(dict(_judged(own, one, source, target)))
            best = translator.split(one.html).join([reference], [gold_links(one.sentence, source, target)])
            ceiling.update(dict(_judged(read_elements(best), one, source, target)))
    rows = {
        "sentences": f"{len(marked):,}",
        "every tag once, balanced and nested": f"{n_balanced / len(marked):.1%}",
        "tagged source words whose translation is inside the element": _share(counts, "found", "gold"),
        "words inside elements that translate a tagged word, or no word": _share(counts, "fitting", "covered"),
        "elements with exactly the gold words": _share(counts, "exact", "elements"),
        "— the three shares if tags are placed by the gold alignment": " · ".join(
            _share(ceiling, *names) for names in (("found", "gold"), ("fitting", "covered"), ("exact", "elements"))
        ),
        "sentences with gold (translation as in the corpus)": f"{counts['texts']:,}",
        "BLEU without the tags": f"{quick_score('BLEU', stripped, references, target):.2f}",
        "BLEU of the plain sentences": f"{quick_score('BLEU', plain, references, target):.2f}",
        "texts identical to the plain translation": f"{sum(map(str.__eq__, stripped, plain)) / len(plain):.1%}",
        "seconds, plain sentences": f"{plain_seconds:.1f}",
        "seconds, with tags": f"{seconds:.1f}",
    }
    print("| | |\n| --- | --- |")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def gold_links(sentence: Sentence, source: str, target: str) -> list[tuple[int, int]]:
    """Return the gold alignment between the words of `split_text`, which are smaller than those of the corpus."""
    sides = []
    for side in (sentence.rendering(source), sentence.rendering(target)):
        words = list(enumerate(split_text(side.text, "word")))
        sides.append([[number for number, word in words if start <= word.start < end] for start, end in side.spans])
    return [(i, j) for one, other in sentence.alignment(source, target) for i in sides[0][one] for j in sides[1][other]]


def _share(counts: Counter[str], name: str, of: str) -> str:
    return f"{counts[name] / max(1, counts[of]):.1%} of {counts[of]:,}"


def _judged(own: _Elements, one: Marked, source: str, target: str) -> Iterator[tuple[str, int]]:
    """Yield counts of one sentence."""
    links = one.sentence.alignment(source, target)
    spans = one.sentence.rendering(target).spans
    linked = {j for _, j in links}
    counts = Counter[str]()
    for number, (first, last) in enumerate(one.elements):
        start, end = own.spans[number]
        inside = {j for j, span in enumerate(spans) if span[0] < end and start < span[1]}
        whole = {j for j, span in enumerate(spans) if start <= span[0] and span[1] <= end}
        gold = {j for i, j in links if first <= i < last}
        if not gold:
            continue
        counts["elements"] += 1
        for word in range(first, last):
            own_gold = {j for i, j in links if i == word}
            counts["gold"] += bool(own_gold)
            counts["found"] += bool(own_gold) and own_gold <= whole
        counts["covered"] += len(inside)
        counts["fitting"] += len([j for j in inside if j in gold or j not in linked])
        counts["exact"] += whole & linked == gold and inside & linked == gold
    yield from counts.items()


if __name__ == "__main__":
    main()
