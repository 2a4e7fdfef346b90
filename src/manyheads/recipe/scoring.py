"""Scoring a task on a test set: the same way at the end of a run and for `manyheads evaluate`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.metrics import Difference, Score, copies, length_ratio, repetitions, sentence_chrf, tokenised_bleu
from manyheads.tasks import Seq2Seq

_EXAMPLES = 10
_LONGEST = 2000  # characters shown of a text


@dataclass(frozen=True)
class Example:
    """One sentence of a test set and what became of it."""

    number: int  # in the test set, from 1
    source: str  # this and the others are shortened where nobody would read to the end
    translation: str
    reference: str
    chrf: float


@dataclass(frozen=True)
class Scorecard:
    """How well a test set was translated: scores, what went wrong how often, and examples. `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_sentences: int
    length_ratio: float  # tokens of the translations to those of the references, as BLEU counts them
    n_copies: int  # translations that are the source itself
    n_wrong_copies: int  # those of them whose reference is not the source
    n_repetitions: int  # a word or phrase three times in a row, and not so in the reference
    n_empty: int  # translations that are blank
    n_empty_references: int  # which count as they are: whatever is said there is wrong
    n_cut_off: int  # translations that reached the maximum length before they ended
    n_too_long: int  # sources too long for the model, which count as translated by nothing
    worst: Sequence[Example]  # by their own chrF; of equals, the longest reference first
    random: Sequence[Example]
    differences: Sequence[Difference] = ()  # from another system, if one was given


@dataclass(frozen=True)
class Answers:
    """A test set and its translations, in its order."""

    sources: Sequence[str]
    texts: Sequence[str]  # one line each
    references: Sequence[str]
    n_cut_off: int
    n_too_long: int


def score(
    task: Seq2Seq,
    pairs: Iterable[tuple[str, str]],
    settings: DecodeSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Scorecard:
    """Translate every source and compare with its reference; `progress` is told how many more are done."""
    return make_card(task, answer(task, pairs, settings, progress))


def answer(
    task: Seq2Seq,
    pairs: Iterable[tuple[str, str]],
    settings: DecodeSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Answers:
    """Translate every source of a test set; one too long for the model gets an empty translation."""
    pairs = list(pairs)
    if not pairs:
        raise DataError("There is nothing to score: the test set is empty.")
    sources = [source for source, _ in pairs]
    references = [reference for _, reference in pairs]
    if not any(reference.strip() for reference in references):
        raise DataError("There is nothing to score: every reference is empty.")
    readable = [source if task.fits(source) else "" for source in sources]
    found = {}
    for index, candidates in task.translate(readable, settings):
        found[index] = candidates[0]
        progress(1)
    return Answers(
        sources=sources,
        # As they stand in a file of one line each, so that other tools come to the same scores.
        texts=[found[index].text.replace("\r", " ").replace("\n", " ") for index in range(len(pairs))],
        references=references,
        n_cut_off=sum(not translation.finished for translation in found.values()),
        n_too_long=sum(text != source for text, source in zip(readable, sources, strict=True)),
    )


def make_card(
    task: Seq2Seq,
    answers: Answers,
    *,
    tokenised: bool = False,
    n_examples: int = _EXAMPLES,
    differences: Sequence[Difference] = (),
) -> Scorecard:
    """The scorecard of translations; `tokenised` adds the BLEU of papers on text tokenised beforehand."""
    texts, references, language = answers.texts, answers.references, task.settings.target_language
    are_copies = copies(answers.sources, texts)
    are_wrong = [reference.strip() != text.strip() for reference, text in zip(references, texts, strict=True)]
    examples = _make_examples(answers)
    worst = sorted(examples, key=lambda one: (one.chrf, -len(one.reference)))
    chosen = np.random.default_rng(12345).permutation(len(examples))[:n_examples]
    return Scorecard(
        scores=[*task.score(texts, references), *([tokenised_bleu(texts, references)] if tokenised else [])],
        n_sentences=len(texts),
        length_ratio=length_ratio(texts, references, language),
        n_copies=sum(are_copies),
        n_wrong_copies=sum(copy and wrong for copy, wrong in zip(are_copies, are_wrong, strict=True)),
        n_repetitions=sum(repetitions(texts, references, language)),
        n_empty=sum(not text.strip() for text in texts),
        n_empty_references=sum(not reference.strip() for reference in references),
        n_cut_off=answers.n_cut_off,
        n_too_long=answers.n_too_long,
        worst=worst[:n_examples],
        random=[examples[index] for index in chosen],
        differences=differences,
    )


def _make_examples(answers: Answers) -> list[Example]:
    return [
        Example(number, _shortened(source), _shortened(text), _shortened(reference), chrf)
        for number, (source, text, reference, chrf) in enumerate(
            zip(
                answers.sources,
                answers.texts,
                answers.references,
                sentence_chrf(answers.texts, answers.references),
                strict=True,
            ),
            start=1,
        )
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def translate(task: Seq2Seq, sources: Sequence[str], settings: DecodeSettings) -> list[str]:
    """The best translation of each source, in their order."""
    return [candidates[0].text for candidates in task.answers(sources, settings)]
