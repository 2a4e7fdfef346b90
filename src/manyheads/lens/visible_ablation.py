"""`find_visible_ablation`: a head without which an answer changes in a way that a person sees at once.

Trained weights differ between processors, and so do the heads that matter for a text: an example that holds for one
model may not hold for the next. This searches the model at hand. Short held-out texts are answered without each head,
one attention after another from the last one. The best example replaces exactly one content word by another; next best
is one that is missing. The search is deterministic for a bundle and its machine.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.heads import Head, ablation_gates, find_heads
from manyheads.lens.traces.examples import sample_examples
from manyheads.messages import _
from manyheads.model import gated
from manyheads.tasks import Prediction
from manyheads.tasks.lens_examples import Example
from manyheads.text.tokens.words import Word, split_text

_N_DRAWN = 400  # examples of the bundle's own data
_N_ANSWERED = 150  # of the shortest of them
_N_TEXTS = 100  # answered again without each head
_N_HEADS = 64  # at most
_N_CONFIRMED = 6  # changes that are tried with the bundle's own search
_MIN_WORDS = 5  # of a text, punctuation included
_MAX_SHARE = 0.1  # of texts: a word that occurs in more of them is a function word


@dataclass(frozen=True)
class VisibleAblation:
    """One text, its answer, and the answer without one head."""

    head: Head
    text: str
    answer: str
    without: str
    before: str  # what differs, in the answer; "" if the answer without the head has something in addition
    after: str  # what differs, in the answer without the head; "" if something is missing there

    def __str__(self) -> str:
        return f"{self.text}\n{self.answer}\n{self.without}   (without {self.head})"


def find_visible_ablation(bundle: Bundle) -> VisibleAblation | None:
    """Return the clearest effect of one head on the answer to a held-out text; None if no head changes any answer."""
    if bundle.decode.method == "sample":
        raise LensError(_("This model samples its answers: they differ with and without a head. Use `manyheads lens`."))
    examples = sample_examples(bundle, _N_DRAWN)
    cases = _cases(bundle, examples)
    words = _WordCounts.of(examples)
    # A greedy search finds candidates in a fraction of the time.
    quick = replace(bundle.decode, method="greedy", n_best=1, repetition_guard=False, copy_guard=False)
    unclear: list[VisibleAblation] = []
    for heads in _attentions(bundle):
        found = [change for head in heads for change in _changes(bundle, head, cases, quick, words)]
        clear = [change for change in found if words.is_clear(change)]
        for confirmed in _confirmed(bundle, clear, words):
            if words.is_clear(confirmed):
                return confirmed
        unclear += found
    return next(_confirmed(bundle, unclear, words), None)


def texts_without_remarks(bundle: Bundle, texts: Iterable[str]) -> list[str]:
    """Return the texts that the bundle answers without a warning.

    By definition, one in twenty ordinary sentences has a translation of low confidence.
    """
    known = [text for text in texts if not bundle.unseen_words(text)]
    predictions = bundle.task.predict(known, bundle.decode)
    return [text for text, prediction in zip(known, predictions, strict=True) if not _has_remarks(prediction)]


def _has_remarks(prediction: Prediction) -> bool:
    return any(getattr(prediction, name, False) for name in ("warnings", "is_low_confidence", "is_out_of_scope"))


def _cases(bundle: Bundle, examples: Sequence[Example]) -> dict[str, str]:
    """Return short texts with their answers: correct ones without a warning, as far as the model gives any."""
    references: dict[str, str | None] = {}
    for example in sorted(examples, key=lambda each: len(each.texts[0].text)):
        text = bundle.task.lens_examples.suggestion(bundle.task, example.texts[0].text)
        if len(split_text(text, "word")) >= _MIN_WORDS:
            references.setdefault(text, example.texts[1].text if len(example.texts) > 1 else None)
    texts = list(islice(references, _N_ANSWERED))
    predictions = dict(zip(texts, bundle.task.predict(texts, bundle.decode), strict=True))
    answers = {text: _shown(prediction) for text, prediction in predictions.items()}
    sound = {text: answers[text] for text, prediction in predictions.items() if not _has_remarks(prediction)}
    correct = {text: answer for text, answer in sound.items() if references[text] in (None, answer)}
    return dict(islice((correct or sound or answers).items(), _N_TEXTS))


def _shown(prediction: Prediction) -> str:
    return prediction.answer if isinstance(prediction.answer, str) else prediction.line()


def _confirmed(bundle: Bundle, changes: Iterable[VisibleAblation], words: "_WordCounts") -> Iterator[VisibleAblation]:
    """Yield the best changes as they are with the bundle's own search, as far as it also answers otherwise."""
    for change in sorted(changes, key=words.rank)[:_N_CONFIRMED]:
        yield from _changes(bundle, change.head, {change.text: change.answer}, bundle.decode, words)


def _attentions(bundle: Bundle) -> Iterator[list[Head]]:
    """Yield the heads of each attention, the last attention first: its heads act on single words."""
    n_heads = 0
    for attention in reversed(list(bundle.task.model.attentions())):
        heads = find_heads(bundle.task.model, [attention.name])[: _N_HEADS - n_heads]
        n_heads += len(heads)
        yield heads


def _changes(
    bundle: Bundle, head: Head, cases: Mapping[str, str], settings: DecodeSettings, words: "_WordCounts"
) -> Iterator[VisibleAblation]:
    """Yield the texts whose answer is another one without a head."""
    with gated(bundle.task.model, ablation_gates(bundle.task.model, [head])):
        predictions = bundle.task.predict(list(cases), settings)
    for (text, answer), prediction in zip(cases.items(), predictions, strict=True):
        without = _shown(prediction)
        if without != answer:
            yield VisibleAblation(head, text, answer, without, *words.difference(answer, without))


@dataclass(frozen=True)
class _WordCounts:
    """In how many references each word occurs, and what it translates; empty if the examples do not tell."""

    counts: Mapping[str, int] = field(default_factory=dict)
    n_texts: int = 0
    translated: Mapping[str, set[str]] = field(default_factory=dict)  # source words of each word

    @classmethod
    def of(cls, examples: Iterable[Example]) -> "_WordCounts":
        pairs = [example for example in examples if len(example.texts) > 1]
        targets = [example.texts[1] for example in pairs]
        texts = [{*(target.words or (word.text for word in split_text(target.text, "word")))} for target in targets]
        translated: dict[str, set[str]] = {}
        for example in pairs:
            for source, target in example.sure or ():
                words = translated.setdefault(example.texts[1].words[target], set())
                words.add(example.texts[0].words[source].lower())
        return cls(Counter(word for text in texts for word in text), len(texts), translated)

    def split(self, text: str) -> list[Word]:
        """Split a text into words. Characters that form a known word, as in Chinese, are one word."""
        units, words = split_text(text, "word"), list[Word]()
        longest = max(map(len, self.counts), default=0)
        while units:
            ends = [number for number, unit in enumerate(units) if unit.end - units[0].start <= longest]
            known = [number for number in ends if text[units[0].start : units[number].end] in self.counts]
            last = max(known, default=0)
            words.append(Word(text[units[0].start : units[last].end], units[0].start, units[last].end))
            del units[: last + 1]
        return words

    def difference(self, answer: str, without: str) -> tuple[str, str]:
        """Return the part of each text between the words that both begin with and those that both end with."""
        first, second = self.split(answer), self.split(without)
        n_least = min(len(first), len(second))
        start = next((i for i in range(n_least) if first[i].text != second[i].text), n_least)
        end = next((i for i in range(n_least - start) if first[-1 - i].text != second[-1 - i].text), n_least - start)
        parts = ((first[start : len(first) - end], answer), (second[start : len(second) - end], without))
        before, after = (text[words[0].start : words[-1].end] if words else "" for words, text in parts)
        return before, after

    def is_clear(self, change: VisibleAblation) -> bool:
        """Return whether one content word becomes another, and not one that translates the same word."""
        before, after = change.before, change.after
        if not self._is_content_word(before) or not self._is_content_word(after):
            return False
        return not self.translated.get(before, set()) & self.translated.get(after, set())

    def rank(self, change: VisibleAblation) -> tuple[int, int, int, int]:
        """Return the key to sort by: clear changes of long words, then missing words, then the smallest change."""
        lengths = [len(part) for part in (change.before, change.after)]
        kind, size = 2, max(lengths)
        if self.is_clear(change):
            kind, size = 0, -min(lengths)
        elif not change.after and self._is_content_word(change.before):
            kind = 1
        return kind, size, len(change.text), change.head.number

    def _is_content_word(self, part: str) -> bool:
        if len(self.split(part)) != 1 or not any(character.isalpha() for character in part):
            return False
        return not self.counts or 0 < self.counts.get(part, 0) <= max(1, _MAX_SHARE * self.n_texts)
