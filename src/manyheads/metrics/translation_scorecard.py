"""The scorecard of translations, summaries or any generated texts with references."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.messages import Message, PluralMessage
from manyheads.metrics.card_sections import Comparison, ExampleRow, Examples, Figure, Figures, Note, Section, truncate
from manyheads.metrics.corpus_scores import (
    bleu,
    chrf,
    make_bleu,
    rouge,
    sentence_chrf,
    ter,
    ter_applies,
    tokenized_bleu,
)
from manyheads.metrics.score import Score
from manyheads.metrics.significance import Difference

USABLE_BLEU = 10.0  # below, hardly a translation says what its source says
_FEWEST_JUDGED = 20  # sentences

_N_EXAMPLES = 10
_LONGEST_TEXT = 2000  # characters kept of a text in an example
_SEED = 12345

_LONGEST_PHRASE = 4  # tokens
_N_TIMES = 3  # occurrences in a row that count as a repetition
_MAY_REPEAT = ".…·-–—~～_*=!?！？"  # and digits: "wait...", "10000"


UNUSABLE = Message(
    "Unusable: with a BLEU below {floor:g}, hardly a translation says what its source says. Train on more pairs, or "
    "longer.",
    floor=USABLE_BLEU,
)


@dataclass(frozen=True)
class TranslationExample:
    """One sentence of a test set, its translation and its reference, truncated if very long."""

    number: int  # in the test set, from 1
    source: str
    translation: str
    reference: str
    chrf: float


@dataclass(frozen=True)
class TranslationCard:
    """How well a test set was translated: scores, counts of errors, and examples. `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_sentences: int
    length_ratio: float  # tokens of the translations / tokens of the references, as BLEU counts them
    n_copies: int  # translations equal to their source
    n_wrong_copies: int  # copies whose reference differs from the source
    n_repetitions: int  # a word or a few words three times in a row, unless the reference repeats them too
    n_empty: int  # blank translations
    n_empty_references: int  # they are scored too: any translation of them is wrong
    n_cut_off: int  # translations that reached the maximum length before EOS
    n_too_long: int  # sources too long for the model; their translation counts as empty
    worst: Sequence[TranslationExample]  # by sentence chrF; of equals, the longest reference first
    random: Sequence[TranslationExample]
    differences: Sequence[Difference] = ()  # to another system
    against: str | None = None  # the name of that system
    are_unusable: bool = False  # translations with a BLEU that is surely below `USABLE_BLEU`

    def sections(self) -> list[Section]:
        """Return examples, counts of errors and the comparison with another system."""
        sections: list[Section] = []
        if self.worst:
            sections.append(Examples(Message("worst by chrF"), list(map(_example_row, self.worst))))
        if self.random:
            rows = list(map(_example_row, self.random))
            sections.append(Examples(Message("drawn at random"), rows, are_random=True))
        sections += [Figures(self._figures()), *self._notes()]
        if self.against is not None:
            sections.append(Comparison(self.against, self.differences))
        return sections

    def _figures(self) -> list[Figure]:
        counts = {
            Message("copies of the source"): self.n_copies,
            Message("wrong copies"): self.n_wrong_copies,
            Message("repetitions"): self.n_repetitions,
            Message("empty translation"): self.n_empty,
            Message("cut off"): self.n_cut_off,
            Message("source too long"): self.n_too_long,
            Message("empty reference"): self.n_empty_references,
        }
        return [
            Figure(Message("number of sentences"), self.n_sentences),
            Figure(Message("length ratio to reference"), self.length_ratio),
            *(Figure(name, count, self.n_sentences) for name, count in counts.items()),
        ]

    def _notes(self) -> list[Note]:
        notes: list[Message] = []
        if self.are_unusable:
            notes.append(UNUSABLE)
        if self.n_cut_off:
            notes.append(
                PluralMessage(
                    "1 translation cut off at the maximum length.",
                    "{n:,} translations cut off at the maximum length.",
                    self.n_cut_off,
                )
            )
        if self.n_too_long:
            notes.append(
                PluralMessage(
                    "1 source too long for the model, scored as an empty translation.",
                    "{n:,} sources too long for the model, scored as empty translations.",
                    self.n_too_long,
                )
            )
        if self.n_empty_references:
            notes.append(
                PluralMessage(
                    "1 reference empty: any translation of it is wrong.",
                    "{n:,} references empty: any translation of them is wrong.",
                    self.n_empty_references,
                )
            )
        return list(map(Note, notes))


def _example_row(example: TranslationExample) -> ExampleRow:
    return ExampleRow(example.number, example.source, example.translation, example.reference)


@dataclass(frozen=True)
class Answers:
    """A test set and its translations, in the same order."""

    sources: Sequence[str]
    texts: Sequence[str]  # translations, one line each
    references: Sequence[str]
    n_cut_off: int
    n_too_long: int


def translation_card(
    answers: Answers,
    language: str,
    *,
    is_summary: bool = False,
    is_translation: bool = False,
    tokenized: bool = False,
    n_examples: int = _N_EXAMPLES,
    differences: Sequence[Difference] = (),
    against: str | None = None,
) -> TranslationCard:
    """Return the scorecard of translations; `tokenized` adds the BLEU of papers on pretokenized text.

    Summaries are scored by ROUGE, BLEU and chrF, without TER: a summary is not an edit of its source. Only of
    translations, a low BLEU says that they are unusable: answers of a dialogue are never those of the reference.
    """
    texts, references = answers.texts, answers.references
    are_copies = copies(answers.sources, texts)
    are_wrong = [reference.strip() != text.strip() for reference, text in zip(references, texts, strict=True)]
    examples = _make_examples(answers)
    worst = sorted(examples, key=lambda example: (example.chrf, -len(example.reference)))
    drawn = np.random.default_rng(_SEED).permutation(len(examples))[:n_examples]
    scores = [
        *(rouge(texts, references) if is_summary else []),
        *translation_scores(texts, references, language)[: 2 if is_summary else 3],
        *([tokenized_bleu(texts, references)] if tokenized else []),
    ]
    return TranslationCard(
        scores=scores,
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
        random=[examples[index] for index in drawn],
        differences=differences,
        against=against,
        are_unusable=is_translation and are_unusable(scores),
    )


def are_unusable(scores: Sequence[Score]) -> bool:
    """Return whether translations with these scores are surely unusable: BLEU's interval is below `USABLE_BLEU`."""
    return any(
        score.name == "BLEU" and score.high < USABLE_BLEU and (score.n or 0) >= _FEWEST_JUDGED for score in scores
    )


def translation_scores(texts: Sequence[str], references: Sequence[str], language: str) -> list[Score]:
    """Return BLEU, chrF and, for languages whose words can be split, TER."""
    scores = [bleu(texts, references, language), chrf(texts, references)]
    return [*scores, ter(texts, references, language)] if ter_applies(language) else scores


def _make_examples(answers: Answers) -> list[TranslationExample]:
    columns = (answers.sources, answers.texts, answers.references)
    rows = zip(*columns, sentence_chrf(answers.texts, answers.references), strict=True)
    return [
        TranslationExample(
            number=number,
            source=truncate(source, _LONGEST_TEXT),
            translation=truncate(translation, _LONGEST_TEXT),
            reference=truncate(reference, _LONGEST_TEXT),
            chrf=score,
        )
        for number, (source, translation, reference, score) in enumerate(rows, start=1)
    ]


def length_ratio(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Return tokens of the hypotheses / tokens of the references, as BLEU counts them."""
    ours, theirs = (sum(map(len, _tokens(texts, references, language))) for texts in (hypotheses, references))
    return ours / max(theirs, 1)


def copies(sources: Sequence[str], hypotheses: Sequence[str]) -> list[bool]:
    """Return for each hypothesis whether it equals its source, apart from surrounding space; empty ones do not."""
    return [
        bool(hypothesis.strip()) and hypothesis.strip() == source.strip()
        for source, hypothesis in zip(sources, hypotheses, strict=True)
    ]


def repetitions(hypotheses: Sequence[str], references: Sequence[str], language: str) -> list[bool]:
    """Return for each hypothesis whether it repeats a word or short phrase three times in a row.

    A repetition that the reference has too does not count. In languages without spaces, characters are compared.
    """
    ours, theirs = (_tokens(texts, references, language) for texts in (hypotheses, references))
    return [_has_repetition(mine) and not _has_repetition(other) for mine, other in zip(ours, theirs, strict=True)]


def _tokens(texts: Sequence[str], references: Sequence[str], language: str) -> list[list[str]]:
    tokenize = make_bleu(language, references).tokenizer
    return [tokenize(text.rstrip()).split() for text in texts]


def _has_repetition(tokens: Sequence[str]) -> bool:
    for size in range(1, _LONGEST_PHRASE + 1):
        n_equal = 0  # consecutive tokens that equal the token `size` positions before
        for position in range(size, len(tokens)):
            n_equal = n_equal + 1 if tokens[position] == tokens[position - size] else 0
            phrase = "".join(tokens[position - size + 1 : position + 1])
            if n_equal == (_N_TIMES - 1) * size and not _may_repeat(phrase):
                return True
    return False


def _may_repeat(phrase: str) -> bool:
    return all(character in _MAY_REPEAT or character.isdigit() for character in phrase)
