import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import DecodeSettings, Hypothesis, search
from manyheads.decode.hypotheses import best_first

from decode.small import BOS, EOS, FORBIDDEN, SPECIAL, FixedStepper, TableStepper
from reference import beam as reference

seeds = st.integers(0, 10_000)
alphas = st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0])


@settings(max_examples=150, deadline=None)
@given(
    seed=seeds,
    beam=st.integers(1, 6),
    alpha=alphas,
    max_lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    spread=st.sampled_from([0.3, 2.0, 6.0]),
    data=st.data(),
)
def test_beam_search_equals_the_slow_reference(
    seed: int, beam: int, alpha: float, max_lengths: list[int], spread: float, data: st.DataObject
) -> None:
    n_best = data.draw(st.integers(1, beam))
    stepper = TableStepper(seed, list(range(len(max_lengths))), spread=spread)
    how = DecodeSettings(beam=beam, length_penalty=alpha, n_best=n_best)
    for name, (hypotheses, max_length) in enumerate(
        zip(search(stepper, max_lengths, settings=how, **SPECIAL), max_lengths, strict=True)
    ):
        expected = reference.beam_search(
            lambda ids, name=name: stepper.table(name, (BOS, *ids)),
            beam=beam,
            alpha=alpha,
            n_best=n_best,
            max_length=max_length,
            eos=EOS,
            forbidden=[*FORBIDDEN, BOS],
        )
        assert [(h.ids, h.finished) for h in hypotheses] == [(ids, finished) for ids, _, _, finished in expected]
        for hypothesis, (_, log_probability, score, _) in zip(hypotheses, expected, strict=True):
            assert hypothesis.log_probability == pytest.approx(log_probability, abs=1e-9)
            assert hypothesis.score == pytest.approx(score, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, alpha=alphas, max_length=st.integers(1, 4))
def test_a_beam_as_wide_as_the_tree_is_exact(seed: int, alpha: float, max_length: int) -> None:
    words = (4, 5, 6)
    stepper = TableStepper(seed, [0], vocab_size=7)

    def log_probability(ids: tuple[int, ...]) -> float:
        return sum(stepper.table(0, (BOS, *ids[:position]))[i] for position, i in enumerate(ids))

    everything = [
        (ids, log_probability((*ids, EOS)) / ((5 + n + 1) / 6) ** alpha)
        for n in range(max_length)
        for ids in itertools.product(words, repeat=n)
    ]
    expected = sorted(everything, key=lambda one: -one[1])[:5]
    how = DecodeSettings(beam=4 * 3 ** (max_length - 1) + 5, length_penalty=alpha, n_best=5)
    (hypotheses,) = search(stepper, [max_length], settings=how, **SPECIAL)
    assert [h.ids for h in hypotheses] == [ids for ids, _ in expected]
    assert [h.score for h in hypotheses] == pytest.approx([score for _, score in expected])


@settings(max_examples=60, deadline=None)
@given(seed=seeds, alpha=alphas, max_lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_a_beam_of_one_is_greedy(seed: int, alpha: float, max_lengths: list[int]) -> None:
    names = list(range(len(max_lengths)))
    one, greedy = (
        search(
            TableStepper(seed, names),
            max_lengths,
            settings=DecodeSettings(method=method, beam=1, length_penalty=alpha),
            **SPECIAL,
        )
        for method in ("beam", "greedy")
    )
    assert one == greedy


@settings(max_examples=60, deadline=None)
@given(seed=seeds, beam=st.integers(2, 8))
def test_hypotheses_are_sorted_and_distinct(seed: int, beam: int) -> None:
    how = DecodeSettings(beam=beam, n_best=beam)
    for hypotheses in search(TableStepper(seed, [0, 1]), [7, 3], settings=how, **SPECIAL):
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({h.ids for h in hypotheses}) == len(hypotheses) > 0
        assert all(h.finished for h in hypotheses) or not any(h.finished for h in hypotheses)


def log(*probabilities: float) -> list[float]:
    return [math.log(p) if p else -math.inf for p in probabilities]


def test_a_length_penalty_favors_longer_hypotheses() -> None:
    found = {}
    for alpha in (0.0, 2.0):
        stepper = FixedStepper(log(0, 0, 0, 0.3, 0.7))
        how = DecodeSettings(beam=3, length_penalty=alpha)
        ((hypothesis,),) = search(stepper, [12], settings=how, **SPECIAL)
        found[alpha] = len(hypothesis.ids)
    assert found[0.0] == 0 < found[2.0]


def test_search_stops_when_no_beam_can_win() -> None:
    stepper = FixedStepper(log(0, 0, 0, 0.9, 0.1))
    ((hypothesis,),) = search(stepper, [100], settings=DecodeSettings(beam=2, length_penalty=0.0), **SPECIAL)
    assert hypothesis.ids == ()
    assert stepper.n_steps == 1
    # With a penalty the bound is that of the maximum length: log 0.1 / (105/6)^0.6 = −0.41 < log 0.9 / 1.
    stepper = FixedStepper(log(0, 0, 0, 0.9, 0.1))
    search(stepper, [100], settings=DecodeSettings(beam=2, length_penalty=0.6), **SPECIAL)
    assert stepper.n_steps == 1
    # log 0.5 / (105/6)^0.6 = −0.12 may still beat log 0.5.
    stepper = FixedStepper(log(0, 0, 0, 0.5, 0.5))
    search(stepper, [100], settings=DecodeSettings(beam=2, length_penalty=0.6), **SPECIAL)
    assert 1 < stepper.n_steps < 12


def test_finished_sentences_leave_the_batch() -> None:
    stepper = TableStepper(3, list(range(6)))
    lengths = [1, 2, 3, 4, 5, 6]
    search(stepper, lengths, settings=DecodeSettings(beam=2, length_penalty=2.0), **SPECIAL)
    assert stepper.calls[0] == 6
    assert stepper.calls[1] <= 2 * 5
    assert stepper.calls == sorted(stepper.calls[:1]) + sorted(stepper.calls[1:], reverse=True)
    assert stepper.calls[-1] <= 2


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("nothing", [-math.inf, math.nan])
def test_unfinished_hypotheses_are_returned_if_no_id_is_possible(method: str, nothing: float) -> None:
    how = DecodeSettings(method=method, beam=2)
    ((hypothesis,),) = search(FixedStepper([nothing] * 6), [5], settings=how, **SPECIAL)
    assert (hypothesis.ids, hypothesis.finished, hypothesis.log_probability, hypothesis.score) == ((), False, 0.0, 0.0)

    class Stops(FixedStepper):
        def step(self, ids: torch.Tensor) -> torch.Tensor:
            usual = super().step(ids)
            return usual if self.n_steps <= 2 else torch.full_like(usual, nothing)

    ((hypothesis,),) = search(Stops(log(0.2, 0, 0, 0, 0.7, 0.1)), [5], settings=how, **SPECIAL)
    assert len(hypothesis.ids) == 2
    assert not hypothesis.finished
    assert math.isfinite(hypothesis.score)


def test_a_finished_hypothesis_ranks_above_any_that_was_cut_off() -> None:
    cut, finished, better = (
        Hypothesis((length,), score, score, is_finished)
        for length, score, is_finished in [(1, -0.1, False), (2, -5.0, True), (3, -2.0, True)]
    )
    assert best_first([cut, finished, better], 3) == [better, finished, cut]
    assert best_first([cut, finished], 1) == [finished]


def test_samples_that_were_cut_off_come_last() -> None:
    how = DecodeSettings(method="sample", n_best=30, length_penalty=0.0)
    ((*hypotheses,),) = search(FixedStepper(log(0, 0, 0, 0.01, 0.99)), [20], settings=how, **SPECIAL)
    is_finished = [h.finished for h in hypotheses]
    assert 0 < sum(is_finished) < 30
    assert is_finished == sorted(is_finished, reverse=True)
    assert hypotheses[-1].score > hypotheses[0].score  # the most probable samples have no EOS


class Scripted(FixedStepper):
    """Other log-probabilities at every step."""

    def __init__(self, *steps: list[float]) -> None:
        super().__init__(steps[0])
        self.steps = steps

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        self.log_probabilities = torch.tensor(self.steps[self.n_steps], dtype=torch.float64)
        return super().step(ids)


@pytest.mark.parametrize(("p_eos", "ids", "n_steps"), [(0.54, (4, 4), 3), (0.56, (), 1)])
def test_a_beam_is_bounded_by_its_score_at_the_maximum_length(p_eos: float, ids: tuple[int, ...], n_steps: int) -> None:
    # EOS at once, or two ids and EOS, whose score is log(1 − p) / (8 / 6): it is the better one up to p = 0.5497.
    stepper = Scripted(log(0, 0, 0, p_eos, 1 - p_eos), log(0, 0, 0, 0, 1), log(0, 0, 0, 1, 0))
    how = DecodeSettings(beam=2, length_penalty=1.0)
    ((hypothesis,),) = search(stepper, [3], settings=how, **SPECIAL)
    assert (hypothesis.ids, stepper.n_steps) == (ids, n_steps)


def test_a_beam_wider_than_the_choices_returns_possible_hypotheses_only() -> None:
    how = DecodeSettings(beam=3, n_best=3)
    (hypotheses,) = search(FixedStepper(log(0, 0, 0, 0, 1)), [2], settings=how, **SPECIAL)
    assert [(h.ids, h.finished, h.log_probability) for h in hypotheses] == [((4, 4), False, 0.0)]
