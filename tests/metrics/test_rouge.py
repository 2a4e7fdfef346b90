"""ROUGE agrees with Google's rouge_score in English, and with a slow definition in English and Chinese."""

import functools
import random
from collections import Counter

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from manyheads.metrics import rouge
from manyheads.metrics.rouge import rouge_words, text_rouge

HYPOTHESES = ["The cat sat on the mat.", "police killed the gunman", "a dog", "", "Rain is expected, again!"]
REFERENCES = ["the cat is on the mat", "police kill the gunman", "two cats slept", "nothing", "rain again expected"]


def slow_f1(right: float, ours: int, theirs: int) -> float:
    return 200 * right / (ours + theirs) if right else 0.0


def slow_rouge_n(hypothesis: list[str], reference: list[str], n: int) -> float:
    ours, theirs = (Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in (hypothesis, reference))
    return slow_f1((ours & theirs).total(), ours.total(), theirs.total())


def slow_rouge_l(hypothesis: list[str], reference: list[str]) -> float:
    @functools.cache
    def longest(i: int, j: int) -> int:
        if i == len(hypothesis) or j == len(reference):
            return 0
        if hypothesis[i] == reference[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return slow_f1(longest(0, 0), len(hypothesis), len(reference))


def test_scores_agree_with_slow_counting() -> None:
    words = [[text.lower().strip(".!").replace(",", "").split() for text in side] for side in (HYPOTHESES, REFERENCES)]
    pairs = list(zip(*words, strict=True))
    expected = [
        np.mean([slow_rouge_n(*pair, 1) for pair in pairs]),
        np.mean([slow_rouge_n(*pair, 2) for pair in pairs]),
        np.mean([slow_rouge_l(*pair) for pair in pairs]),
    ]
    scores = rouge(HYPOTHESES, REFERENCES)
    assert [score.name for score in scores] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert [score.value for score in scores] == pytest.approx(expected, abs=1e-9)
    assert all(score.low < score.value < score.high for score in scores)
    assert "n:5|resamples:1000" in scores[0].signature
    assert "f1:mean of texts|case:lc" in scores[0].signature


def test_english_equals_googles_rouge_score() -> None:
    rng = random.Random(5)
    words = ["the", "The", "cat,", "sat.", "on", "a", "mat!", "and/or", "3.5%", "it's", "re-run", "U.S.", "dog"]
    pairs = [tuple(" ".join(rng.choices(words, k=rng.randrange(0, 40))) for _ in range(2)) for _ in range(200)] + list(
        zip(HYPOTHESES, REFERENCES, strict=True)
    )
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    for hypothesis, reference in pairs:
        expected = [score.fmeasure for score in scorer.score(reference, hypothesis).values()]
        assert text_rouge(rouge_words(hypothesis.lower()), rouge_words(reference.lower())) == pytest.approx(expected)


def test_example_of_the_paper() -> None:
    """Lin (2004), 3.1: of two sentences with the same words, ROUGE-L prefers the one in order."""
    first, second = (rouge([text], ["police killed the gunman"]) for text in (HYPOTHESES[1], "the gunman kill police"))
    assert rouge(["police kill the gunman"], ["police killed the gunman"])[2].value == pytest.approx(75)
    assert second[2].value == pytest.approx(50)
    assert first[2].value == pytest.approx(100)


def test_chinese_is_split_into_characters() -> None:
    one, two, longest = rouge(["那只猫坐在垫子上。"], ["那只猫在垫上"], n_resamples=5)
    hypothesis, reference = list("那只猫坐在垫子上"), list("那只猫在垫上")
    assert one.value == pytest.approx(slow_rouge_n(hypothesis, reference, 1), abs=1e-9)
    assert two.value == pytest.approx(slow_rouge_n(hypothesis, reference, 2), abs=1e-9)
    assert longest.value == pytest.approx(slow_rouge_l(hypothesis, reference), abs=1e-9)


def test_words_of_different_scripts() -> None:
    assert rouge_words("don't stop_me: 3.5%") == ["don", "t", "stop", "me", "3", "5"]
    assert rouge_words("größe über naïve") == ["größe", "über", "naïve"]
    assert rouge_words("用iPhone 15拍的。") == ["用", "iPhone", "15", "拍", "的"]
    assert rouge_words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert rouge_words("한국어 문장") == ["한국어", "문장"]
    assert rouge_words(" …!") == []
