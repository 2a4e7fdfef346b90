"""Tallies: each is the score of the function with its name, and its changes are paired."""

import pytest

from manyheads.metrics import bleu, bleu_tally, compare_tallies, f1_tally, rate_tally, share_tally

REFERENCES = [f"the cat saw {number} old dogs in the garden" for number in range(12)]
TEXTS = [text if number % 3 else text.replace("old", "big") for number, text in enumerate(REFERENCES)]


def test_bleu_equals_the_score_of_the_corpus() -> None:
    tally, score = bleu_tally(TEXTS, REFERENCES, "en"), bleu(TEXTS, REFERENCES, "en")
    assert (tally.name, tally.value, len(tally.counts)) == (score.name, pytest.approx(score.value), 12)


def test_the_score_of_a_tally_has_an_interval_and_a_signature() -> None:
    score = share_tally("accuracy", [1, 0, 1, 1] * 20, [1] * 80).score(50)
    assert (score.name, score.value, score.signature) == ("accuracy", 75, "n:80|resamples:50")
    assert score.low < 75 < score.high


def test_values_by_hand() -> None:
    assert rate_tally("nats", [2.0, 4.0], [1.0, 3.0]).value == pytest.approx(1.5)
    assert f1_tally("F1", [{1, 2}, {3}], [{1}, {3, 4}]).value == pytest.approx(200 * 2 / (3 + 3))


def test_a_rate_of_which_less_is_better() -> None:
    before, after = (rate_tally("perplexity", [amount] * 9, [1.0] * 9) for amount in (2.0, 3.0))
    assert (before.goodness, after.goodness) == (-2, -3)
    change = compare_tallies(after, before, 20)
    assert (change.value, change.before, change.difference, change.cost) == (3, 2, 1, 1)


def test_a_score_of_which_more_is_better() -> None:
    before, after = (share_tally("accuracy", [part] * 9, [1.0] * 9) for part in (1.0, 0.5))
    assert (before.goodness, after.goodness) == (100, 50)
    change = compare_tallies(after, before, 20)
    assert (change.difference, change.cost, change.low, change.high, change.n_texts) == (-50, 50, -50, -50, 9)


@pytest.mark.parametrize(("name", "n_texts"), [("recall", 3), ("accuracy", 2)])
def test_other_scores_or_texts_cannot_be_compared(name: str, n_texts: int) -> None:
    with pytest.raises(ValueError, match="both must be the same score of the same texts"):
        compare_tallies(share_tally("accuracy", [1] * 3, [1] * 3), share_tally(name, [1] * n_texts, [1] * n_texts))
