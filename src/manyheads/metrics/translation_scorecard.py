"""The scorecard of translations, or of any texts that have references."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.metrics.corpus_scores import bleu, chrf, sentence_chrf, ter, ter_applies, tokenized_bleu
from manyheads.metrics.rouge import rouge
from manyheads.metrics.score import Score
from manyheads.metrics.significance import Difference
from manyheads.metrics.translation_faults import copies, length_ratio, repetitions

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
class TranslationCard:
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


def translation_card(
    answers: Answers,
    language: str,
    *,
    is_summary: bool = False,
    tokenized: bool = False,
    n_examples: int = _EXAMPLES,
    differences: Sequence[Difference] = (),
) -> TranslationCard:
    """The scorecard of translations; `tokenized` adds the BLEU of papers on text tokenized beforehand.

    A summary's comes with ROUGE first, and without the edits that would make a translation of it.
    """
    texts, references = answers.texts, answers.references
    are_copies = copies(answers.sources, texts)
    are_wrong = [reference.strip() != text.strip() for reference, text in zip(references, texts, strict=True)]
    examples = _make_examples(answers)
    worst = sorted(examples, key=lambda one: (one.chrf, -len(one.reference)))
    chosen = np.random.default_rng(12345).permutation(len(examples))[:n_examples]
    return TranslationCard(
        scores=[
            *(rouge(texts, references) if is_summary else []),
            *scores_of(texts, references, language)[: 2 if is_summary else 3],
            *([tokenized_bleu(texts, references)] if tokenized else []),
        ],
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


def scores_of(texts: Sequence[str], references: Sequence[str], language: str) -> list[Score]:
    """BLEU, chrF and, where words can be told apart, TER, with their intervals and signatures."""
    scores = [bleu(texts, references, language), chrf(texts, references)]
    return [*scores, ter(texts, references, language)] if ter_applies(language) else scores


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
