import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.compress.curve_picture import curve_svg
from manyheads.compress.fine_tuning import FineTuneSettings, open_fine_tuner
from manyheads.compress.hard_concrete import GatedTrainingTask, HardConcreteGates, learn_gates
from manyheads.compress.head_order import count_to_remove, gradient_order, greedy_order
from manyheads.compress.head_removal import remove_heads
from manyheads.compress.pruning import prune, pruning_to_json
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError
from manyheads.lens import Head, heads_of
from manyheads.lens.heads import ablation_gates
from manyheads.lens.row_sample import open_sample
from manyheads.tasks import Task

GREEDY = DecodeSettings(method="greedy", max_new_tokens=3)
ROWS = list(corpora.pairs("en", "zh", "train", 6, 1))


def test_a_share_of_the_heads() -> None:
    assert count_to_remove(48, 0.4) == 20
    assert count_to_remove(48, 0.001) == 1
    assert count_to_remove(12, 11 / 12) == 11
    assert count_to_remove(30, 0.1) == 3


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 40.0, float("nan")])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(LensError, match=r"is no share of the heads\. Give more than 0 and less than 1, like 0\.4"):
        count_to_remove(12, share)


def test_all_of_them_cannot_go() -> None:
    with pytest.raises(LensError, match=r"0\.97 of 12 heads is all of them.*: give at most 0\.916\."):
        count_to_remove(12, 0.97)
    assert count_to_remove(12, 0.916) == 11


def test_greedy_takes_what_costs_least_given_what_is_gone(untrained: Bundle) -> None:
    task = remove_heads(untrained.task, [])
    with torch.no_grad():
        task.model.decoder[0].attention.output.weight[:, :4] = 0.0  # its head 0 says nothing
    with open_sample(task, ROWS, GREEDY) as sample:
        found = greedy_order(task, sample, 5)
        losses = {head: sample.loss(task, ablation_gates(task.model, [head])) for head in heads_of(task.model)}
        assert found[0].loss == pytest.approx(min(losses.values()))
        assert losses[found[0].head] == pytest.approx(found[0].loss)
        for place, removal in enumerate(found):
            gone = ablation_gates(task.model, [one.head for one in found[: place + 1]])
            assert removal.loss == pytest.approx(sample.loss(task, gone), abs=1e-5)
            assert removal.n_left == 12 - place - 1
        assert len({one.head for one in found}) == 5
        idle = gradient_order(task, sample, 1)[0]
    assert idle.head == Head("decoder.0.self", 0)


@pytest.fixture(scope="module")
def folder(untrained: Bundle, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("tuning") / "bundle"
    untrained.save(path)
    return path


def copy(untrained: Bundle) -> Task:
    return remove_heads(untrained.task, [])


def test_gates_are_open_shut_or_between_as_often_as_their_parameter_says(untrained: Bundle) -> None:
    torch.manual_seed(0)
    gates = HardConcreteGates(untrained.task.model, learning_rate=0.001, n_steps=100)
    assert gates.log_alpha.tolist() == pytest.approx([2.0] * 12)
    with torch.no_grad():
        gates.scaled.copy_(torch.linspace(-4.0, 4.0, 12) / gates.scale)
    drawn = torch.stack([torch.cat(list(gates.sample().values())) for _ in range(4000)])
    assert ((drawn >= 0) & (drawn <= 1)).all()
    is_open = (drawn > 0).float().mean(0)
    assert is_open.sum().item() == pytest.approx(gates.n_open().item(), abs=0.1)
    assert is_open[0] < 0.15 < 0.99 < is_open[-1]
    assert (drawn[:, -1] == 1).float().mean() > 0.9


def test_a_gates_gradient_is_that_of_log_alpha(untrained: Bundle) -> None:
    gates = HardConcreteGates(untrained.task.model, learning_rate=0.0001, n_steps=100)
    (3.0 * gates.log_alpha).sum().backward()
    assert gates.scaled.grad is not None
    assert gates.scaled.grad.tolist() == pytest.approx([3.0] * 12)


def test_gates_close_until_as_many_are_open_as_are_wanted(untrained: Bundle, folder) -> None:
    task = copy(untrained)
    before = {name: value.clone() for name, value in task.module.state_dict().items()}
    seen = []
    with open_fine_tuner(untrained, folder, folder) as fine_tuner:
        steps = FineTuneSettings(60, learning_rate=0.001)
        found = learn_gates(task, fine_tuner, 5, steps, seen.append)
        training_task = GatedTrainingTask(
            task.training_task(fine_tuner.training_data), task.model, HardConcreteGates(task.model, 0.001, 60), 7, 60
        )
        assert training_task.describe(training_task.plan(0)[0]) == training_task.training_task.describe(
            training_task.plan(0)[0]
        )
    assert len(seen) == 60
    assert {head for head, _ in found} == set(heads_of(task.model))
    alphas = [alpha for _, alpha in found]
    assert alphas == sorted(alphas)
    assert alphas[4] < 0.0 < alphas[-1]
    assert any(not torch.equal(value, before[name]) for name, value in task.module.state_dict().items())
    assert not task.module.training


def test_fine_tuning_goes_on_by_the_recipe_but_slower(untrained: Bundle, folder) -> None:
    task = remove_heads(untrained.task, ["encoder.0.self/0", "decoder.0.self"])
    losses = []
    with open_fine_tuner(untrained, folder, folder) as fine_tuner:
        schedule = fine_tuner.schedule(FineTuneSettings(50))
        assert (schedule.steps, schedule.schedule, schedule.warmup) == (50, "cosine", 5)
        assert schedule.learning_rate == 0.001  # a fifth of (16 · 2)^-½ would be more
        fine_tuner.fine_tune(task, FineTuneSettings(40, learning_rate=0.005), lambda step: losses.append(step.loss))
    assert sum(losses[-5:]) < sum(losses[:5])
    assert len(heads_of(task.model)) == 12 - 5


def test_training_files_that_are_gone_are_asked_for(untrained: Bundle, folder) -> None:
    data = {"train": ["/gone.en", "/gone.zh"]}
    gone = replace(untrained, recipe={**untrained.recipe, "data": data})
    with (
        pytest.raises(DataError, match=r"/gone\.en.*Fine-tuning needs what .* trained on: give it with --train\."),
        open_fine_tuner(gone, folder, folder),
    ):
        pass


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"learning_rate": -1.0}, {"learning_rate": 2.0}])
def test_tuning_settings_are_checked(wrong) -> None:
    with pytest.raises(LensError, match=r"at least 1 step|Give one like"):
        FineTuneSettings(**wrong)


def test_pruning_from_end_to_end(untrained: Bundle, folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.compress.pruning._TURNS", 1)
    before = {name: value.clone() for name, value in untrained.task.module.state_dict().items()}
    told = []
    with open_sample(untrained.task, ROWS, GREEDY) as sample, open_fine_tuner(untrained, folder, folder) as fine_tuner:
        found = prune(
            untrained.task,
            sample,
            sample,
            0.5,
            "greedy",
            fine_tuner=fine_tuner,
            fine_tuning=FineTuneSettings(3),
            tell=lambda *a: told.append(a),
        )
        by_gates = prune(
            untrained.task, sample, sample, 0.25, "gates", fine_tuner=fine_tuner, gates=FineTuneSettings(4)
        )
    assert [point.n_heads for point in found.points] == [12, 10, 9, 8, 6, 6]
    assert [point.fine_tune_steps for point in found.points] == [0, 0, 0, 0, 0, 3]
    assert len(heads_of(found.task.model)) == 6
    assert len(found.order) == 6
    assert found.points[0].change.difference == 0.0
    assert all(point.speed is not None and point.speed.ratio > 0 for point in found.points[1:])
    assert found.points[-1].n_parameters < found.points[0].n_parameters
    assert ("removing heads", 6, 6) in told
    assert ("fine-tuning", 3, 3) in told
    assert [point.n_heads for point in by_gates.points] == [12, 9]
    assert all(torch.equal(value, before[name]) for name, value in untrained.task.module.state_dict().items())
    metadata = json.loads(json.dumps(pruning_to_json(found)))
    assert metadata["order"] == list(map(str, found.order))
    picture = ElementTree.fromstring(curve_svg(found.points))
    assert picture.tag.endswith("svg")
    assert "保留的头数" in curve_svg(found.points)


def test_what_needs_a_tuner_says_so(untrained: Bundle) -> None:
    with open_sample(untrained.task, ROWS, GREEDY) as sample, pytest.raises(ValueError, match="need a fine_tuner"):
        prune(untrained.task, sample, sample, 0.5, "gates")
