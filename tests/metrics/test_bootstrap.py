"""The one bootstrap: its draws, and figures that stay the same from version to version."""

import numpy as np
import pytest

from manyheads.metrics import bleu, chrf, compare, compare_tallies, rate_tally, ter
from manyheads.metrics.bootstrap import confidence_interval, f1, percentage, resample_matrix, resamples, sum_resamples

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
    sums = sum_resamples(counts, 30, 4, 40, "documents")
    np.testing.assert_allclose(sums.drawn, resample_matrix(30, 40) @ dense)
    np.testing.assert_allclose(sums.total, dense.sum(0))
    score = sums.score("share", lambda sums: percentage(sums[..., 0], sums[..., 1]), "kind:test")
    assert score.signature == "documents:30|resamples:40|kind:test"
    assert score.low <= score.value <= score.high


def test_percentage_and_f1_of_nothing_are_zero() -> None:
    zero = np.zeros(2)
    assert percentage(zero, zero).tolist() == f1(zero, zero, zero).tolist() == [0, 0]


def test_intervals_of_corpus_scores_do_not_change() -> None:
    scores = [bleu(HYPOTHESES, REFERENCES, "zh"), chrf(HYPOTHESES, REFERENCES), ter(HYPOTHESES, REFERENCES, "zh")]
    assert [(score.low, score.high) for score in scores] == [
        pytest.approx((80.22792394427326, 92.73115013855943), rel=1e-12),
        pytest.approx((77.12618625124121, 91.39801185888555), rel=1e-12),
        pytest.approx((3.6363636363636362, 9.545454545454547), rel=1e-12),
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
    assert (score.low, score.high) == pytest.approx((1.908215496922683, 2.7423369416345604), rel=1e-12)
    assert (change.low, change.high) == pytest.approx((0.10400560005439163, 0.2351227304596406), rel=1e-12)
