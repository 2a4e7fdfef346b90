"""The length penalty is chosen by the score of validation rows, and the confidence is fitted to them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.metrics import Tally, share_tally
from manyheads.tasks import Seq2Seq
from manyheads.tasks.seq2seq.translation_search import (
    GRID,
    LOW_CONFIDENCE,
    N_TUNED,
    Confidence,
    choose_length_penalty,
    is_open,
    n_tuning_translations,
    tuning_rows,
)

ROWS = [pair for pair in corpora.pairs("en", "zh", "valid", 60) if len(pair[0]) < 60][:40]
BEAM = DecodeSettings(beam=2, max_new_tokens=5)


def tally_of(n_correct: dict[float, int]) -> Any:
    def tally(alpha: float) -> Tally:
        return share_tally("BLEU", [1] * n_correct[alpha] + [0] * (400 - n_correct[alpha]), [1] * 400)

    return tally


@pytest.mark.parametrize(
    ("n_correct", "chosen"),
    [
        ((100, 150, 300, 200), 1.0),
        ((300, 150, 100, 100), 0.2),
        ((100, 100, 200, 300), 1.4),
        ((300, 301, 300, 301), 1.0),  # within one standard error of the best
        ((300, 100, 100, 100), 0.2),
        ((300, 300, 100, 100), 0.6),
    ],
)
def test_best_penalty_and_the_usual_one_where_scores_do_not_tell(n_correct: tuple[int, ...], chosen: float) -> None:
    asked: list[float | None] = []

    def translate(settings: DecodeSettings) -> float:
        asked.append(settings.length_penalty)
        return settings.alpha

    tally = tally_of(dict(zip(GRID, n_correct, strict=True)))
    choice, found = choose_length_penalty(DecodeSettings(beam=3), translate, tally)
    assert asked == list(GRID)
    assert choice.value == found == chosen
    assert (choice.metric, choice.n_rows) == ("BLEU", 400)
    assert choice.scores == {f"{alpha:g}": n / 4 for alpha, n in zip(GRID, n_correct, strict=True)}
    assert str(choice.describe()).startswith(f"length penalty {chosen:g}, chosen by BLEU on 400 validation rows")
    assert f"0.2: {n_correct[0] / 4:.1f}" in str(choice.describe())
    assert choice.describe().by_language()["zh"].startswith(f"长度惩罚 {chosen:g}，在 400 条验证数据上")


def test_what_is_set_is_not_chosen() -> None:
    assert is_open(DecodeSettings())
    for settings in (
        DecodeSettings(length_penalty=0.6),
        DecodeSettings(method="greedy"),
        DecodeSettings(method="sample"),
        DecodeSettings(beam=1),
    ):
        assert not is_open(settings)
    assert n_tuning_translations(DecodeSettings()) == len(GRID) * N_TUNED
    assert n_tuning_translations(DecodeSettings(method="greedy")) == N_TUNED
    assert n_tuning_translations(DecodeSettings(method="sample")) == 0


def test_rows_are_spread_over_the_set() -> None:
    assert tuning_rows(range(10)) == list(range(10))
    chosen = tuning_rows(range(1000))
    assert len(chosen) == N_TUNED
    assert chosen[0] == 0 and chosen[-1] > 990
    assert tuning_rows([]) == []


@pytest.fixture
def task(untrained: Bundle) -> Seq2Seq:
    assert isinstance(untrained.task, Seq2Seq)
    return untrained.task


def test_tuning_stores_what_it_chose(task: Seq2Seq) -> None:
    tuned, settings, choice = task.tune_decoding(ROWS, BEAM, "chrF")
    assert choice is not None
    assert choice.metric == "chrF" and choice.n_rows == 40
    assert set(choice.scores) == {"0.2", "0.6", "1", "1.4"}
    assert settings == replace(BEAM, length_penalty=choice.value)
    again = Seq2Seq.restore(task.model, task.tokenizer, task.settings, json.loads(json.dumps(tuned.metadata())))
    assert again.confidence == tuned.confidence is not None
    assert tuned.engine == task.engine
    assert task.tune_decoding(ROWS, BEAM, "chrF")[1:] == (settings, choice)


def test_a_penalty_of_the_recipe_stays(task: Seq2Seq) -> None:
    settings = replace(BEAM, length_penalty=0.3)
    tuned, same, choice = task.tune_decoding(ROWS, settings, "BLEU")
    assert (same, choice) == (settings, None)
    assert tuned.confidence is not None and tuned.confidence.n_rows == 40


def test_few_rows_and_samples_tell_nothing(task: Seq2Seq) -> None:
    assert task.tune_decoding(ROWS[:19], BEAM, "BLEU") == (task, BEAM, None)
    sampling = DecodeSettings(method="sample")
    assert task.tune_decoding(ROWS, sampling, "BLEU") == (task, sampling, None)


def test_confidence_is_the_rank_among_validation_translations() -> None:
    values = np.linspace(-2.0, -1.0, 101)
    confidence = Confidence.fit(values[::-1].tolist(), np.linspace(0, 100, 101)[::-1].tolist())
    assert confidence.of(-2.5) == 0.0
    assert confidence.of(-1.96) == pytest.approx(0.04)
    assert confidence.of(-1.5) == pytest.approx(0.5)
    assert confidence.of(-0.5) == 1.0
    assert (confidence.chrf, confidence.n_rows) == (pytest.approx(50), 101)
    assert confidence.low_chrf == pytest.approx(2.5)  # of the lowest 5 %


@pytest.mark.parametrize(
    "changes", [{"quantiles": [0.0]}, {"quantiles": [1.0] * 100 + [0.0]}, {"quantiles": [float("nan")] * 101}]
)
def test_damaged_confidence_is_refused(changes: dict[str, Any]) -> None:
    stored = Confidence.fit([-1.0, -2.0], [1.0, 2.0]).metadata()
    with pytest.raises(ValueError, match="ascending"):
        Confidence.restore(stored | changes)


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_every_engine_flags_the_same_translations(task: Seq2Seq, engine: str) -> None:
    tuned, settings, _ = task.tune_decoding(ROWS, BEAM, "BLEU")
    sources = [source for source, _ in ROWS]
    found = tuned.with_engine(EngineSelector(engine)).predict([*sources, " "], settings)
    confidences = [one.confidence for one in found[:-1]]
    assert all(confidence is not None and 0 <= confidence <= 1 for confidence in confidences)
    assert found[-1].confidence is None  # a blank line
    n_low = sum(one.is_low_confidence for one in found)
    assert 1 <= n_low <= round(len(ROWS) * LOW_CONFIDENCE) + 1
    best = found[0].candidates[0]
    assert tuned.confidence is not None
    assert found[0].confidence == tuned.confidence.of(best.mean_log_probability)
    assert best.mean_log_probability == pytest.approx(best.log_probability / 5, rel=1e-5)  # cut off after five tokens


def test_samples_have_no_confidence(task: Seq2Seq) -> None:
    tuned, _, _ = task.tune_decoding(ROWS, BEAM, "BLEU")
    (found,) = tuned.predict(["The dog sleeps."], DecodeSettings(method="sample", max_new_tokens=5))
    assert found.confidence is None and not found.is_low_confidence
