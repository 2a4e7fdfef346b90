"""A trace equals the fused path: every head, for every model, in forward passes and in searches."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens import AttentionTrace, Trace, trace, trace_input
from manyheads.lens.traces.recorder import Recorder
from manyheads.lens.traces.tracing import run_fused
from manyheads.model import MultiHeadAttention, Transformer
from manyheads.model.masks import View
from manyheads.model.score_forms import DotForm
from manyheads.tasks import GenerativeTask, ModelInput, Task
from manyheads.text.tokens.tokenizer import EOS, PAD, Token

from lens.makers import ANSWER, MODELS, TEXTS, WRITERS, task_of
from model.makers import relative_difference

BOUND = 1e-5
KINDS = ("seq2seq", "language", "masked")  # one for each shape of model


def traced(kind: str, model: str) -> tuple[Task, Trace]:
    task = task_of(kind, model)
    return task, trace(task, TEXTS[kind], ANSWER if kind in WRITERS else None)


def compute_padded(model: Transformer, model_input: ModelInput) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the input and output of each W^O, for this text padded in a batch with a longer one."""
    ends: dict[str, tuple[Tensor, Tensor]] = {}

    def batch(tokens: tuple[Token, ...]) -> Tensor | None:
        ids = [token.id for token in tokens]
        return torch.tensor([[*ids[::-1], 7, 8, 9], [*ids, PAD, PAD, PAD]]) if ids else None

    def keep(attention: MultiHeadAttention) -> None:
        def hook(module: torch.nn.Module, args: tuple[Tensor], output: Tensor) -> None:
            ends[attention.name] = args[0][1], output[1]

        handles.append(attention.output.register_forward_hook(hook))

    handles: list[torch.utils.hooks.RemovableHandle] = []
    for attention in model.attentions():
        keep(attention)
    source, target = batch(model_input.source), batch(model_input.target)
    with torch.no_grad():
        model.hidden(
            source,
            target,
            source_is_real=None if source is None else source != PAD,
            target_is_real=None if target is None else target != PAD,
        )
    for handle in handles:
        handle.remove()
    return ends


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_head_equals_the_fused_path_under_padding(kind: str, model: str) -> None:
    task, recorded = traced(kind, model)
    fused = compute_padded(task.model, recorded.model_input)
    assert list(recorded.attentions) == list(fused)
    for name, one in recorded.attentions.items():
        joined, output = (value[: len(one.queries)] for value in fused[name])
        heads = joined.unflatten(-1, (one.n_heads, -1)).transpose(0, 1)
        assert relative_difference(one.weights @ one.v, heads) <= BOUND
        assert relative_difference(one.heads, heads) <= BOUND
        assert relative_difference(one.output, output) <= BOUND
        assert relative_difference(one.sum_of_heads(), output) <= BOUND
    assert recorded.difference <= BOUND


def kernel_weights(attention: MultiHeadAttention, one: AttentionTrace) -> Tensor:
    """Return the weights inside torch's fused kernel: its output for values that are the identity."""
    n_queries, n_keys = len(one.queries), len(one.keys)
    is_real = torch.ones(1, n_keys, dtype=torch.bool)
    positions = torch.arange(n_queries)[None]
    if one.name.startswith("encoder"):
        view = View.bidirectional(is_real)
    elif one.name.endswith("cross"):
        view = View.cross(positions, is_real)
    else:
        view = View.causal(is_real, positions, n_queries)
    bias = attention.positions.bias(view.query_positions, view.key_positions)
    eye = torch.eye(n_keys).expand(1, one.n_heads, -1, -1)
    assert isinstance(attention.scores, DotForm)
    with torch.inference_mode():
        return attention._attend_fused(attention.scores, one.q[None], one.k[None], eye, view, bias)[0]


@pytest.mark.parametrize("model", [name for name in MODELS if not name.startswith(("additive", "dense", "random"))])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_those_of_the_fused_kernel(kind: str, model: str) -> None:
    task, recorded = traced(kind, model)
    for attention in task.model.attentions():
        one = recorded[attention.name]
        difference = (one.weights - kernel_weights(attention, one)).abs().max()
        assert difference <= BOUND


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_sum_to_one_and_decoders_are_causal(kind: str, model: str) -> None:
    _, recorded = traced(kind, model)
    for name, one in recorded.attentions.items():
        assert (one.weights >= 0).all()
        assert (one.weights.sum(-1) - 1.0).abs().max() <= BOUND
        assert torch.equal(one.scores.softmax(-1), one.weights)
        is_ahead = torch.ones(len(one.queries), len(one.keys), dtype=torch.bool).triu(1)
        if name.startswith("decoder") and name.endswith("self"):
            assert (one.weights[:, is_ahead] == 0).all()
            assert one.scores[:, is_ahead].isneginf().all()
        else:
            assert one.scores.isfinite().all()


@pytest.mark.parametrize("model", MODELS)
def test_norms_are_those_of_the_contributed_vectors(model: str) -> None:
    task, recorded = traced("seq2seq", model)
    attentions = {attention.name: attention for attention in task.model.attentions()}
    for name, one in recorded.attentions.items():
        # The vectors α f(x) of every pair and head add up to the output; f(x) goes through the model's own W^O.
        output = attentions[name].output
        vectors = torch.zeros(one.n_heads, len(one.queries), len(one.keys), one.output.size(-1))
        bias = torch.zeros_like(one.output[0]) if one.bias is None else one.bias
        for head in range(one.n_heads):
            single = torch.zeros(len(one.keys), one.n_heads, one.v.size(-1))
            single[:, head] = one.v[head]
            with torch.no_grad():
                vectors[head] = one.weights[head][..., None] * (output(single.flatten(1)) - bias)
            assert relative_difference(one.norms(head), vectors[head].norm(dim=-1)) <= BOUND
            assert relative_difference(one.head_output(head), vectors[head].sum(1)) <= BOUND
        assert relative_difference(vectors.sum((0, 2)) + bias, one.output) <= BOUND


def assert_same(recorded: Trace, expected: Trace) -> None:
    assert list(recorded.attentions) == list(expected.attentions)
    for name, one in recorded.attentions.items():
        for what in ("q", "k", "v", "weights", "heads", "output"):
            ours, theirs = getattr(one, what), getattr(expected[name], what)
            assert ours.shape == theirs.shape
            if ours.numel():
                assert relative_difference(ours, theirs) <= BOUND
        is_visible = expected[name].scores.isfinite()
        assert torch.equal(one.scores.isfinite(), is_visible)
        assert relative_difference(one.scores[is_visible], expected[name].scores[is_visible]) <= BOUND
    for stack, hidden in recorded.hidden.items():
        assert relative_difference(hidden, expected.hidden[stack]) <= BOUND


SEARCHES = st.one_of(
    st.fixed_dictionaries({"method": st.just("greedy")}),
    st.fixed_dictionaries(
        {
            "method": st.just("beam"),
            "beam": st.integers(3, 5),
            "n_best": st.integers(1, 3),
            "length_penalty": st.sampled_from([0.0, 0.6, 2.0]),
        }
    ),
    st.fixed_dictionaries(
        {
            "method": st.just("sample"),
            "n_best": st.integers(1, 3),
            "temperature": st.sampled_from([0.7, 1.5]),
            "seed": st.integers(0, 99),
        }
    ),
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", WRITERS)
@settings(max_examples=3, deadline=None)
@given(search=SEARCHES, text=st.sampled_from(["no", "the cat", "cat, dog"]), max_new_tokens=st.integers(1, 4))
def test_trace_of_a_search_equals_a_forward_pass_over_its_answer(
    kind: str, model: str, search: dict[str, Any], text: str, max_new_tokens: int
) -> None:
    task, decode = task_of(kind, model), DecodeSettings(**search, max_new_tokens=max_new_tokens)
    recorded = trace(task, text, search=decode)
    assert_same(recorded, trace_input(task.model, recorded.model_input))
    assert recorded.model_input.answer == task.predict([text], decode)[0].answer


@pytest.mark.parametrize("kind", WRITERS)
def test_last_token_of_finished_and_unfinished_answers(kind: str) -> None:
    task = task_of(kind)
    assert isinstance(task, GenerativeTask)
    prompt = task.model_input("no")
    outcomes = set()
    for seed in range(2000):  # few answers of an untrained model are finished
        best, model_input = task.generate_one(prompt, DecodeSettings(method="sample", seed=seed, max_new_tokens=2))
        assert model_input.last is not None
        ids = [token.id for token in model_input.target[len(prompt.target) :]]
        assert tuple(ids if best.finished else [*ids, model_input.last.id]) == best.ids
        assert (model_input.last.id == EOS) == best.finished
        outcomes.add(best.finished)
        if seed >= 8 and len(outcomes) == 2:
            break
    assert outcomes == {True, False}


@pytest.mark.parametrize("n_best", [1, 5])
def test_finished_beam_is_traced_although_the_search_continued(n_best: int) -> None:
    task = task_of("seq2seq")
    recorder = Recorder()
    best, model_input = task.generate_one(
        task.model_input("no"), DecodeSettings(beam=5, n_best=n_best, max_new_tokens=5), recorder
    )
    assert best.finished
    assert len(model_input.target) < recorder.n_calls("decoder")
    recorded = trace(task, "no", search=DecodeSettings(beam=5, n_best=n_best, max_new_tokens=5))
    assert_same(recorded, trace_input(task.model, recorded.model_input))


def test_stop_string_ends_the_trace() -> None:
    task = task_of("language")
    assert isinstance(task, GenerativeTask)
    prompt, sample = task.model_input("the cat"), DecodeSettings(method="sample", max_new_tokens=4)
    seed = next(
        seed for seed in range(30) if len(task.generate_one(prompt, replace(sample, seed=seed))[1].answer.strip()) > 3
    )
    free = task.generate_one(prompt, replace(sample, seed=seed))[1]
    stop = free.answer.strip()[1:3]
    recorded = trace(task, "the cat", search=replace(sample, seed=seed, stop=(stop,)))
    assert stop not in recorded.model_input.answer
    assert recorded.model_input.last is not None
    assert recorded.model_input.last.id != EOS
    n_written = len(recorded.model_input.written)
    assert [token.id for token in recorded.model_input.written] == [token.id for token in free.written[:n_written]]
    assert_same(recorded, trace_input(task.model, recorded.model_input))


def test_trace_that_differs_from_the_model_is_refused() -> None:
    task, recorded = traced("seq2seq", "2017")
    fused = run_fused(task.model, recorded.model_input)
    assert recorded.check(fused) <= BOUND
    name = "decoder.1.cross"
    one = recorded[name]
    for wrong in (
        replace(one, weights=one.weights.flip(-1)),
        replace(one, heads=one.heads + 1e-3),
        replace(one, output=one.output + 1e-3),
        replace(one, matrices=one.matrices.flip(0)),
        replace(one, weights=one.weights * torch.nan),
    ):
        with pytest.raises(LensError, match=f"The trace is not what the model computes: {name}"):
            replace(recorded, attentions={**recorded.attentions, name: wrong}).check(fused)
    with pytest.raises(LensError, match="decoder differ"):
        replace(recorded, hidden={**recorded.hidden, "decoder": recorded.hidden["decoder"] * 1.01}).check(fused)
