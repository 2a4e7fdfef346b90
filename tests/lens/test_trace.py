import doctest
from importlib import import_module

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError
from manyheads.lens import Head, Trace, heads_of, trace

from lens.makers import ANSWER, BRIEF, KINDS, TEXTS, WRITERS, task_of

ENCODERS = [kind for kind in KINDS if kind not in WRITERS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_of_every_task_is_traced(kind: str) -> None:
    task = task_of(kind)
    found = trace(task, TEXTS[kind], search=BRIEF)
    assert found.heads == heads_of(task.model)
    for name, one in found.attentions.items():
        assert one.queries == (found.model_input.source if name.startswith("encoder") else found.model_input.target)
        is_source = name.startswith("encoder") or name.endswith("cross")
        assert one.keys == (found.model_input.source if is_source else found.model_input.target)
        heads, width = task.model.settings.heads, task.model.settings.width
        n_queries, n_keys = len(one.queries), len(one.keys)
        assert one.q.shape == (heads.n_heads, n_queries, heads.head_width)
        assert one.k.shape == (heads.n_heads, n_keys, heads.head_width)
        assert one.v.shape == (heads.n_heads, n_keys, heads.value_width)
        assert one.weights.shape == one.scores.shape == (heads.n_heads, n_queries, n_keys)
        assert one.heads.shape == (heads.n_heads, n_queries, heads.value_width)
        assert one.head_output(1).shape == one.output.shape == (n_queries, width)
        assert one.norms(1).shape == (n_queries, n_keys)


def test_the_example_of_the_module_runs(untrained: Bundle) -> None:
    outcome = doctest.testmod(import_module("manyheads.lens.trace"), extraglobs={"bundle": untrained})
    assert outcome.attempted > 5
    assert outcome.failed == 0


@pytest.mark.parametrize("kind", WRITERS)
def test_without_an_answer_the_model_writes_greedily(kind: str) -> None:
    task = task_of(kind, max_length=8)
    found = trace(task, "no")
    assert found.model_input.answer == task.predict(["no"], DecodeSettings(method="greedy", max_new_tokens=6))[0].answer


def test_a_language_model_that_is_given_nothing_to_write_only_reads() -> None:
    found = trace(task_of("language"), "the dog ran", "")
    assert [token.text for token in found.model_input.target] == ["<s>", "▁the", "▁dog", "▁ran"]
    assert [token.text for token in found.model_input.written] == ["▁the", "▁dog", "▁ran"]
    silent = trace(task_of("language"), "the dog ran", search=DecodeSettings(max_new_tokens=0))
    assert silent.model_input.target == found.model_input.target
    assert torch.equal(silent.weights("decoder.1.self/0"), found.weights("decoder.1.self/0"))


def test_tracing_leaves_the_model_as_it_was() -> None:
    task = task_of("seq2seq")
    task.model.train()
    try:
        trace(task, "no", "cat")
        assert task.model.training
    finally:
        task.model.eval()
    assert not any(module._forward_hooks for module in task.model.modules())


def test_a_head_is_asked_for_by_name() -> None:
    found = trace(task_of("seq2seq"), "no", "cat")
    assert torch.equal(found.weights("decoder.1.cross/3"), found["decoder.1.cross"].weights[3])
    assert torch.equal(found.norms(Head("encoder.0.self", 2)), found["encoder.0.self"].norms(2))


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("encoder.0.cross/0", "There is no attention encoder.0.cross. Did you mean decoder.0.cross?"),
        ("encoder.0.self/4", "There is no head encoder.0.self/4: encoder.0.self has heads 0 to 3."),
        ("zero", "'zero' is not a head. Write attention/number, like encoder.0.self/2."),
    ],
)
def test_a_head_that_does_not_exist(head: str, told: str) -> None:
    found = trace(task_of("seq2seq"), "no", "cat")
    for ask in (found.weights, found.norms):
        with pytest.raises(LensError) as error:
            ask(head)
        assert str(error.value) == told


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_text_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match=r"^The text is empty: there is nothing to read\. Give "):
        trace(task_of(kind), "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_longer_than_the_model_reads_is_refused(kind: str) -> None:
    told = r"^The text has 100 tokens; this model reads at most 47 at once\. Give a part of it\.$"
    with pytest.raises(DataError, match=told):
        trace(task_of(kind), "cat " * 99 + "cat")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("seq2seq", "The answer has 60 tokens; this model reads at most 47 at once. Give a part of it."),
        ("language", "The text with its answer has 61 tokens; this model reads at most 47 at once. Give a part of it."),
    ],
)
def test_an_answer_longer_than_the_model_reads_is_refused(kind: str, told: str) -> None:
    with pytest.raises(DataError) as error:
        trace(task_of(kind), "no", " cat" * 60 if kind == "language" else ("cat " * 60).strip())
    assert str(error.value) == told


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_answer_for_a_model_without_decoder_is_refused(kind: str) -> None:
    with pytest.raises(DataError) as error:
        trace(task_of(kind), TEXTS[kind], ANSWER)
    told = "This model has no decoder: it reads a text, and writes no answer. Leave the answer out."
    assert str(error.value) == told


def test_a_norm_that_changes_what_was_written_has_no_trace_of_writing() -> None:
    task = task_of("language", norm="sample")
    with pytest.raises(LensError, match=r'model\.norm = "sample" .* Give an answer to trace instead'):
        trace(task, "no", search=BRIEF)
    found = trace(task, "no", " cat")
    assert isinstance(found, Trace)
    assert found.difference <= 1e-5
