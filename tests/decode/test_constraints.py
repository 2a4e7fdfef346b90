"""Constrained beam search: every hypothesis contains the phrases of its sentence and begins with its prefix."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import DecodeSettings, PhraseConstraint, TorchEngine, search
from manyheads.decode.constraints import best_of_each
from manyheads.decode.settings import SpecialTokens

from decode.small import BOS, EOS, FORBIDDEN, PAD, SPECIAL, TableStepper, random_model

Ids = tuple[int, ...]


@dataclass
class IdPhrases:
    """An automaton over ids whose states are numbers of tuples: each phrase occurs somewhere in the output."""

    phrases: Sequence[Ids]
    prefix: Ids = ()
    limited_ids: Sequence[int] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        self.seen: list[Ids] = [()]
        self.numbers: dict[Ids, int] = {(): 0}
        self.start = 0
        self.n_levels = self.n_tokens = sum(map(len, self.phrases))

    def follow(self, state: int, token_id: int) -> int:
        ids = (*self.seen[state], token_id)
        if ids not in self.numbers:
            self.numbers[ids] = len(self.seen)
            self.seen.append(ids)
        return self.numbers[ids]

    def is_done(self, ids: Ids, phrase: Ids) -> bool:
        return any(ids[start : start + len(phrase)] == phrase for start in range(len(ids)))

    def begun(self, ids: Ids, phrase: Ids) -> int:
        return max(length for length in range(len(phrase)) if not length or ids[-length:] == phrase[:length])

    def level(self, state: int) -> int:
        ids = self.seen[state]
        missing = [phrase for phrase in self.phrases if not self.is_done(ids, phrase)]
        done = self.n_levels - sum(map(len, missing))
        return done + max((self.begun(ids, phrase) for phrase in missing), default=0)

    def may_end(self, state: int) -> bool:
        ids = self.seen[state]
        return len(ids) >= len(self.prefix) and all(self.is_done(ids, phrase) for phrase in self.phrases)

    def allowed_ids(self, state: int) -> Sequence[int] | None:
        n_ids = len(self.seen[state])
        return None if n_ids >= len(self.prefix) else [self.prefix[n_ids]]

    def required_ids(self, state: int) -> Sequence[int]:
        ids = self.seen[state]
        missing = [phrase for phrase in self.phrases if not self.is_done(ids, phrase)]
        return sorted({phrase[n] for phrase in missing for n in (0, self.begun(ids, phrase))})


PHRASES = st.lists(st.lists(st.sampled_from([4, 5, 6]), min_size=1, max_size=3).map(tuple), max_size=2, unique=True)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    alpha=st.sampled_from([0.0, 0.6, 2.0]),
    max_length=st.integers(1, 5),
    phrases=PHRASES,
    prefix=st.lists(st.sampled_from([4, 5, 6]), max_size=2).map(tuple),
)
def test_a_beam_as_wide_as_the_tree_is_exact(
    seed: int, alpha: float, max_length: int, phrases: list[Ids], prefix: Ids
) -> None:
    stepper, automaton = TableStepper(seed, [0], vocab_size=7), IdPhrases(phrases, prefix)

    def log_probability(ids: Ids) -> float:
        return sum(stepper.table(0, (BOS, *ids[:position]))[i] for position, i in enumerate(ids))

    everything = [
        (ids, log_probability((*ids, EOS)) / ((5 + n + 1) / 6) ** alpha)
        for n in range(max_length)
        for ids in itertools.product((4, 5, 6), repeat=n)
        if ids[: len(prefix)] == prefix and all(automaton.is_done(ids, phrase) for phrase in phrases)
    ]
    expected = sorted(everything, key=lambda one: -one[1])[:3]
    # Hypotheses that the model would end are extended last, and the beam is wide enough for them, too.
    how = DecodeSettings(beam=256, length_penalty=alpha, n_best=3)
    [found] = search(stepper, [max_length], settings=how, constraint=PhraseConstraint([automaton]), **SPECIAL)
    finished = [one for one in found if one.finished]
    assert [one.ids for one in finished] == [ids for ids, _ in expected]
    assert [one.score for one in finished] == pytest.approx([score for _, score in expected])


ENGINE_PHRASES = [[(7, 8)], [(4, 5, 6), (8,)], [], [(7, 7), (5, 8)]]
SOURCES = [[4, 7, 5, 8, EOS], [7, 7, 4, EOS], [4, 5, EOS], [8, 6, 7, 8, 4, 5, 6, EOS]]


@pytest.mark.parametrize("no_repeat_ngram", [None, 1])
@pytest.mark.parametrize("seed", range(2))
def test_every_hypothesis_has_its_phrases_in_any_batch(seed: int, no_repeat_ngram: int | None) -> None:
    """Forbidden repetitions do not forbid what is required: (7, 7) repeats an id."""
    engine = TorchEngine(random_model(seed), SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=FORBIDDEN))
    how = DecodeSettings(beam=8, n_best=2, no_repeat_ngram=no_repeat_ngram)
    automata = [IdPhrases(phrases, (6,)) for phrases in ENGINE_PHRASES]
    together = engine.generate(SOURCES, how, range(4), (), automata)
    for index, (automaton, hypotheses) in enumerate(zip(automata, together, strict=True)):
        for one in hypotheses:
            assert one.ids[:1] == (6,)
            assert all(automaton.is_done(one.ids, phrase) for phrase in automaton.phrases)
        assert hypotheses[0].finished or not automaton.phrases
        [alone] = engine.generate(SOURCES[index : index + 1], how, [index], (), [automaton])
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]


def test_long_phrases_extend_the_default_maximum_length() -> None:
    engine = TorchEngine(random_model(), SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=FORBIDDEN))
    phrase = (4, 5) * 6
    [[best]] = engine.generate([[4, EOS]], DecodeSettings(beam=32), [0], (), [IdPhrases([phrase])])
    assert best.finished
    assert IdPhrases([]).is_done(best.ids, phrase)
    [[cut]] = engine.generate([[4, EOS]], DecodeSettings(beam=32, max_new_tokens=5), [0], (), [IdPhrases([phrase])])
    assert not cut.finished
    [[short]] = engine.generate([[4, EOS]], DecodeSettings(beam=32), [0], (), [IdPhrases([phrase], max_length=13)])
    assert short.ids == phrase


def test_limited_ids_are_generated_only_where_required() -> None:
    engine = TorchEngine(random_model(1), SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=FORBIDDEN))
    automaton = IdPhrases([(7,)], limited_ids=(6, 7, 8))
    found = engine.generate([[4, 5, EOS]], DecodeSettings(beam=8, n_best=8), [0], (), [automaton])[0]
    assert found[0].finished
    assert all(sorted(set(one.ids) & {6, 7, 8}) == [7] and one.ids.count(7) == 1 for one in found)


def test_order_of_groups() -> None:
    scores = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -torch.inf, -5.0]])
    groups = torch.tensor([[0, 0, 1, 1, 2, 0]])
    assert best_of_each(scores, groups).tolist() == [[2, 0, 3, 1, 5, 4]]
    is_late = torch.tensor([[True, False, False, False, False, False]])
    assert best_of_each(scores, groups, is_late).tolist() == [[2, 3, 1, 5, 0, 4]]
