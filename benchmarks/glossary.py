"""Measure what a glossary does to translations of the built-in corpus, as a markdown table.

    python benchmarks/glossary.py BUNDLE [NUMBER]

The bundle is one that `manyheads quickstart` trained; NUMBER sentences of the compositional test set are translated
with and without a glossary. "wrong words": the terms are words of the reference that the ordinary translation lacks,
with the source words that the corpus aligns them with. "any word": one word of each reference at random, right or
wrong. "other words": words that the model would not choose (English to Chinese only); the same words are replaced in
the references. A term is counted as in the output if it is there as often as the source word is in the source.
"""

import random
import sys
import time
from collections.abc import Mapping, Sequence

from manyheads.bundle import Bundle, load
from manyheads.corpora import Sentence, sentences
from manyheads.metrics import bleu
from manyheads.tasks import Seq2Seq, TextOptions, Translations
from manyheads.text.terms.glossary import find_terms

_N_SENTENCES = 2000
_OTHER_WORDS = {
    "狗": "小狗",
    "猫": "小猫",
    "教师": "老师",
    "书": "课本",
    "房子": "屋子",
    "面包": "大面包",
    "画": "图画",
}

Glossary = Mapping[str, str]


def main() -> None:
    """Print the table."""
    bundle = load(sys.argv[1])
    assert isinstance(bundle.task, Seq2Seq), "The bundle is not of the task seq2seq."
    source, target = bundle.task.languages(bundle.task.settings)
    rows = list(sentences("compositional", int(sys.argv[2]) if len(sys.argv) > 2 else _N_SENTENCES, seed=18))
    texts, references = ([one.text(language) for one in rows] for language in (source, target))
    plain = [one.answer for one in _predictions(bundle, texts)]
    pairs = [_term_pairs(one, source, target) for one in rows]
    rng = random.Random(1)
    print(
        "| terms | sentences | % of terms in the output | with glossary | BLEU | with glossary | warnings | s | with |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    wrong = [
        {word: term for word, term in own.items() if answer.count(term) < len(find_terms(text, [word]))}
        for own, answer, text in zip(pairs, plain, texts, strict=True)
    ]
    _measure(bundle, "wrong words", texts, references, wrong)
    _measure(
        bundle,
        "any word",
        texts,
        references,
        [dict(rng.sample(sorted(own.items()), min(1, len(own)))) for own in pairs],
    )
    if (source, target) == ("en", "zh"):
        other = [{word: _OTHER_WORDS[term] for word, term in own.items() if term in _OTHER_WORDS} for own in pairs]
        changed = [_replaced(reference, own) for reference, own in zip(references, pairs, strict=True)]
        _measure(bundle, "other words", texts, changed, other)


def _term_pairs(sentence: Sentence, source: str, target: str) -> dict[str, str]:
    """The words that are aligned one to one, if each means one thing in the sentence."""
    words, others = (sentence.rendering(language).words for language in (source, target))
    links = sentence.alignment(source, target)
    found = {}
    for i, j in links:
        is_single = sum(a == i for a, _ in links) == 1 == sum(b == j for _, b in links)
        is_unique = words.count(words[i]) == 1 and sentence.text(target).count(others[j]) == 1
        if is_single and is_unique and words[i].isalpha() and others[j].isalpha():
            found[words[i]] = others[j]
    return found


def _replaced(reference: str, pairs: Glossary) -> str:
    for term in pairs.values():
        reference = reference.replace(term, _OTHER_WORDS.get(term, term))
    return reference


def _measure(
    bundle: Bundle, name: str, texts: Sequence[str], references: Sequence[str], glossaries: Sequence[Glossary]
) -> None:
    """Print a row of the table: translations of the texts that have terms, without and with them."""
    chosen = [index for index, own in enumerate(glossaries) if own]
    texts, references = [texts[index] for index in chosen], [references[index] for index in chosen]
    options = [TextOptions(glossaries[index]) for index in chosen]
    cells = []
    for own in (None, options):
        started = time.monotonic()
        found = _predictions(bundle, texts, own)
        seconds = time.monotonic() - started
        answers = [one.answer for one in found]
        n_terms = sum(len(one.glossary) for one in options)
        n_present = sum(
            answer.count(term) >= len(find_terms(text, [word]))
            for text, answer, one in zip(texts, answers, options, strict=True)
            for word, term in one.glossary.items()
        )
        score = bleu(answers, references, bundle.task.languages(bundle.task.settings)[1]).value
        n_warned = sum("glossary" in one.warnings for one in found)
        cells.append((f"{100 * n_present / n_terms:.1f}", f"{score:.1f}", str(n_warned), f"{seconds:.0f}"))
    without, with_terms = cells
    columns = [f"{name} ({n_terms:,})", f"{len(texts):,}", without[0], with_terms[0], without[1], with_terms[1]]
    columns += [with_terms[2], without[3], with_terms[3]]
    print(f"| {' | '.join(columns)} |", flush=True)


def _predictions(
    bundle: Bundle, texts: Sequence[str], options: Sequence[TextOptions] | None = None
) -> Sequence[Translations]:
    found = bundle.predictions(texts, options=options)
    assert all(isinstance(one, Translations) for one in found)
    return found  # type: ignore[return-value]


if __name__ == "__main__":
    main()
