"""Ablated log-probability: all heads at once agree with one head at a time, whatever replaces the head."""

from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.errors import DataError
from manyheads.lens import Head, heads_of
from manyheads.lens.ablated_probability import (
    WAYS,
    affordable,
    answered_texts,
    losses_of_texts,
    lost_probabilities,
)
from manyheads.model import Tap
from manyheads.tasks import Task

from lens.answering import answering

ROWS = {
    "seq2seq": [("the cat", "the mat"), ("the dog sat on the mat", "the cat sat"), ("the mat", "the dog and the cat")],
    "language": [("the cat sat on the mat",), ("the dog",), ("the cat and the dog sat",)],
    "masked": [("the cat sat on the mat",), ("the dog sat",), ("the cat and the dog sat",)],
    "classify": [("our hotel was awful", "bad"), ("lovely", "good"), ("the room was lovely and clean", "good")],
    "tag": [("Ada lives in New York .", "O O O O O O"), ("Bob", "O"), ("in Paris", "O O")],
}


@contextmanager
def replaced(task: Task, head: Head, output):
    """Replace the input of W^O from one head, position by position: `output` is Q × E, or 0."""
    (attention,) = [each for each in task.model.attentions() if each.name == head.attention]
    width = attention.heads.value_width

    def replace_slice(module, args):
        joined = args[0].clone()
        at = slice(head.number * width, (head.number + 1) * width)
        joined[..., at] = output if isinstance(output, float) else output[: joined.size(1)]
        return (joined,)

    handle = attention.output.register_forward_pre_hook(replace_slice)
    try:
        yield
    finally:
        handle.remove()


def outputs_of(task: Task, text) -> dict[str, torch.Tensor]:
    """The outputs of heads at one text, by a tap: H × Q × E."""
    tap = Tap()
    ids = [
        torch.tensor([[token.id for token in tokens]]) if tokens else None
        for tokens in (text.model_input.source, text.model_input.target)
    ]
    with torch.no_grad():
        task.model.hidden(*ids, tap=tap)
    return {attention.name: tap[f"{attention.name}.heads"][0] for attention in task.model.attentions()}


@pytest.mark.parametrize("case", ROWS)
def test_all_heads_at_once_equal_one_head_at_a_time(case: str) -> None:
    task = answering(case)
    texts = answered_texts(task, ROWS[case])
    assert len(texts) == len(ROWS[case])
    done: list[int] = []
    losses = losses_of_texts(task, texts, progress=done.append)
    assert len(done) == 3 * len(texts)
    outputs = [outputs_of(task, text) for text in texts]
    n_positions = max(each.size(1) for one in outputs for each in one.values()) + 9
    found_donors = set()
    for column, head in enumerate(heads_of(task.model)):
        of_head = [one[head.attention][head.number] for one in outputs]
        mean = torch.cat(of_head).mean(0).expand(n_positions, -1)
        longer = [torch.cat([one, one[-1:].expand(n_positions, -1)]) for one in of_head]
        for number, text in enumerate(texts):
            (whole,) = text.probe.log_probabilities(1).tolist()

            def loss(output, head=head, text=text, whole=whole) -> float:
                with replaced(task, head, output):
                    return whole - float(text.probe.log_probabilities(1)[0])

            assert losses["zero"][number, column] == pytest.approx(loss(0.0), abs=2e-5)
            assert losses["mean"][number, column] == pytest.approx(loss(mean), abs=2e-5)
            donors = [other for other in range(len(texts)) if other != number]
            close = [other for other in donors if abs(losses["resample"][number, column] - loss(longer[other])) < 2e-5]
            assert close, (head, number)
            if len(close) == 1:
                found_donors.add((number, close[0]))
    # Each text has one donor for all heads, and each is a donor once. Donors that begin alike cannot be told apart.
    assert len(found_donors) == len({number for number, _ in found_donors}) == len({donor for _, donor in found_donors})
    assert len(found_donors) >= 2
    assert max(np.abs(losses[way]).max() for way in WAYS) > 1e-4
    assert not task.model.is_gated


def test_summary_is_the_mean_over_texts_with_an_interval(untrained: Bundle) -> None:
    task, rows = untrained.task, list(corpora.pairs("en", "zh", "train", 12, 1))
    texts = answered_texts(task, rows)
    losses = losses_of_texts(task, texts, ["zero"])
    found = lost_probabilities(task, texts, ["zero"])
    assert list(found) == ["zero"]
    assert [one.head for one in found["zero"]] == heads_of(task.model)
    assert [one.value for one in found["zero"]] == pytest.approx(losses["zero"].mean(0).tolist())
    assert all(one.low < one.value < one.high and one.n_texts == 12 for one in found["zero"])


def test_a_head_that_says_the_same_of_every_text_costs_nothing_by_its_mean(untrained: Bundle) -> None:
    """Values that do not depend on the input: zero ablation changes the answer, mean and resample ablation do not."""
    task = deepcopy(untrained.task)
    attention = task.model.encoder[0].attention
    attention.gate = None
    texts = answered_texts(task, list(corpora.pairs("en", "zh", "train", 4, 1)))
    constant = torch.full((4,), 3.0)

    def fixed_values(module, args, result):
        k, v = result
        v = v.clone()
        v[:, 2] = constant
        return k, v

    project = attention.project.keys_values
    attention.project.keys_values = lambda x: fixed_values(None, (x,), project(x))
    losses = losses_of_texts(task, texts)
    column = heads_of(task.model).index(Head("encoder.0.self", 2))
    assert np.abs(losses["zero"][:, column]).min() > 1e-4
    assert np.abs(losses["mean"][:, column]).max() < 1e-4
    assert np.abs(losses["resample"][:, column]).max() < 1e-4


def test_texts_too_long_are_left_out_and_two_are_needed(untrained: Bundle) -> None:
    long = ("the cat sees the dog " * 30, "猫")
    rows = [long, ("The cat sees the dog.", "猫看见狗。"), ("The dog sleeps.", "狗睡觉。")]
    assert len(answered_texts(untrained.task, [*rows, rows[1]])) == 3
    assert len(answered_texts(untrained.task, [*rows, rows[1]], 2)) == 2
    with pytest.raises(
        DataError, match=r"^1 texts can be measured; at least 2 are needed\. The others are too long\.$"
    ):
        answered_texts(untrained.task, rows[:2])
    with pytest.raises(ValueError, match="Two texts"):
        losses_of_texts(untrained.task, answered_texts(untrained.task, rows)[:1])


def test_a_model_with_many_heads_is_measured_on_fewer_texts() -> None:
    assert affordable(300, 8) == 300
    assert affordable(300, 32) == 100
    assert affordable(300, 10_000) == 20
    assert affordable(7, 10_000) == 7
