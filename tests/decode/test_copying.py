"""Copying: each id that is copied is generated as often as it is in the source."""

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import DecodeSettings, TorchEngine, copying_beam, generate, n_extra, n_missing, search
from manyheads.decode.copying import Copying
from manyheads.decode.settings import SpecialTokens

from decode.small import BOS, EOS, FORBIDDEN, PAD, SPECIAL, TableStepper, random_model

COPIED = (7, 8)
SOURCES = [[4, 7, 5, 8, EOS], [7, 7, 4, EOS], [4, 5, EOS], [8, 6, 7, 8, 4, 5, 6, EOS]]
HOW = DecodeSettings(beam=12, length_penalty=0.6, max_new_tokens=12)


def n_miscopied(ids: Sequence[int], source: Sequence[int], copied: Sequence[int]) -> int:
    return n_missing(ids, source, copied) + n_extra(ids, source, copied)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    alpha=st.sampled_from([0.0, 0.6, 2.0]),
    max_length=st.integers(1, 5),
    source=st.lists(st.sampled_from([4, 5, 6]), max_size=4),
)
def test_a_beam_as_wide_as_the_tree_is_exact(seed: int, alpha: float, max_length: int, source: list[int]) -> None:
    stepper = TableStepper(seed, [0], vocab_size=7)

    def log_probability(ids: tuple[int, ...]) -> float:
        return sum(stepper.table(0, (BOS, *ids[:position]))[i] for position, i in enumerate(ids))

    everything = [
        (ids, log_probability((*ids, EOS)) / ((5 + n + 1) / 6) ** alpha)
        for n in range(max_length)
        for ids in itertools.product((4, 5, 6), repeat=n)
        if not n_miscopied(ids, source, (5, 6))
    ]
    expected = sorted(everything, key=lambda one: -one[1])[:3]
    how = DecodeSettings(beam=256, length_penalty=alpha, n_best=3)
    constraint = Copying.of(torch.tensor([source], dtype=torch.long), (5, 6))
    (hypotheses,) = search(stepper, [max_length], settings=how, constraint=constraint, **SPECIAL)
    finished = [h for h in hypotheses if h.finished]
    assert [h.ids for h in finished] == [ids for ids, _ in expected]
    assert [h.score for h in finished] == pytest.approx([score for _, score in expected])
    assert bool(finished) == bool(expected)


@pytest.mark.parametrize("seed", range(5))
def test_every_hypothesis_has_the_ids_of_its_source(seed: int) -> None:
    engine = TorchEngine(random_model(seed), SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=FORBIDDEN))
    plain = engine.generate(SOURCES, HOW, range(4))
    assert sum(n_miscopied(best.ids, source, COPIED) for source, (best, *_) in zip(SOURCES, plain, strict=True))
    several = DecodeSettings(beam=12, n_best=4, max_new_tokens=12)
    together = engine.generate(SOURCES, several, range(4), COPIED)
    for index, (source, hypotheses) in enumerate(zip(SOURCES, together, strict=True)):
        assert [n_miscopied(one.ids, source, COPIED) for one in hypotheses] == [0] * 4
        assert all(one.finished for one in hypotheses)
        [alone] = engine.generate([source], several, [index], COPIED)
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]


def test_unlimited_search_is_chosen_if_it_copies_all() -> None:
    """Where the best hypothesis satisfies the constraint, it is found with and without it."""
    n_equal = 0
    for seed in range(30):
        model = random_model(seed)
        source = torch.tensor([[4, 5, 7, EOS]])
        [[plain]] = generate(model, source, settings=DecodeSettings(beam=64, max_new_tokens=5), **SPECIAL)
        how = DecodeSettings(beam=64, max_new_tokens=5)
        [[constrained]] = generate(model, source, settings=how, copied=COPIED, **SPECIAL)
        if plain.finished and not n_miscopied(plain.ids, [4, 5, 7], COPIED):
            n_equal += 1
            assert constrained.ids == plain.ids
        elif plain.finished and constrained.finished:
            assert constrained.score < plain.score
    assert n_equal


def test_search_that_has_no_room_does_not_end() -> None:
    source = torch.tensor([[7, 8, 7, EOS]])
    how = DecodeSettings(beam=12, max_new_tokens=3)
    [hypotheses] = generate(random_model(), source, settings=how, copied=COPIED, **SPECIAL)
    assert not hypotheses[0].finished
    how = DecodeSettings(beam=12, max_new_tokens=4)
    [[best]] = generate(random_model(), source, settings=how, copied=COPIED, **SPECIAL)
    assert best.finished
    assert Counter(best.ids) == {7: 2, 8: 1}


def test_counts() -> None:
    assert (n_missing((4, 7, 5), [7, 4, 4], COPIED), n_extra((4, 7, 5), [7, 4, 4], COPIED)) == (0, 0)
    assert (n_missing((4, 5), [7, 8, 7], COPIED), n_extra((4, 5), [7, 8, 7], COPIED)) == (3, 0)
    assert (n_missing((7, 7, 8), [7], COPIED), n_extra((7, 7, 8), [7], COPIED)) == (0, 2)
    assert copying_beam([4, 7, 8, 7], COPIED) == 8
    assert copying_beam([7] * 500, COPIED) == 64
