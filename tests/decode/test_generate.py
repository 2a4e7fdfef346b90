from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import manyheads.decode as package
from manyheads.decode import CachedStepper, DecodeSettings, Hypothesis, UncachedStepper, generate, memory_use, search
from manyheads.errors import EngineError
from manyheads.model import ModelSettings, Transformer, gated
from manyheads.model.transformer import DecoderState

from decode.small import BOS, EOS, FORBIDDEN, KINDS, SPECIAL, TableStepper, random_model, random_sources

METHODS = {
    "greedy": DecodeSettings(method="greedy", max_new_tokens=8),
    "beam": DecodeSettings(method="beam", beam=3, n_best=3, max_new_tokens=8),
    "sample": DecodeSettings(method="sample", n_best=2, max_new_tokens=8),
}
each_method = pytest.mark.parametrize("method", METHODS)


def assert_same(first: list[list[Hypothesis]], second: list[list[Hypothesis]]) -> None:
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert [(h.ids, h.finished) for h in one] == [(h.ids, h.finished) for h in other]
        for name in ("log_probability", "score"):
            assert [getattr(h, name) for h in one] == pytest.approx([getattr(h, name) for h in other], abs=1e-9)


@torch.inference_mode()
def forced(model: Transformer, source: torch.Tensor | None, hypothesis: Hypothesis, prompt: list[int]) -> float:
    """The log-probability of a hypothesis by teacher forcing."""
    written = [*hypothesis.ids, EOS] if hypothesis.finished else list(hypothesis.ids)
    target = torch.tensor([[BOS, *prompt, *written]])
    log_probabilities = model(source, target[:, :-1]).log_softmax(-1)[0, len(prompt) :]
    return sum(float(log_probabilities[position, i]) for position, i in enumerate(written))


@each_method
@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_cached_equals_uncached(method: str, kind: str) -> None:
    model = random_model(5, **KINDS[kind])
    source, is_real = random_sources(5, [3, 6, 1])
    lengths = [9, 12, 7]
    cached, plain = (
        search(made(model, source, is_real), lengths, settings=METHODS[method], **SPECIAL)
        for made in (CachedStepper, UncachedStepper)
    )
    assert_same(cached, plain)


@each_method
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_a_batch_equals_single_sentences(method: str, seed: int, lengths: list[int]) -> None:
    model = random_model(seed)
    source, is_real = random_sources(seed, lengths)
    together = generate(model, source, is_real, settings=METHODS[method], **SPECIAL)
    apart = [
        generate(model, source[row : row + 1, :length], settings=METHODS[method], streams=[row], **SPECIAL)[0]
        for row, length in enumerate(lengths)
    ]
    assert_same(together, apart)


@each_method
@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_equal_teacher_forcing(method: str, kind: str) -> None:
    model = random_model(6, **KINDS[kind])
    source, is_real = random_sources(6, [4, 4, 4])
    for row, hypotheses in enumerate(generate(model, source, is_real, settings=METHODS[method], **SPECIAL)):
        assert hypotheses
        for h in hypotheses:
            assert h.log_probability == pytest.approx(forced(model, source[row : row + 1], h, []), abs=1e-9)
            length = len(h.ids) + h.finished
            assert h.score == pytest.approx(h.log_probability / ((5 + length) / 6) ** 0.6)


@each_method
def test_a_prompt_is_continued(method: str) -> None:
    model = random_model(7, shape="decoder", positions="learned", max_length=9)
    prompt = torch.tensor([[4, 5, 6], [8, 8, 7]])
    for row, hypotheses in enumerate(generate(model, prompt=prompt, settings=METHODS[method], **SPECIAL)):
        for h in hypotheses:
            assert h.log_probability == pytest.approx(forced(model, None, h, prompt[row].tolist()), abs=1e-9)
            assert len(h.ids) <= 6  # the model's length, less the prompt


@each_method
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), max_lengths=st.lists(st.integers(0, 8), max_size=4))
def test_lengths_and_ids_stay_within_bounds(method: str, seed: int, max_lengths: list[int]) -> None:
    stepper = TableStepper(seed, list(range(len(max_lengths))), spread=4.0)
    found = search(stepper, max_lengths, settings=METHODS[method], **SPECIAL)
    assert len(found) == len(max_lengths)
    for hypotheses, max_length in zip(found, max_lengths, strict=True):
        assert hypotheses
        for h in hypotheses:
            assert not {BOS, EOS, *FORBIDDEN} & set(h.ids)
            assert len(h.ids) + h.finished <= max_length
            assert h.finished or len(h.ids) == max_length
    if not any(max_lengths):
        assert stepper.calls == []


@each_method
def test_a_forbidden_eos_leaves_hypotheses_unfinished(method: str) -> None:
    found = search(TableStepper(0, [0, 1]), [4, 2], bos=2, eos=3, forbidden=[0, 1, 3], settings=METHODS[method])
    for hypotheses, length in zip(found, [4, 2], strict=True):
        assert len(hypotheses) == METHODS[method].n_best
        assert all(len(h.ids) == length and not h.finished for h in hypotheses)


@each_method
def test_a_small_budget_makes_parts_with_the_same_hypotheses(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(7)
    source, is_real = random_sources(7, [3, 6, 1, 4, 5])
    together = generate(model, source, is_real, settings=METHODS[method], **SPECIAL)
    n_rows, start = [], model.start

    def count(source: torch.Tensor, *rest: Any, **options: Any) -> DecoderState:
        n_rows.append(len(source))
        return start(source, *rest, **options)

    monkeypatch.setattr(model, "start", count)
    monkeypatch.setattr(memory_use, "_BUDGET", 2 * memory_use.bytes_per_sentence(model.settings, METHODS[method], 8))
    assert_same(generate(model, source, is_real, settings=METHODS[method], **SPECIAL), together)
    assert n_rows == [2, 2, 1]
    monkeypatch.setattr(memory_use, "_BUDGET", 0)
    assert_same(generate(model, source, is_real, settings=METHODS[method], **SPECIAL), together)
    assert n_rows == [2, 2, 1, 1, 1, 1, 1, 1]


def test_a_beam_that_the_machine_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = ModelSettings.preset("base", vocab_size=32_000, max_length=100_000)
    settings = DecodeSettings(beam=256)
    assert memory_use.sentences_at_once(wide, settings, 100) >= 1
    monkeypatch.setattr(memory_use, "machine_memory", lambda: 25 * 10**9)
    with pytest.raises(EngineError) as caught:
        memory_use.sentences_at_once(wide, settings, 100_000)
    assert str(caught.value) == (
        "decode.beam = 256 with up to 100,000 tokens needs about 695 GB of memory; this machine has 25 GB. "
        "Use a smaller decode.beam or decode.max_new_tokens."
    )
    monkeypatch.setattr(memory_use, "machine_memory", lambda: None)
    assert memory_use.sentences_at_once(wide, settings, 100_000) == 1


def test_no_rows_give_no_hypotheses() -> None:
    nothing = torch.zeros(0, 3, dtype=torch.long)
    for how in METHODS.values():
        assert generate(random_model(), nothing, settings=how, **SPECIAL) == []
        assert generate(random_model(shape="decoder"), prompt=nothing, settings=how, **SPECIAL) == []


@each_method
def test_a_norm_over_the_whole_sequence_is_not_cached(method: str) -> None:
    model = random_model(8, norm="sample")
    source, _ = random_sources(8, [4, 4])
    how = METHODS[method]
    with torch.inference_mode():
        plain, cached = (
            search(made(model, source), [how.max_length(4)] * 2, settings=how, **SPECIAL)
            for made in (UncachedStepper, CachedStepper)
        )
    assert_same(generate(model, source, settings=how, **SPECIAL), plain)
    assert plain != cached


@pytest.mark.parametrize("training", [True, False])
def test_generate_disables_dropout_and_restores_the_mode(training: bool) -> None:
    model = random_model(9, dropout=0.5)
    source, _ = random_sources(9, [4, 4])
    expected = generate(model, source, settings=METHODS["beam"], **SPECIAL)
    model.train(training)
    assert_same(generate(model, source, settings=METHODS["beam"], **SPECIAL), expected)
    assert all(module.training == training for module in model.modules())


def test_gates_change_what_is_generated() -> None:
    model = random_model(10)
    source, _ = random_sources(10, [5, 5, 5, 5])
    gates: dict[str, Any] = {"decoder.1.cross": torch.zeros(4, dtype=torch.float64)}
    how = METHODS["greedy"]
    with gated(model, gates):
        ablated = generate(model, source, settings=how, **SPECIAL)
    assert generate(model, source, settings=how, **SPECIAL) != ablated


def test_generate_needs_a_source_or_a_prompt() -> None:
    with pytest.raises(TypeError, match="generate needs a source or a prompt"):
        generate(random_model(), settings=METHODS["beam"], **SPECIAL)


def test_every_exported_name_is_there() -> None:
    assert all(hasattr(package, name) for name in package.__all__)


@each_method
def test_half_precision_sums_in_single(method: str) -> None:
    model = random_model(11).bfloat16()
    source, _ = random_sources(11, [4, 4])
    for hypotheses in generate(model, source, settings=METHODS[method], **SPECIAL):
        for h in hypotheses:
            assert torch.tensor(h.log_probability).bfloat16().item() != h.log_probability


@each_method
def test_nothing_is_generated_after_a_prompt_that_fills_the_context(method: str) -> None:
    model = random_model(7, shape="decoder", positions="learned", max_length=5)
    for n_prompt in (5, 4, 3):
        prompt = torch.full((1, n_prompt), 4)
        how = {"bos": BOS, "eos": EOS, "forbidden": (*FORBIDDEN, EOS)}
        (hypotheses,) = generate(model, prompt=prompt, settings=METHODS[method], **how)
        assert {len(h.ids) for h in hypotheses} == {5 - n_prompt}
