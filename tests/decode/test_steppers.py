import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode import CachedStepper, Stepper, UncachedStepper
from manyheads.model import Tap, gated

from decode.small import BOS, KINDS, random_model, random_sources


def compare_steppers(steppers: list[Stepper], n_sentences: int, seed: int, n_steps: int = 5) -> None:
    """Run random ids and random selections through all steppers, and compare them at every step."""
    generator = torch.Generator().manual_seed(seed)
    n_beams = 1
    ids = torch.full((n_sentences,), BOS)
    for _ in range(n_steps):
        first, *others = [stepper.step(ids) for stepper in steppers]
        assert torch.allclose(first.exp().sum(-1), torch.ones(len(first), dtype=first.dtype))
        for other in others:
            assert torch.allclose(first, other, atol=1e-10)
        kept = torch.randperm(n_sentences, generator=generator)[: max(1, n_sentences - 1)]
        n_selected = int(torch.randint(1, 4, (), generator=generator))
        beams = torch.randint(0, n_beams, (len(kept), n_selected), generator=generator)
        for stepper in steppers:
            stepper.select(kept[:, None] * n_beams + beams)
        n_sentences, n_beams = len(kept), n_selected
        ids = torch.randint(4, 9, (n_sentences * n_beams,), generator=generator)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4))
@torch.inference_mode()
def test_cached_equals_uncached_for_any_selection(kind: str, seed: int, lengths: list[int]) -> None:
    model = random_model(seed, **KINDS[kind])
    source, is_real = random_sources(seed, lengths)
    compare_steppers(
        [CachedStepper(model, source, is_real), UncachedStepper(model, source, is_real)], len(lengths), seed
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_prompt", [0, 1, 4])
@torch.inference_mode()
def test_cached_equals_uncached_after_a_prompt(kind: str, n_prompt: int) -> None:
    model = random_model(1, shape="decoder", **KINDS[kind])
    prompt = torch.randint(4, 9, (3, n_prompt))
    steppers = [made(model, prompt=prompt) for made in (CachedStepper, UncachedStepper)]
    compare_steppers(steppers, 3, 1)


@pytest.mark.parametrize("made", [CachedStepper, UncachedStepper])
@torch.inference_mode()
def test_selecting_before_the_first_step_keeps_each_prompt_with_its_source(made: type) -> None:
    model = random_model(2)
    source, is_real = random_sources(2, [3, 5, 2])
    prompt = torch.tensor([[4, 5], [6, 7], [8, 8]])
    all_rows = made(model, source, is_real, prompt=prompt).step(torch.full((3,), BOS))
    stepper = made(model, source, is_real, prompt=prompt)
    stepper.select(torch.tensor([[2, 2], [0, 0]]))
    assert torch.allclose(stepper.step(torch.full((4,), BOS)), all_rows[[2, 2, 0, 0]])


@torch.inference_mode()
def test_learned_positions_count_tokens_not_beams() -> None:
    model = random_model(3, positions="learned", max_length=6)
    source, is_real = random_sources(3, [4])
    compare_steppers([CachedStepper(model, source, is_real), UncachedStepper(model, source, is_real)], 1, 3, n_steps=6)


@torch.inference_mode()
def test_gates_and_taps_apply_to_steppers() -> None:
    model = random_model(4)
    source, is_real = random_sources(4, [4, 4])
    gates = {"decoder.0.cross": torch.zeros(4, dtype=torch.float64)}
    begin = torch.full((2,), BOS)
    whole = CachedStepper(model, source, is_real).step(begin)
    with gated(model, gates):
        ablated = [kind(model, source, is_real).step(begin) for kind in (CachedStepper, UncachedStepper)]
    assert torch.allclose(*ablated)
    assert not torch.allclose(whole, ablated[0])
    tap = Tap()
    CachedStepper(model, source, is_real, tap=tap).step(begin)
    assert tap["decoder.1.cross.weights"].shape == (2, 4, 1, 4)
