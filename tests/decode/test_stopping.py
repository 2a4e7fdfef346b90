"""A search that is told when it is over."""

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
def test_what_is_over_is_finished_and_ends_there(settings: DecodeSettings) -> None:
    found = search(stepper(), LENGTHS, settings=settings, should_stop=has_a_five, **SPECIAL)
    hypotheses = [hypothesis for row in found for hypothesis in row]
    stopped = [hypothesis for hypothesis in hypotheses if 5 in hypothesis.ids]
    assert stopped
    for hypothesis in stopped:
        assert hypothesis.finished
        assert hypothesis.ids.index(5) == len(hypothesis.ids) - 1
        score = hypothesis.log_probability / length_penalty(len(hypothesis.ids), settings.length_penalty)
        assert hypothesis.score == pytest.approx(score)
    for hypothesis in hypotheses:
        if 5 not in hypothesis.ids and hypothesis.finished:
            score = hypothesis.log_probability / length_penalty(len(hypothesis.ids) + 1, settings.length_penalty)
            assert hypothesis.score == pytest.approx(score)


@every_method
def test_what_is_never_over_changes_nothing(settings: DecodeSettings) -> None:
    free = search(stepper(), LENGTHS, settings=settings, **SPECIAL)
    assert search(stepper(), LENGTHS, settings=settings, should_stop=lambda ids: False, **SPECIAL) == free


def test_a_greedy_search_is_cut_where_it_is_over() -> None:
    free = search(stepper(), LENGTHS, settings=METHODS[0], **SPECIAL)
    told = search(stepper(), LENGTHS, settings=METHODS[0], should_stop=has_a_five, **SPECIAL)
    for [whole], [cut] in zip(free, told, strict=True):
        wanted = whole.ids[: whole.ids.index(5) + 1] if 5 in whole.ids else whole.ids
        assert cut.ids == wanted
