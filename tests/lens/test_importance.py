import numpy as np
import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.compress.head_removal import remove_heads
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError
from manyheads.lens import Head, find_heads, heads_of
from manyheads.lens.importance import (
    Ablation,
    ablate,
    gradient_importance,
    rank_agreement,
    single_heads,
    sum_of_single,
    whole_attentions,
)
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.metrics import Change
from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Tag,
    TagSettings,
)

from tasks.small import make_task

GREEDY = DecodeSettings(method="greedy", max_new_tokens=3)
ROWS = list(corpora.pairs("en", "zh", "train", 6, 1))


def test_gradient_importance_is_the_mean_absolute_gradient_of_examples(untrained: Bundle) -> None:
    task = remove_heads(untrained.task, [])
    task.module.double()
    head, step = Head("decoder.0.cross", 2), 1e-4
    slopes, n_tokens = [], 0
    for row in ROWS:
        with open_sample(task, [row], GREEDY) as single:
            losses = []
            for change in (step, -step):
                gate = torch.ones(4, dtype=torch.float64)
                gate[head.number] += change
                losses.append(single.loss(task, {head.attention: gate}))
            n = single.batches[0].n_tokens
        slopes.append(n * (losses[0] - losses[1]) / (2 * step))
        n_tokens += n
    with open_sample(task, ROWS, GREEDY) as sample:
        importances = {one.head: one for one in gradient_importance(task, sample)}
    assert min(slopes) < 0 < max(slopes)  # so that the mean of |gradient| differs from |mean gradient|
    assert importances[head].raw == pytest.approx(sum(map(abs, slopes)) / n_tokens, rel=1e-3)
    assert importances[head].n_examples == len(ROWS)


def test_gradient_importance_is_normalized_per_attention(untrained: Bundle) -> None:
    with open_sample(untrained.task, ROWS, GREEDY) as sample:
        importances = gradient_importance(untrained.task, sample)
    assert [one.head for one in importances] == heads_of(untrained.task.model)
    for attention in untrained.task.model.attentions():
        values = [one.value for one in importances if one.head.attention == attention.name]
        assert np.linalg.norm(values) == pytest.approx(1.0)
    assert all(one.low <= one.value <= one.high and one.low < one.high for one in importances)


@pytest.mark.parametrize(
    ("kind", "settings", "shape"),
    [
        (Classify, ClassifySettings(consistency=1.0), "encoder"),
        (Tag, TagSettings(consistency=1.0), "encoder"),
        (Masked, MaskedSettings(), "encoder"),
        (Language, LanguageSettings(), "decoder"),
    ],
)
def test_importance_for_every_task(kind, settings, shape) -> None:
    rows = list(kind.builtin(settings, ["en"], "train", 12, 1))
    task = make_task(kind, settings, rows, shape=shape, n_decoder_layers=1)
    with open_sample(task, rows, GREEDY) as sample:
        importances = gradient_importance(task, sample)
        changes = ablate(task, sample, [*single_heads(task), *whole_attentions(task)])
        if kind in (Classify, Tag):
            assert {one.n_examples for one in importances} == {12}  # R-Drop's second pass is not counted
        assert sample.loss(task) > 0
    assert len(importances) == 2
    assert [len(one.heads) for one in changes] == [1, 1, 2]


def test_ablation_equals_removal(untrained: Bundle) -> None:
    task = remove_heads(untrained.task, [])
    with torch.no_grad():
        task.model.encoder[0].attention.output.weight[:, 4:8] = 0.0  # head 1 has no effect
    with open_sample(task, ROWS, GREEDY) as sample:
        no_effect, joint = ablate(task, sample, [["encoder.0.self/1"], ["decoder.0.cross", "encoder.0.self"]])
        smaller = remove_heads(task, joint.heads)
        assert joint.change.value == pytest.approx(sample.tally(smaller).value)
    assert no_effect.change.difference == no_effect.change.low == no_effect.change.high == 0.0
    assert no_effect.change.n_texts == len(ROWS)
    assert len(joint.heads) == 8


def test_sum_of_single_costs(untrained: Bundle) -> None:
    heads = find_heads(untrained.task.model, ["encoder.0.self/0", "encoder.0.self/1"])
    singles = [Ablation((head,), Change("BLEU", 29.0, 30.0, -1.0, -2.0, 0.0, 9)) for head in heads]
    joint = Ablation(tuple(heads), Change("BLEU", 20.0, 30.0, -10.0, -12.0, -8.0, 9))
    assert sum_of_single(joint, singles) == 2.0


def test_rank_agreement() -> None:
    assert rank_agreement([1, 2, 3, 4], [10, 20, 30, 99]).value == pytest.approx(1.0)
    assert rank_agreement([1, 2, 3, 4], [4, 3, 2, -9]).value == pytest.approx(-1.0)
    assert rank_agreement([1, 2, 2, 3], [1, 2, 3, 4]).value == pytest.approx(0.9486833)  # with ties, by hand
    assert rank_agreement([1, 1, 1], [1, 2, 3]).value == 0.0
    rng = np.random.default_rng(0)
    values = rng.normal(size=48)
    agreement = rank_agreement(values, values + rng.normal(size=48))
    assert 0.3 < agreement.low < agreement.value < agreement.high < 0.95
    with pytest.raises(ValueError, match="at least three heads"):
        rank_agreement([1, 2], [1, 2])


def test_unusable_samples_are_refused(untrained: Bundle, tmp_path) -> None:
    assert len(valid_rows(untrained, 7)) == 7
    with pytest.raises(LensError, match=r"A sample of 1 rows is too small\. Take at least 2"):
        valid_rows(untrained, 1)
    data = {"data": {"train": ["gone.en", "gone.zh"], "valid": ["gone.en", "gone.zh"]}}
    gone = Bundle(untrained.task, untrained.decode, {**untrained.recipe, **data})
    with pytest.raises(DataError, match=r"gone\.en.* give rows with --valid\."):
        valid_rows(gone, 7)
