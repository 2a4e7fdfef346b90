import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import DecodeSettings, search
from manyheads.decode.sampling import sample_ids

from decode.small import SPECIAL, FixedStepper, TableStepper

PROBABILITIES = [0.0, 0.0, 0.0, 0.10, 0.05, 0.35, 0.20, 0.30]


def frequencies(n: int, **how: float) -> list[int]:
    stepper = FixedStepper([math.log(p) if p else -math.inf for p in PROBABILITIES])
    found = search(stepper, [1] * n, settings=DecodeSettings(method="sample", **how), **SPECIAL)
    counts = [0] * len(PROBABILITIES)
    for (hypothesis,) in found:
        counts[hypothesis.ids[0] if hypothesis.ids else 3] += 1
    return counts


def expected(**how: float) -> list[float]:
    weights = [p ** (1 / how.get("temperature", 1.0)) for p in PROBABILITIES]
    total = sum(weights)
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    if "top_k" in how:
        order = order[: int(how["top_k"])]
        total = sum(weights[i] for i in order)
    kept, mass = [], 0.0
    for i in order:
        if mass / total >= how.get("top_p", 1.0):
            break
        kept.append(i)
        mass += weights[i]
    return [weights[i] / mass if i in kept else 0.0 for i in range(len(weights))]


@pytest.mark.parametrize(
    "how",
    [{}, {"temperature": 0.5}, {"temperature": 3.0}, {"top_k": 3}, {"top_p": 0.6}, {"top_k": 4, "top_p": 0.5}],
    ids=str,
)
def test_sample_frequencies_equal_the_probabilities(how: dict[str, float]) -> None:
    n = 4000
    counts, expected_shares = frequencies(n, **how), expected(**how)
    assert all(count == 0 for count, p in zip(counts, expected_shares, strict=True) if p == 0)
    chi_square = sum((count - n * p) ** 2 / (n * p) for count, p in zip(counts, expected_shares, strict=True) if p > 0)
    assert chi_square < 18.5  # 99.9 % at 4 degrees of freedom


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    how=st.sampled_from([{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}, {"temperature": 1e-300}]),
    max_lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4),
)
def test_sampling_from_one_choice_is_greedy(seed: int, how: dict[str, float], max_lengths: list[int]) -> None:
    names = list(range(len(max_lengths)))
    sampled, greedy = (
        search(TableStepper(seed, names), max_lengths, settings=chosen, **SPECIAL)
        for chosen in (DecodeSettings(method="sample", seed=seed, **how), DecodeSettings(method="greedy"))
    )
    assert sampled == greedy


def test_samples_differ_and_a_seed_reproduces_them() -> None:
    def sample(seed: int) -> list[tuple[int, ...]]:
        how = DecodeSettings(method="sample", n_best=20, seed=seed)
        (hypotheses,) = search(TableStepper(1, [0], spread=0.5), [10], settings=how, **SPECIAL)
        assert [h.score for h in hypotheses if h.finished] == sorted(
            (h.score for h in hypotheses if h.finished), reverse=True
        )
        assert len(hypotheses) == 20
        return [h.ids for h in hypotheses]

    assert len(set(sample(1))) > 10
    assert sample(1) == sample(1) != sample(2)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), order=st.permutations(range(5)), n_best=st.integers(1, 3))
def test_a_sample_does_not_depend_on_the_batch_order(seed: int, order: list[int], n_best: int) -> None:
    how = DecodeSettings(method="sample", n_best=n_best, seed=seed)
    lengths = [3, 9, 0, 5, 7]
    in_order = search(TableStepper(seed, list(range(5))), lengths, settings=how, **SPECIAL)
    reordered = search(
        TableStepper(seed, list(order)), [lengths[i] for i in order], settings=how, streams=order, **SPECIAL
    )
    assert reordered == [in_order[i] for i in order]


def test_a_uniform_number_close_to_1_never_samples_an_impossible_id() -> None:
    # With this many rows, some sums of probabilities round to less than 1, which could select an impossible id.
    logits = torch.randn(300, 40, generator=torch.Generator().manual_seed(0))
    log_probabilities = logits.log_softmax(dim=1).index_fill(1, torch.arange(20), -math.inf)
    for uniform in (0.0, 0.5, 1 - 2**-53):
        uniforms = torch.full((300,), uniform, dtype=torch.float64)
        assert sample_ids(log_probabilities, uniforms, DecodeSettings()).min() >= 20


def test_greedy_search_selects_rows_only_when_a_sentence_ends() -> None:
    stepper = TableStepper(0, [0, 1, 2])
    search(stepper, [6] * 3, bos=2, eos=3, forbidden=[0, 1, 3], settings=DecodeSettings(method="greedy"))
    assert stepper.n_selects == 0
    assert stepper.calls == [3] * 6
