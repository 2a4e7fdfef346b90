import doctest
from importlib import import_module

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError
from manyheads.lens import Head, Trace, heads_of, trace

from lens.makers import ANSWER, KINDS, SHORT, TEXTS, WRITERS, task_of

ENCODERS = [kind for kind in KINDS if kind not in WRITERS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_of_every_task_is_traced(kind: str) -> None:
    task = task_of(kind)
    recorded = trace(task, TEXTS[kind], search=SHORT)
    assert recorded.heads == heads_of(task.model)
    for name, one in recorded.attentions.items():
        assert one.queries == (
            recorded.model_input.source if name.startswith("encoder") else recorded.model_input.target
        )
        is_source = name.startswith("encoder") or name.endswith("cross")
        assert one.keys == (recorded.model_input.source if is_source else recorded.model_input.target)
        heads, width = task.model.settings.heads, task.model.settings.width
        n_queries, n_keys = len(one.queries), len(one.keys)
        assert one.q.shape == (heads.n_heads, n_queries, heads.head_width)
        assert one.k.shape == (heads.n_heads, n_keys, heads.head_width)
        assert one.v.shape == (heads.n_heads, n_keys, heads.value_width)
        assert one.weights.shape == one.scores.shape == (heads.n_heads, n_queries, n_keys)
        assert one.heads.shape == (heads.n_heads, n_queries, heads.value_width)
        assert one.head_output(1).shape == one.output.shape == (n_queries, width)
        assert one.norms(1).shape == (n_queries, n_keys)


def test_docstring_example(untrained: Bundle) -> None:
    result = doctest.testmod(import_module("manyheads.lens.traces.tracing"), extraglobs={"bundle": untrained})
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize("kind", WRITERS)
def test_search_is_greedy_by_default(kind: str) -> None:
    task = task_of(kind, max_length=8)
    recorded = trace(task, "no")
    assert (
        recorded.model_input.answer == task.predict(["no"], DecodeSettings(method="greedy", max_new_tokens=6))[0].answer
    )


def test_language_model_with_an_empty_answer_only_reads() -> None:
    recorded = trace(task_of("language"), "the dog ran", "")
    assert [token.text for token in recorded.model_input.target] == ["<s>", "▁the", "▁dog", "▁ran"]
    assert [token.text for token in recorded.model_input.written] == ["▁the", "▁dog", "▁ran"]
    nothing_written = trace(task_of("language"), "the dog ran", search=DecodeSettings(max_new_tokens=0))
    assert nothing_written.model_input.target == recorded.model_input.target
    assert torch.equal(nothing_written.weights("decoder.1.self/0"), recorded.weights("decoder.1.self/0"))


def test_tracing_restores_mode_and_hooks() -> None:
    task = task_of("seq2seq")
    task.model.train()
    try:
        trace(task, "no", "cat")
        assert task.model.training
    finally:
        task.model.eval()
    assert not any(module._forward_hooks for module in task.model.modules())


def test_head_by_name() -> None:
    recorded = trace(task_of("seq2seq"), "no", "cat")
    assert torch.equal(recorded.weights("decoder.1.cross/3"), recorded["decoder.1.cross"].weights[3])
    assert torch.equal(recorded.norms(Head("encoder.0.self", 2)), recorded["encoder.0.self"].norms(2))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("encoder.0.cross/0", "There is no attention encoder.0.cross. Did you mean decoder.0.cross?"),
        ("encoder.0.self/4", "There is no head encoder.0.self/4: encoder.0.self has heads 0 to 3."),
        ("zero", "'zero' is not a head. Write attention/number, like encoder.0.self/2."),
    ],
)
def test_unknown_head_is_refused(head: str, message: str) -> None:
    recorded = trace(task_of("seq2seq"), "no", "cat")
    for method in (recorded.weights, recorded.norms):
        with pytest.raises(LensError) as error:
            method(head)
        assert str(error.value) == message


@pytest.mark.parametrize("kind", KINDS)
def test_empty_text_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match=r"^The text is empty: there is nothing to read\. Give "):
        trace(task_of(kind), "")


@pytest.mark.parametrize("kind", KINDS)
def test_long_text_is_refused(kind: str) -> None:
    message = r"^The text has 100 tokens; this model reads at most 47 at once\. Give a part of it\.$"
    with pytest.raises(DataError, match=message):
        trace(task_of(kind), "cat " * 99 + "cat")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("seq2seq", "The answer has 60 tokens; this model reads at most 47 at once. Give a part of it."),
        ("language", "The text with its answer has 61 tokens; this model reads at most 47 at once. Give a part of it."),
    ],
)
def test_long_answer_is_refused(kind: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        trace(task_of(kind), "no", " cat" * 60 if kind == "language" else ("cat " * 60).strip())
    assert str(error.value) == message


@pytest.mark.parametrize("kind", ENCODERS)
def test_answer_without_a_decoder_is_refused(kind: str) -> None:
    with pytest.raises(DataError) as error:
        trace(task_of(kind), TEXTS[kind], ANSWER)
    message = "This model has no decoder and generates no answer. Leave the answer out."
    assert str(error.value) == message


def test_search_with_sample_norm_has_no_trace() -> None:
    task = task_of("language", norm="sample")
    with pytest.raises(LensError, match=r'model\.norm = "sample" .* Give an answer to trace instead'):
        trace(task, "no", search=SHORT)
    recorded = trace(task, "no", " cat")
    assert isinstance(recorded, Trace)
    assert recorded.difference <= 1e-5
