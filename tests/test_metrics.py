"""Scores agree with sacreBLEU's own command line, and their intervals hold them."""

import numpy as np
import pytest
from sacrebleu import corpus_bleu

from manyheads.metrics import bleu, chrf, quick_score

REFERENCES = [f"那只猫昨天吃了{number}条鱼。" for number in range(40)]
HYPOTHESES = [text if index % 3 else text.replace("昨天", "") for index, text in enumerate(REFERENCES)]


def test_bleu_is_sacrebleus_with_the_languages_tokenizer() -> None:
    score = bleu(HYPOTHESES, REFERENCES, "zh", n_resamples=200)
    assert score.value == pytest.approx(corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="zh").score)
    assert score.value == pytest.approx(quick_score("BLEU", HYPOTHESES, REFERENCES, "zh"))
    assert "tok:zh" in score.signature
    assert score.low < score.value < score.high


def test_a_perfect_answer_scores_100() -> None:
    assert bleu(REFERENCES, REFERENCES, "zh", n_resamples=50).value == pytest.approx(100)
    assert chrf(REFERENCES, REFERENCES, n_resamples=50).high <= 100


def test_the_interval_is_that_of_scores_of_resampled_sentences() -> None:
    """The slow way: draw sentences again, score each draw from scratch."""
    chance = np.random.default_rng(0)
    drawn = []
    for _ in range(300):
        rows = chance.integers(len(REFERENCES), size=len(REFERENCES))
        drawn.append(quick_score("BLEU", [HYPOTHESES[row] for row in rows], [REFERENCES[row] for row in rows], "zh"))
    score = bleu(HYPOTHESES, REFERENCES, "zh", n_resamples=300)
    assert [score.low, score.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1.5)


def test_an_answer_that_shares_nothing_scores_0() -> None:
    score = chrf(["x", "y", "猫"], ["a", "b", "猫"], n_resamples=100)
    assert score.low == 0.0 < score.high


@pytest.mark.parametrize("language", ["zh-CN", "zh_TW", "ZH", ""])
def test_chinese_is_cut_into_characters_however_it_is_named(language: str) -> None:
    assert (
        quick_score("BLEU", HYPOTHESES, REFERENCES, language) == quick_score("BLEU", HYPOTHESES, REFERENCES, "zh") > 50
    )


def test_other_languages_are_cut_as_wmt_does() -> None:
    assert "tok:13a" in bleu(["ein Hund"], ["ein Hund"], "de", n_resamples=10).signature
