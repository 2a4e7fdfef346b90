import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.compress.fine_tuning import FineTuneSettings, make_fine_tuner
from manyheads.compress.head_removal import remove_heads
from manyheads.compress.learned_gates import GatedTrainingTask, HardConcreteGates, learn_gates
from manyheads.compress.pruning import _cheaper_advice, count_to_remove, gradient_order, greedy_order, prune
from manyheads.compress.pruning_curve import CurvePoint, curve_svg
from manyheads.compress.trade_off import require_small_cost
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, DataError, LensError
from manyheads.language import using
from manyheads.lens import Head, heads_of
from manyheads.lens.heads import ablation_gates
from manyheads.lens.scored_rows import open_sample
from manyheads.metrics import Change, Score
from manyheads.tasks import Task

GREEDY = DecodeSettings(method="greedy", max_new_tokens=3)
ROWS = list(corpora.pairs("en", "zh", "train", 6, 1))


def test_count_to_remove() -> None:
    assert count_to_remove(48, 0.4) == 20
    assert count_to_remove(48, 0.001) == 1
    assert count_to_remove(12, 11 / 12) == 11
    assert count_to_remove(30, 0.1) == 3


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 40.0, float("nan")])
def test_invalid_share_is_refused(share: float) -> None:
    with pytest.raises(LensError, match=r"is not between 0 and 1\. Give a share such as 0\.4"):
        count_to_remove(12, share)


def test_removing_all_heads_is_refused() -> None:
    with pytest.raises(
        LensError, match=r"A share of 0\.97 removes all 12 heads\. Keep at least one: give at most 0\.916\."
    ):
        count_to_remove(12, 0.97)
    assert count_to_remove(12, 0.916) == 11


def test_greedy_order_removes_the_cheapest_head_each_time(untrained: Bundle) -> None:
    task = remove_heads(untrained.task, [])
    with torch.no_grad():
        task.model.decoder[0].attention.output.weight[:, :4] = 0.0  # its head 0 has no effect
    with open_sample(task, ROWS, GREEDY) as sample:
        removals = greedy_order(task, sample, 5)
        losses = {head: sample.loss(task, ablation_gates(task.model, [head])) for head in heads_of(task.model)}
        assert removals[0].loss == pytest.approx(min(losses.values()))
        assert losses[removals[0].head] == pytest.approx(removals[0].loss)
        for index, removal in enumerate(removals):
            gates = ablation_gates(task.model, [earlier.head for earlier in removals[: index + 1]])
            assert removal.loss == pytest.approx(sample.loss(task, gates), abs=1e-5)
            assert removal.n_left == 12 - index - 1
        assert len({removal.head for removal in removals}) == 5
        idle = gradient_order(task, sample, 1)[0]
    assert idle.head == Head("decoder.0.self", 0)


@pytest.fixture(scope="module")
def folder(untrained: Bundle, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("fine-tuning") / "bundle"
    untrained.save(path)
    return path


def copy(untrained: Bundle) -> Task:
    return remove_heads(untrained.task, [])


def test_gates_are_open_with_the_probability_of_their_parameter(untrained: Bundle) -> None:
    torch.manual_seed(0)
    gates = HardConcreteGates(untrained.task.model, learning_rate=0.001, n_steps=100)
    assert gates.log_alpha.tolist() == pytest.approx([2.0] * 12)
    with torch.no_grad():
        gates.scaled.copy_(torch.linspace(-4.0, 4.0, 12) / gates.scale)
    samples = torch.stack([torch.cat(list(gates.sample().values())) for _ in range(4000)])
    assert ((samples >= 0) & (samples <= 1)).all()
    is_open = (samples > 0).float().mean(0)
    assert is_open.sum().item() == pytest.approx(gates.n_open().item(), abs=0.1)
    assert is_open[0] < 0.15 < 0.99 < is_open[-1]
    assert (samples[:, -1] == 1).float().mean() > 0.9


def test_gradient_of_a_gate_is_that_of_log_alpha(untrained: Bundle) -> None:
    gates = HardConcreteGates(untrained.task.model, learning_rate=0.0001, n_steps=100)
    (3.0 * gates.log_alpha).sum().backward()
    assert gates.scaled.grad is not None
    assert gates.scaled.grad.tolist() == pytest.approx([3.0] * 12)


def test_learned_gates_close_to_the_target(untrained: Bundle, folder) -> None:
    task = copy(untrained)
    before = {name: value.clone() for name, value in task.module.state_dict().items()}
    steps = []
    fine_tuner = make_fine_tuner(untrained, folder, folder)
    ranked = learn_gates(task, fine_tuner, 5, FineTuneSettings(60, learning_rate=0.001), steps.append)
    training_task = GatedTrainingTask(
        task.training_task(fine_tuner.training_data), task.model, HardConcreteGates(task.model, 0.001, 60), 7, 60
    )
    plan = training_task.plan(0)[0]
    assert training_task.describe(plan) == training_task.training_task.describe(plan)
    assert len(steps) == 60
    assert {head for head, _ in ranked} == set(heads_of(task.model))
    alphas = [alpha for _, alpha in ranked]
    assert alphas == sorted(alphas)
    assert alphas[4] < 0.0 < alphas[-1]
    assert any(not torch.equal(value, before[name]) for name, value in task.module.state_dict().items())
    assert not task.module.training


def test_fine_tuning_uses_a_short_slow_schedule(untrained: Bundle, folder) -> None:
    task = remove_heads(untrained.task, ["encoder.0.self/0", "decoder.0.self"])
    losses = []
    fine_tuner = make_fine_tuner(untrained, folder, folder)
    schedule = fine_tuner.schedule(FineTuneSettings(50))
    assert (schedule.steps, schedule.schedule, schedule.warmup) == (50, "cosine", 5)
    assert schedule.learning_rate == 0.001  # a fifth of (16 · 2)^-½ would be more
    fine_tuner.fine_tune(task, FineTuneSettings(40, learning_rate=0.005), lambda step: losses.append(step.loss))
    assert sum(losses[-5:]) < sum(losses[:5])
    assert len(heads_of(task.model)) == 12 - 5


def test_missing_training_files_are_requested(untrained: Bundle, folder) -> None:
    data = {"train": ["/gone.en", "/gone.zh"]}
    without_data = replace(untrained, recipe={**untrained.recipe, "data": data})
    with pytest.raises(DataError, match=r"/gone\.en.*Fine-tuning needs the training data.*: give it with --train\."):
        make_fine_tuner(without_data, folder, folder)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"learning_rate": -1.0}, {"learning_rate": 2.0}])
def test_fine_tune_settings_are_checked(settings) -> None:
    with pytest.raises(LensError, match=r"at least 1 step|is not between 0 and 1\. Use one like"):
        FineTuneSettings(**settings)


def test_prune_and_fine_tune(untrained: Bundle, folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.compress.pruning._N_REPEATS", 1)
    before = {name: value.clone() for name, value in untrained.task.module.state_dict().items()}
    stages = []
    fine_tuner = make_fine_tuner(untrained, folder, folder)
    with open_sample(untrained.task, ROWS, GREEDY) as sample:
        compressed = prune(
            untrained,
            sample,
            sample,
            0.5,
            "greedy",
            fine_tuner=fine_tuner,
            fine_tuning=FineTuneSettings(3),
            progress=lambda *stage: stages.append(stage),
        )
        by_gates = prune(untrained, sample, sample, 0.25, "gates", fine_tuner=fine_tuner, gates=FineTuneSettings(4))
    points = compressed.report.points
    assert [point.n_heads for point in points] == [12, 10, 9, 8, 6, 6]
    assert [point.fine_tune_steps for point in points] == [0, 0, 0, 0, 0, 3]
    assert len(heads_of(compressed.bundle.task.model)) == 6
    assert len(compressed.report.order) == 6
    assert compressed.trade_off.change == points[-1].change
    assert points[0].change.difference == 0.0
    assert all(point.speed is not None and point.speed.ratio > 0 for point in points[1:])
    assert points[-1].n_parameters < points[0].n_parameters
    assert ("removing heads", 6, 6) in stages
    assert ("fine-tuning", 3, 3) in stages
    assert [point.n_heads for point in by_gates.report.points] == [12, 9]
    assert all(torch.equal(value, before[name]) for name, value in untrained.task.module.state_dict().items())
    metadata = json.loads(json.dumps(compressed.report.to_json()))
    assert metadata["order"] == list(map(str, compressed.report.order))
    for language, title in (("en", "heads kept"), ("zh", "保留的头数")):
        with using(language):
            picture = curve_svg(points)
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert title in picture


def test_large_cost_is_refused(untrained: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.compress.pruning._N_POINTS", 1)
    monkeypatch.setattr("manyheads.compress.pruning._N_REPEATS", 1)
    decode = DecodeSettings(method="greedy", max_new_tokens=8)
    sources = [row[0] for row in ROWS]
    own = [(source, one.answer) for source, one in zip(sources, untrained.task.predict(sources, decode), strict=True)]
    with open_sample(untrained.task, own, decode) as sample:  # its own outputs as references: BLEU 100
        with pytest.raises(
            BundleError,
            match=r"Removing 11 heads would cost \d+\.\d\d BLEU \(100\.00 → .*\); at most 0\.2 is accepted\.",
        ) as refused:
            prune(untrained, sample, sample, 0.9, "gradient")
        needed = float(str(refused.value).rpartition("add --max-cost ")[2].rstrip("."))
        assert prune(untrained, sample, sample, 0.9, "gradient", max_cost=needed).trade_off.change.cost > 0.2


def test_refusal_names_the_most_heads_within_the_cost() -> None:
    bleu = Score("BLEU", 100.0, 100.0, 100.0, "")
    points = [
        CurvePoint(12 - n, ("head",) * n, 100, 1.0, bleu, Change("BLEU", 100.0 - cost, 100.0, -cost, -cost, 0.0, 60))
        for n, cost in ((0, 0.0), (2, 0.1), (3, 0.2), (6, 18.3))
    ]
    advice = _cheaper_advice(points, 0.2)
    assert advice == "Remove fewer heads (--share 0.25 costs at most 0.2) or fine-tune (--fine-tune 1500)."
    assert count_to_remove(12, 0.25) == 3
    tuned = [*points[:1], replace(points[-1], fine_tune_steps=300)]
    assert _cheaper_advice(tuned, 0.2) == "Remove fewer heads (--share) or fine-tune longer (--fine-tune)."


def test_cost_of_a_rate_is_in_percent() -> None:
    change = Change("nats per character", 1.236, 1.2, 0.036, 0.0, 0.1, 50)
    with pytest.raises(
        BundleError,
        match=r"Pruning would cost 3\.00 % of the nats per character \(1\.200 → 1\.236 on 50 texts\); at most 0\.2 %",
    ):
        require_small_cost(change, "Pruning", "")
    require_small_cost(change, "Pruning", "", 3.01)
    with pytest.raises(BundleError, match=r"--max-cost -1 is not a cost\. Give 0 or more, such as 0\.2\."):
        require_small_cost(change, "Pruning", "", -1.0)
    require_small_cost(replace(change, difference=-0.036), "Pruning", "", 0.0)  # an improvement


def test_gates_need_a_fine_tuner(untrained: Bundle) -> None:
    with open_sample(untrained.task, ROWS, GREEDY) as sample, pytest.raises(ValueError, match="need a fine_tuner"):
        prune(untrained, sample, sample, 0.5, "gates")
