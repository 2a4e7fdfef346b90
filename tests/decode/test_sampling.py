import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import DecodeSettings, generate, search
from manyheads.decode.sampling import random_streams, sample_ids

from decode.small import PAD, SPECIAL, FixedStepper, TableStepper, random_model, random_sources

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


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("how", [{}, {"top_p": 0.9}, {"top_k": 900}], ids=str)
def test_rounding_errors_do_not_change_a_sample(temperature: float, how: dict[str, float]) -> None:
    # Among this many choices some are nearly equal. Errors, as batches of other shapes cause, change their order.
    noise = torch.Generator().manual_seed(3)
    logits = torch.randn(300, 2000, generator=noise)
    chosen = DecodeSettings(method="sample", temperature=temperature, **how)
    ids, ids_with_errors = (
        sample_ids(values.log_softmax(dim=1), [stream for [stream] in random_streams(range(300), chosen)], chosen)
        for values in (logits, logits + 1e-5 * torch.randn(logits.shape, generator=noise))
    )
    assert torch.equal(ids, ids_with_errors)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    temperature=st.floats(0.3, 3.0),
    top_p=st.sampled_from([1.0, 0.9]),
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    n_padding=st.integers(0, 8),
)
def test_a_sentence_gets_the_same_samples_alone_and_in_a_batch(
    seed: int, temperature: float, top_p: float, lengths: list[int], n_padding: int
) -> None:
    model = random_model(seed, vocab_size=1000).float()
    source, is_real = random_sources(seed, lengths)
    source = torch.nn.functional.pad(source, (0, n_padding), value=PAD)
    is_real = torch.nn.functional.pad(is_real, (0, n_padding), value=False)
    how = DecodeSettings(
        method="sample", temperature=temperature, top_p=top_p, n_best=2, max_new_tokens=9, length_penalty=0.0, seed=seed
    )
    together = generate(model, source, is_real, settings=how, **SPECIAL)
    for row, length in enumerate(lengths):
        [alone] = generate(model, source[row : row + 1, :length], settings=how, streams=[row], **SPECIAL)
        assert [h.ids for h in alone] == [h.ids for h in together[row]]


@pytest.mark.parametrize("how", [{}, {"temperature": 1e-300}, {"top_p": 0.3}, {"top_k": 30}], ids=str)
def test_an_impossible_id_is_never_sampled(how: dict[str, float]) -> None:
    logits = torch.randn(300, 40, generator=torch.Generator().manual_seed(0))
    log_probabilities = logits.log_softmax(dim=1).index_fill(1, torch.arange(20), -math.inf)
    chosen = DecodeSettings(method="sample", **how)
    streams = [stream for [stream] in random_streams(range(300), chosen)]
    assert sample_ids(log_probabilities, streams, chosen).min() >= 20


@pytest.mark.parametrize("how", [{"top_k": 2}, {"top_p": 0.3}], ids=str)
def test_choices_as_probable_as_the_last_one_kept_are_kept(how: dict[str, float]) -> None:
    log_probabilities = torch.tensor([2.0, 1.0, 1.0, 1.0, 0.0, 0.0]).log_softmax(dim=0).repeat(200, 1)
    chosen = DecodeSettings(method="sample", **how)
    streams = [stream for [stream] in random_streams(range(200), chosen)]
    kept = {0, 1, 2, 3} if "top_k" in how else {0}
    assert set(sample_ids(log_probabilities, streams, chosen).tolist()) == kept


def test_greedy_search_selects_rows_only_when_a_sentence_ends() -> None:
    stepper = TableStepper(0, [0, 1, 2])
    search(stepper, [6] * 3, bos=2, eos=3, forbidden=[0, 1, 3], settings=DecodeSettings(method="greedy"))
    assert stepper.n_selects == 0
    assert stepper.calls == [3] * 6
