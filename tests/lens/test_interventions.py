"""Ablating heads of one text: batched and single ablations agree, and the model is left as it was."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.errors import LensError
from manyheads.lens import Head, ablation_gates, heads_of
from manyheads.lens.aligner import choose_aligner
from manyheads.lens.interventions import ablate_text, answer_text, contrast_heads, text_importance, write_answer
from manyheads.model import gated
from manyheads.tasks import Task

from lens.answering import BEAM, CASES, GREEDY, READING, WRITING, answering
from lens.makers import MODELS, task_of

ANSWERED = [*WRITING, *READING]


def is_untouched(task: Task) -> bool:
    return not task.model.is_gated and not task.module.training


@pytest.mark.parametrize("case", ANSWERED)
def test_ablation_without_heads_is_the_original(case: str) -> None:
    task = answering(case)
    model_input = write_answer(task, CASES[case], BEAM)
    output = task.lens_output(model_input)
    ablated = ablate_text(task, model_input, [], BEAM)
    assert ablated.free == output
    assert ablated.forced == (output if case in WRITING else None)
    assert ablated.log_probability_change == 0.0


@pytest.mark.parametrize("case", ANSWERED)
def test_ablated_answer_is_that_of_predict_with_gates(case: str) -> None:
    task = answering(case)
    model_input = write_answer(task, CASES[case], GREEDY)
    heads = heads_of(task.model)[::2]
    ablated = ablate_text(task, model_input, map(str, heads), GREEDY)
    with gated(task.model, ablation_gates(task.model, heads)):
        (expected,) = task.predict([model_input.text], GREEDY)
    answer = expected.line() if case.startswith("tag") else expected.answer
    assert ablated.free.answer == answer
    assert ablated.free != task.lens_output(model_input)
    assert is_untouched(task)


@pytest.mark.parametrize("case", WRITING)
def test_forced_probabilities_are_of_the_original_answer(case: str) -> None:
    task = answering(case)
    model_input = write_answer(task, CASES[case], GREEDY)
    heads = [heads_of(task.model)[0], heads_of(task.model)[-1]]
    ablated = ablate_text(task, model_input, heads, GREEDY)
    forced = ablated.forced
    assert forced is not None
    original = task.lens_output(model_input)
    assert [token.text for token in forced.tokens] == [token.text for token in original.tokens]
    for before, after in zip(original.tokens, forced.tokens, strict=True):  # each has its probability without the heads
        assert {choice.id for choice in before.alternatives} <= {choice.id for choice in after.alternatives}
    change = sum(torch.tensor(token.probability).log() for token in forced.tokens) - sum(
        torch.tensor(token.probability).log() for token in original.tokens
    )
    assert ablated.log_probability_change == pytest.approx(float(change), abs=1e-4)


def test_ablation_is_json() -> None:
    task = answering("seq2seq")
    ablated = ablate_text(task, write_answer(task, "the cat", GREEDY), ["decoder.0.cross"], GREEDY)
    table = json.loads(json.dumps(ablated.to_json()))
    assert list(table) == ["free", "forced", "log_probability_change"]
    assert table["forced"]["tokens"]


def test_ablation_of_a_text_without_answer() -> None:
    task = answering("masked, without masks")
    ablated = ablate_text(task, task.model_input("the cat sat"), ["encoder.0.self/1"], GREEDY)
    assert ablated.log_probability_change is None
    with pytest.raises(LensError, match=r"^There is no answer whose probability could change\. Give an answer, or"):
        text_importance(task, task.model_input("the cat sat"))


def test_the_model_is_left_as_it_was_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    task = answering("seq2seq")
    model_input = write_answer(task, "the cat", GREEDY)
    weights = deepcopy(task.module.state_dict())
    gate = torch.tensor([0.5, 1.0, 1.0, 1.0])

    def fail(*args: object, **kwargs: object) -> None:
        assert task.model.is_gated
        raise RuntimeError("stop")

    with gated(task.model, {"encoder.0.self": gate}):
        with monkeypatch.context() as patch:
            patch.setattr("manyheads.lens.interventions.write_answer", fail)
            with pytest.raises(RuntimeError, match="stop"):
                ablate_text(task, model_input, ["encoder.0.self/1", "decoder.1.cross"], GREEDY)
        outer = {attention.name: attention.gate for attention in task.model.attentions()}
        assert outer.pop("encoder.0.self") is gate
        assert set(outer.values()) == {None}
    for function in (lambda: text_importance(task, model_input), lambda: contrast_heads(task, model_input, 0, 7)):
        with monkeypatch.context() as patch:
            patch.setattr("manyheads.tasks.lens_output.WriterProbe._hidden", fail_when_gated(task))
            with pytest.raises(RuntimeError, match="stop"):
                function()
        assert is_untouched(task)
    assert all(torch.equal(weights[name], value) for name, value in task.module.state_dict().items())


def fail_when_gated(task: Task):
    from manyheads.tasks.lens_output import WriterProbe

    original = WriterProbe._hidden

    def hidden(self: WriterProbe, n_rows: int) -> torch.Tensor:
        if task.model.is_gated:
            raise RuntimeError("stop")
        return original(self, n_rows)

    return hidden


@pytest.mark.parametrize("case", ANSWERED)
def test_importance_equals_single_ablations(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batched with one row of gates per head, in several parts."""
    monkeypatch.setattr("manyheads.lens.interventions._BATCH_POSITIONS", 40)
    task = answering(case)
    model_input = write_answer(task, CASES[case], GREEDY)
    shares: list[float] = []
    batched = text_importance(task, model_input, shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert [head for head, _ in batched] == heads_of(task.model)
    probe = task.lens_probe(model_input)
    (whole,) = probe.log_probabilities(1).tolist()
    for head, change in batched:
        with gated(task.model, ablation_gates(task.model, [head])):
            (without,) = probe.log_probabilities(1).tolist()
        assert change == pytest.approx(whole - without, abs=1e-5)
    head, change = batched[-1]
    assert ablate_text(task, model_input, [head], GREEDY).log_probability_change == pytest.approx(-change, abs=1e-5)
    assert max(abs(change) for _, change in batched) > 1e-4
    assert is_untouched(task)


@pytest.mark.parametrize("model", MODELS)
def test_importance_for_every_model(model: str) -> None:
    task = task_of("seq2seq", model)
    model_input = task.model_input("the cat", "the mat")
    for head, change in text_importance(task, model_input)[::7]:
        single = ablate_text(task, model_input, [head], GREEDY).log_probability_change
        assert single == pytest.approx(-change, rel=1e-5, abs=1e-5)


def test_a_head_without_output_has_no_importance() -> None:
    task = deepcopy(answering("seq2seq"))
    attention = task.model.attentions()[0]
    with torch.no_grad():
        attention.output.weight[:, attention.heads.value_width : 2 * attention.heads.value_width] = 0.0
    changes = dict(text_importance(task, task.model_input("the cat", "the mat")))
    assert changes[Head(attention.name, 1)] == pytest.approx(0.0, abs=1e-6)


CONTRASTS = [
    ("seq2seq", 1, 70),
    ("language", 2, 70),
    ("masked", 2, 70),
    ("classify", -1, "good"),
    ("classify, several labels", -1, "color"),
    ("tag", -1, "ask"),
    ("tag", 1, "S-LOC"),
]


@pytest.mark.parametrize(("case", "position", "instead"), CONTRASTS)
def test_contrast_is_the_loss_of_the_logit_difference(case: str, position: int, instead: int | str) -> None:
    task = answering(case)
    model_input = write_answer(task, CASES[case], GREEDY)
    contrast = contrast_heads(task, model_input, position, instead)
    probe = task.lens_probe(model_input)
    chosen, other = probe.alternatives(position, instead).columns
    assert [head for head, _ in contrast.heads] == heads_of(task.model)
    for head, effect in contrast.heads[::2]:
        with gated(task.model, ablation_gates(task.model, [head])):
            (row,) = probe.logits(position, 1)
        assert contrast.difference - effect == pytest.approx(float(row[chosen] - row[other]), abs=1e-5)
    assert max(abs(effect) for _, effect in contrast.heads) > 1e-3
    table = json.loads(json.dumps(contrast.to_json()))
    assert list(table) == ["chosen", "instead", "difference", "heads"]
    assert table["heads"][0]["head"] == str(contrast.heads[0][0])


def test_contrast_of_tokens_is_that_of_their_log_probabilities() -> None:
    task = answering("seq2seq")
    model_input = task.model_input("the cat", "the mat")
    output = task.lens_output(model_input)
    token = output.tokens[0]
    other = token.alternatives[1]
    contrast = contrast_heads(task, model_input, 0, other.id)
    expected = torch.tensor(token.probability).log() - torch.tensor(other.probability).log()
    assert contrast.difference == pytest.approx(float(expected), abs=1e-4)
    assert (contrast.chosen, contrast.instead) == (" the", other.text)


def test_contrast_of_labels_is_that_of_calibrated_logits() -> None:
    task = answering("classify")
    model_input = task.model_input(CASES["classify"])
    best, other = task.lens_output(model_input).labels
    contrast = contrast_heads(task, model_input, -1, other.name)
    assert contrast.chosen == best.name
    (logits,) = task.logits([model_input.text]) / task.calibration.temperature
    assert contrast.difference == pytest.approx(float(logits.amax() - logits.amin()), abs=1e-5)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("encoder.9.self/0", r"^There is no head encoder\.9\.self/0\. "),
        ("encoder.0.self/9", r"^There is no head encoder\.0\.self/9: encoder\.0\.self has heads 0 to 3\.$"),
        ("first", r"^'first' is not a head\. Write attention/number, like encoder\.0\.self/2\.$"),
    ],
)
def test_unknown_head_is_refused(head: str, message: str) -> None:
    task = answering("seq2seq")
    with pytest.raises(LensError, match=message):
        ablate_text(task, task.model_input("the cat", "the mat"), [head], GREEDY)


def test_alignment_is_as_the_remaining_heads_see_it(untrained: Bundle) -> None:
    aligner = choose_aligner(untrained, "bundle")
    text = "The cat sees the dog."
    model_input = answer_text(untrained.task, text, GREEDY, "猫看见狗。").model_input
    original = aligner.align_output(text, untrained.task.lens_output(model_input))
    unchanged = ablate_text(untrained.task, model_input, [], GREEDY, aligner)
    assert unchanged.forced == original
    ablated = ablate_text(untrained.task, model_input, ["encoder.0.self", "decoder.0.self"], GREEDY, aligner)
    assert ablated.forced is not None and replace(ablated.forced, alignment=()) != replace(original, alignment=())
