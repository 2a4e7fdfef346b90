"""Corpus scores equal those of sacreBLEU, and lie within their intervals."""

import functools
import random
from collections import Counter

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import corpus_bleu, corpus_chrf, corpus_ter

from manyheads.metrics import (
    bleu,
    chrf,
    format_change,
    format_score,
    looks_tokenized,
    lower_is_better,
    quick_score,
    rouge,
    sentence_chrf,
    ter,
    ter_applies,
    tokenized_bleu,
)
from manyheads.metrics.corpus_scores import make_bleu, rouge_words, score_from_stats, sentence_stats, text_rouge

REFERENCES = [f"那只猫昨天吃了{number}条鱼。" for number in range(40)]
HYPOTHESES = [text if index % 3 else text.replace("昨天", "") for index, text in enumerate(REFERENCES)]

HYPOTHESES_ROUGE = ["The cat sat on the mat.", "police killed the gunman", "a dog", "", "Rain is expected, again!"]
REFERENCES_ROUGE = [
    "the cat is on the mat",
    "police kill the gunman",
    "two cats slept",
    "nothing",
    "rain again expected",
]


def test_bleu_equals_sacrebleu_with_the_tokenizer_of_the_language() -> None:
    score = bleu(HYPOTHESES, REFERENCES, "zh", n_resamples=200)
    assert score.value == pytest.approx(corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="zh").score)
    assert score.value == pytest.approx(quick_score("BLEU", HYPOTHESES, REFERENCES, "zh"))
    assert "tok:zh" in score.signature
    assert score.low < score.value < score.high


def test_perfect_output_scores_100() -> None:
    assert bleu(REFERENCES, REFERENCES, "zh", n_resamples=50).value == pytest.approx(100)
    assert chrf(REFERENCES, REFERENCES, n_resamples=50).high <= 100


def test_interval_agrees_with_slow_resampling() -> None:
    """Slow reference: draw sentences with replacement, score each draw from scratch."""
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(300):
        rows = rng.integers(len(REFERENCES), size=len(REFERENCES))
        drawn.append(quick_score("BLEU", [HYPOTHESES[row] for row in rows], [REFERENCES[row] for row in rows], "zh"))
    low, high = np.quantile(drawn, [0.025, 0.975])
    score = bleu(HYPOTHESES, REFERENCES, "zh", n_resamples=300)
    assert score.high == pytest.approx(high, abs=1.5)
    assert low - 5 < score.low < low  # the lower limit counts one more sentence, wholly wrong


def test_output_without_overlap_scores_0() -> None:
    score = chrf(["x", "y", "猫"], ["a", "b", "猫"], n_resamples=100)
    assert 0.0 <= score.low < 10 < score.high


@pytest.mark.parametrize("language", ["zh-CN", "zh_TW", "ZH", ""])
def test_chinese_is_split_into_characters_for_every_language_code(language: str) -> None:
    assert (
        quick_score("BLEU", HYPOTHESES, REFERENCES, language) == quick_score("BLEU", HYPOTHESES, REFERENCES, "zh") > 50
    )


def test_other_languages_use_the_wmt_tokenizer() -> None:
    assert "tok:13a" in bleu(["ein Hund"], ["ein Hund"], "de", n_resamples=10).signature


GERMAN = [f"Ein Hund mit {number} Flecken rennt über die nasse Wiese." for number in range(30)]
TOKENIZED = [f"ein hund mit {number} flecken rennt über die nasse wiese ." for number in range(30)]


def damaged(texts: list[str]) -> list[str]:
    return [text.replace("nasse ", "") if index % 2 else text for index, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("language", "hypotheses", "references", "options"),
    [
        ("de", damaged(GERMAN), GERMAN, {}),
        ("zh", HYPOTHESES, REFERENCES, {"normalized": True, "asian_support": True}),
        ("", HYPOTHESES, REFERENCES, {"normalized": True, "asian_support": True}),
    ],
)
def test_ter_equals_sacrebleu_by_words_or_by_characters(
    language: str, hypotheses: list[str], references: list[str], options: dict[str, bool]
) -> None:
    score = ter(hypotheses, references, language, n_resamples=100)
    assert score.value == pytest.approx(corpus_ter(hypotheses, [references], **options).score)
    assert f"norm:{'yes' if options else 'no'}|punct:yes|asian:{'yes' if options else 'no'}" in score.signature
    assert 0 < score.low < score.value < score.high < 50


def test_ter_does_not_apply_to_languages_it_cannot_split() -> None:
    assert [ter_applies(language) for language in ("de", "zh-CN", "", "th", "km_KH")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_tokenized_bleu_lowercases_and_does_not_tokenize() -> None:
    shouted = [text.upper() for text in damaged(TOKENIZED)]
    score = tokenized_bleu(shouted, TOKENIZED, n_resamples=50)
    by_hand = corpus_bleu(damaged(TOKENIZED), [TOKENIZED], tokenize="none", force=True)
    assert score.value == pytest.approx(by_hand.score)
    assert score.name == "BLEU (tokenized, lowercased)"
    assert "case:lc|eff:no|tok:none" in score.signature
    glued = [text.replace(" .", ".") for text in TOKENIZED]
    assert tokenized_bleu(glued, TOKENIZED, n_resamples=50).value < 90  # "wiese." is not "wiese ."
    assert bleu(glued, TOKENIZED, "de", n_resamples=50).value == pytest.approx(100)  # the default tokenizes both


def test_tokenized_lines_log_no_warning_of_sacrebleu(caplog: pytest.LogCaptureFixture) -> None:
    bleu(TOKENIZED * 4, TOKENIZED * 4, "de", n_resamples=10)
    quick_score("BLEU", TOKENIZED * 4, TOKENIZED * 4, "de")
    assert caplog.records == []


def test_tokenized_text_is_recognized() -> None:
    assert looks_tokenized(TOKENIZED)
    assert not looks_tokenized(GERMAN)
    assert not looks_tokenized(REFERENCES)
    assert not looks_tokenized(["", ".", "no end"])
    assert not looks_tokenized(["Quoi ?", "Oui !", "Bien."])  # French writes a space before ? and !


def test_sentence_chrf() -> None:
    assert sentence_chrf(["abcdefg", "", "xyz"], ["abcdefg", "abc", "abc"]) == [100, 0, 0]
    assert sentence_chrf(HYPOTHESES[:1], REFERENCES[:1])[0] == pytest.approx(
        corpus_chrf(HYPOTHESES[:1], [REFERENCES[:1]]).score
    )


def test_empty_hypotheses_empty_references_and_a_single_sentence() -> None:
    for hypotheses, references in ((["", ""], ["a b", "c d"]), (["a b", "c"], ["", "c d"]), (["a b"], ["a c"])):
        for score in (
            bleu(hypotheses, references, "en"),
            chrf(hypotheses, references),
            ter(hypotheses, references, "en"),
            tokenized_bleu(hypotheses, references),
        ):
            assert np.isfinite([score.low, score.value, score.high]).all()
            assert score.low <= score.value <= score.high
            if not any(hypotheses):
                assert score.value == (100 if score.name == "TER" else 0)


def test_scores_are_formatted_with_significant_decimals() -> None:
    assert format_score("BLEU", 41.23) == "41.2"
    assert format_score("accuracy", 98.57) == "98.6"
    assert format_score("nats per character", 1.4999) == format_score("nats per character", -1.4999) == "1.500"
    assert format_score("perplexity per word", 1095.314) == "1,095.31"


def test_the_ends_of_an_interval_are_told_apart() -> None:
    assert format_change(-1.234, -2.0, 0.5) == ("-1.23", "[-2.00, +0.50]")
    assert format_change(0.0004, 0.0002, 0.0011) == ("+0.000", "[+0.000, +0.001]")
    assert format_change(0.00021, 0.0002, 0.00023) == ("+0.00021", "[+0.00020, +0.00023]")
    assert format_change(1e-12, -1e-12, 2e-12) == ("+0.00", "")
    assert format_change(0.0, 0.0, 0.0) == ("+0.00", "")


def test_lower_is_better() -> None:
    assert all(map(lower_is_better, ("TER", "loss", "nats per character", "bits per byte", "calibration error")))
    assert not any(map(lower_is_better, ("BLEU", "F1", "accuracy", "term recall", "intent accuracy", "")))


def test_lengths_of_weighted_texts_are_not_cut_to_whole_tokens() -> None:
    metric = make_bleu("en", ["x"])
    stats = sentence_stats(metric, ["the cat sat on a mat"], ["the cat sat on a red mat today"])[0]
    whole = score_from_stats(metric, stats)
    assert whole == corpus_bleu(["the cat sat on a mat"], [["the cat sat on a red mat today"]]).score
    for weight in (0.1, 0.3, 1 - 1e-12, 7.7):
        assert score_from_stats(metric, stats * weight) == pytest.approx(whole, rel=1e-4)


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
    words = [
        [text.lower().strip(".!").replace(",", "").split() for text in side]
        for side in (HYPOTHESES_ROUGE, REFERENCES_ROUGE)
    ]
    pairs = list(zip(*words, strict=True))
    expected = [
        np.mean([slow_rouge_n(*pair, 1) for pair in pairs]),
        np.mean([slow_rouge_n(*pair, 2) for pair in pairs]),
        np.mean([slow_rouge_l(*pair) for pair in pairs]),
    ]
    scores = rouge(HYPOTHESES_ROUGE, REFERENCES_ROUGE)
    assert [score.name for score in scores] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert [score.value for score in scores] == pytest.approx(expected, abs=1e-9)
    assert all(score.low < score.value < score.high for score in scores)
    assert "n:5|resamples:1000" in scores[0].signature
    assert "f1:mean of texts|case:lc" in scores[0].signature


def test_english_equals_googles_rouge_score() -> None:
    rng = random.Random(5)
    words = ["the", "The", "cat,", "sat.", "on", "a", "mat!", "and/or", "3.5%", "it's", "re-run", "U.S.", "dog"]
    pairs = [tuple(" ".join(rng.choices(words, k=rng.randrange(0, 40))) for _ in range(2)) for _ in range(200)] + list(
        zip(HYPOTHESES_ROUGE, REFERENCES_ROUGE, strict=True)
    )
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    for hypothesis, reference in pairs:
        expected = [score.fmeasure for score in scorer.score(reference, hypothesis).values()]
        assert text_rouge(rouge_words(hypothesis.lower()), rouge_words(reference.lower())) == pytest.approx(expected)


def test_example_of_the_paper() -> None:
    """Lin (2004), 3.1: of two sentences with the same words, ROUGE-L prefers the one in order."""
    first, second = (
        rouge([text], ["police killed the gunman"]) for text in (HYPOTHESES_ROUGE[1], "the gunman kill police")
    )
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
