"""The bootstrap: its draws, how often its intervals cover the truth, and figures that stay the same."""

import math

import numpy as np
import pytest

from manyheads.metrics import (
    bleu,
    chrf,
    compare,
    compare_tallies,
    f1_tally,
    label_card,
    rate_tally,
    share_tally,
    span_card,
    ter,
)
from manyheads.metrics.bootstrap import (
    Sums,
    confidence_interval,
    dense_sums,
    f1,
    percentage,
    resample_matrix,
    resamples,
    sum_resamples,
    weightings,
)
from manyheads.text.reading.tag_schemes import Span

REFERENCES = [f"那只猫昨天吃了{number}条鱼。" for number in range(40)]
HYPOTHESES = [text if index % 3 else text.replace("昨天", "") for index, text in enumerate(REFERENCES)]
OTHERS = [text if index % 5 else text.replace("鱼", "") for index, text in enumerate(REFERENCES)]


def test_resample_has_the_size_of_the_data() -> None:
    draws = list(resamples(17, 50))
    assert len(draws) == 50
    assert all(draw.sum() == 17 and draw.min() >= 0 for draw in draws)
    assert np.mean([draw[0] for draw in resamples(17, 4000)]) == pytest.approx(1, abs=0.05)


def test_draws_are_the_same_every_time_and_the_matrix_holds_them() -> None:
    np.testing.assert_array_equal(np.stack(list(resamples(9, 20))), resample_matrix(9, 20))


def test_interval_is_the_quantiles_along_the_first_axis() -> None:
    values = np.stack([np.arange(1001.0), np.zeros(1001)], axis=1)
    low, high = confidence_interval(values)
    assert low.tolist() == [25, 0]
    assert high.tolist() == [975, 0]


def test_sparse_sums_equal_the_product_with_the_matrix() -> None:
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 3, size=(30, 4)).astype(float)
    counts = [(text, column, dense[text, column]) for text, column in zip(*dense.nonzero(), strict=True)]

    def extremes(mean: Sums) -> list[Sums]:
        return [np.zeros(4), 2 * mean]

    sums = sum_resamples(counts, 30, 4, extremes, 40, "documents")
    np.testing.assert_allclose(sums.drawn, dense_sums(dense, extremes, 40))
    np.testing.assert_allclose(sums.total, dense.sum(0))
    score = sums.score("share", lambda sums: percentage(sums[..., 0], sums[..., 1]), "kind:test")
    assert score.signature == "documents:30|resamples:40|kind:test"
    assert score.n == 30
    assert score.low <= score.value <= score.high


def test_percentage_and_f1_of_nothing_are_zero() -> None:
    zero = np.zeros(2)
    assert percentage(zero, zero).tolist() == f1(zero, zero, zero).tolist() == [0, 0]


def test_intervals_of_corpus_scores_do_not_change() -> None:
    scores = [bleu(HYPOTHESES, REFERENCES, "zh"), chrf(HYPOTHESES, REFERENCES), ter(HYPOTHESES, REFERENCES, "zh")]
    assert [(score.low, score.high) for score in scores] == [
        pytest.approx((77.76226409254046, 92.33381166129024), rel=1e-12),
        pytest.approx((74.98837071251805, 90.99752359301056), rel=1e-12),
        pytest.approx((3.830861583382589, 14.233572289291809), rel=1e-12),
    ]


def test_paired_differences_do_not_change() -> None:
    by_bleu, by_chrf = compare(HYPOTHESES, OTHERS, REFERENCES, "zh", n_trials=500)
    assert (by_bleu.low, by_bleu.high) == pytest.approx((-16.244344606230243, -3.74017592707416), rel=1e-12)
    assert (by_chrf.low, by_chrf.high) == pytest.approx((-19.288798659642325, -4.79032416972216), rel=1e-12)
    assert (by_bleu.p_bootstrap, by_chrf.p_bootstrap) == pytest.approx((4 / 1001, 2 / 1001))
    assert by_bleu.p_randomization == pytest.approx(1 / 501)


def test_intervals_of_tallies_do_not_change() -> None:
    rng = np.random.default_rng(4)
    nats, sizes = rng.gamma(3.0, 20.0, 60), rng.integers(5, 40, 60).tolist()
    tally = rate_tally("nats per character", nats.tolist(), sizes)
    worse = rate_tally("nats per character", (nats * rng.uniform(0.9, 1.2, 60)).tolist(), sizes)
    score, change = tally.score(), compare_tallies(worse, tally)
    assert (score.low, score.high) == pytest.approx((1.9011588474585082, 2.814616870934449), rel=1e-12)
    assert (change.low, change.high) == pytest.approx((0.10400560005439163, 0.2351227304596406), rel=1e-12)


def test_weights_are_one_on_average_and_the_same_every_time() -> None:
    drawn = np.stack(list(weightings(9, 200)))
    assert drawn.shape == (200, 10)
    np.testing.assert_allclose(drawn.sum(1), 10)
    np.testing.assert_array_equal(drawn, np.stack(list(weightings(9, 200))))


@pytest.mark.parametrize(
    ("n_correct", "n_texts", "low", "high"),
    [(0, 1, 0.0, 97.5), (1, 1, 2.5, 100.0), (5, 5, 47.8, 100.0), (19, 20, 75.1, 99.9), (50, 100, 39.8, 60.2)],
)
def test_accuracy_has_the_interval_of_clopper_and_pearson(
    n_correct: int, n_texts: int, low: float, high: float
) -> None:
    score = share_tally("accuracy", [index < n_correct for index in range(n_texts)], [1] * n_texts).score(4000)
    assert (score.low, score.high) == pytest.approx((low, high), abs=0.8)
    assert score.n == n_texts


@pytest.mark.parametrize("n_texts", [5, 20, 100])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.98])
def test_interval_of_accuracy_covers_the_truth(p: float, n_texts: int) -> None:
    covered = 0.0
    for n_correct in range(n_texts + 1):
        probability = math.comb(n_texts, n_correct) * p**n_correct * (1 - p) ** (n_texts - n_correct)
        if probability > 1e-4:
            is_correct = [index < n_correct for index in range(n_texts)]
            score = share_tally("accuracy", is_correct, [1] * n_texts).score(500)
            covered += probability * (score.low <= 100 * p <= score.high)
    assert covered >= 0.93


@pytest.mark.parametrize(("accuracy", "n_texts"), [(0.98, 5), (0.9, 20), (0.98, 20), (0.9, 100)])
def test_interval_of_macro_f1_covers_the_truth_with_a_rare_label(accuracy: float, n_texts: int) -> None:
    """20 texts, one in 20 of the third label: quantiles of plain resamples cover the truth in 78 of 100 cases."""
    labels, shares = ["a", "b", "c"], np.array([0.8, 0.15, 0.05])
    joint = shares[:, None] * np.where(np.eye(3, dtype=bool), accuracy, (1 - accuracy) / 2)
    truth = 100 * np.mean(2 * np.diag(joint) / (joint.sum(0) + joint.sum(1)))
    rng, n_covered = np.random.default_rng(1), 0
    for _ in range(100):
        gold, predicted = (
            [(labels[index],) for index in column]
            for column in np.divmod(rng.choice(9, size=n_texts, p=joint.ravel()), 3)
        )
        card = label_card([""] * n_texts, gold, predicted, np.full((n_texts, 3), 1 / 3), labels, n_resamples=200)
        score = next(score for score in card.scores if score.name == "macro-F1")
        n_covered += score.low <= truth <= score.high
    assert n_covered >= 93


@pytest.mark.parametrize(("rate", "n_texts"), [(0.02, 5), (0.1, 20), (0.5, 20)])
def test_interval_of_span_f1_covers_the_truth(rate: float, n_texts: int) -> None:
    """Sentences have 1.5 spans on average; this share of them is missed, and as many are invented."""
    truth = f1(*(np.array(x) for x in (1.5 * (1 - rate), 1.5, 1.5)))
    rng, n_covered = np.random.default_rng(2), 0
    for _ in range(100):
        gold = [[Span(i, i + 1, "A") for i in range(rng.poisson(1.5))] for _ in range(n_texts)]
        predicted = [
            [span for span in spans if rng.random() >= rate]
            + [Span(90 + i, 91 + i, "A") for i in range(rng.poisson(1.5 * rate))]
            for spans in gold
        ]
        score = span_card([""] * n_texts, gold, predicted, n_resamples=200).scores[0]
        n_covered += score.low <= truth <= score.high
    assert n_covered >= 93


def test_no_interval_of_perfect_or_wrong_answers_is_a_point() -> None:
    card = label_card(["t"], [("a",)], [("a",)], np.array([[0.99, 0.01]]), ["a", "b"])
    spans = span_card(["t"], [[Span(0, 1, "A")]], [[Span(0, 1, "A")]])
    wrong = span_card(["t"], [[Span(0, 1, "A")]], [[]])
    scores = [
        *card.scores,
        *spans.scores,
        *(score for score in wrong.scores if score.name != "precision"),  # of no predictions
        bleu(["one two three four"], ["one two three four"], "en"),
        bleu([""], ["one two three four"], "en"),
        ter(["a b c d"], ["a b c d"], "en"),
        chrf(["a"], ["b"]),
        f1_tally("F1", [{1}], [{1}]).score(),
        rate_tally("nats per character", [3.0], [2]).score(),
    ]
    for score in scores:
        assert score.high - score.low > (30 if score.name != "nats per character" else 1.0), score


def test_rate_of_few_documents_is_as_uncertain_as_their_difference() -> None:
    same, other = rate_tally("nats per character", [3.0] * 4, [2] * 4), rate_tally("nats", [2.0, 4.0] * 2, [2] * 4)
    assert same.score().high - same.score().low < other.score().high - other.score().low
    assert same.score().high > 1.53
