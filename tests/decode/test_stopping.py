"""Stopping criteria: a hypothesis can finish before EOS."""

from collections.abc import Sequence

import pytest

from manyheads.decode import DecodeSettings, search
from manyheads.decode.hypotheses import length_penalty

from decode.small import SPECIAL, TableStepper

LENGTHS = [12] * 6
METHODS = [
    DecodeSettings(method="greedy"),
    DecodeSettings(method="sample", n_best=3),
    DecodeSettings(method="beam", beam=4, n_best=3),
]
every_method = pytest.mark.parametrize("settings", METHODS, ids=lambda settings: settings.method)


def has_a_five(ids: Sequence[int]) -> bool:
    return 5 in ids


def stepper() -> TableStepper:
    return TableStepper(3, list(range(6)), spread=1.0)


@every_method
def test_a_stopped_hypothesis_is_finished_and_ends_there(settings: DecodeSettings) -> None:
    found = search(stepper(), LENGTHS, settings=settings, should_stop=has_a_five, **SPECIAL)
    hypotheses = [hypothesis for row in found for hypothesis in row]
    stopped = [hypothesis for hypothesis in hypotheses if 5 in hypothesis.ids]
    assert stopped
    for hypothesis in stopped:
        assert hypothesis.finished
        assert hypothesis.ids.index(5) == len(hypothesis.ids) - 1
        score = hypothesis.log_probability / length_penalty(len(hypothesis.ids), settings.alpha)
        assert hypothesis.score == pytest.approx(score)
    for hypothesis in hypotheses:
        if 5 not in hypothesis.ids and hypothesis.finished:
            score = hypothesis.log_probability / length_penalty(len(hypothesis.ids) + 1, settings.alpha)
            assert hypothesis.score == pytest.approx(score)


@every_method
def test_a_criterion_that_never_stops_changes_nothing(settings: DecodeSettings) -> None:
    free = search(stepper(), LENGTHS, settings=settings, **SPECIAL)
    assert search(stepper(), LENGTHS, settings=settings, should_stop=lambda ids: False, **SPECIAL) == free


def test_greedy_search_is_cut_at_the_stop() -> None:
    free = search(stepper(), LENGTHS, settings=METHODS[0], **SPECIAL)
    stopped = search(stepper(), LENGTHS, settings=METHODS[0], should_stop=has_a_five, **SPECIAL)
    for [whole], [cut] in zip(free, stopped, strict=True):
        expected = whole.ids[: whole.ids.index(5) + 1] if 5 in whole.ids else whole.ids
        assert cut.ids == expected
