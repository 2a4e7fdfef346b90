"""The stopping rule, and what a run that ends by it reports."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.lab.convergence import Convergence, Watch
from manyheads.lab.lab_tasks import Lookup, Translation
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model, train_model
from manyheads.lab.trials.attention_trials import attention_statistics
from manyheads.lab.trials.variants import with_score_scale, with_unit_queries

RULE = Convergence(level=0.5, patience=100, every=25)
SMALL = Setup(
    model={"width": 16, "n_encoder_layers": 1, "feed_forward_width": 16, "n_heads": 1, "norm_placement": "pre"},
    task=Lookup(n_keys=4, n_values=4, n_records=(2, 2)),
    steps=400,
    n_rows=16,
    warmup=5,
    learning_rate=1e-2,
    schedule="inverse-sqrt",
    convergence=Convergence(level=0.5, patience=150, every=25, solved=0.9),
)


def watched(rule: Convergence, *scores: tuple[float, float]) -> tuple[Watch, list[bool]]:
    watch = Watch(rule, budget=1000)
    ends = [
        watch.see(25 * number, float(number), {"accuracy": accuracy, "loss": loss}, {"w": torch.tensor(float(number))})
        for number, (accuracy, loss) in enumerate(scores, 1)
    ]
    return watch, ends


def test_a_run_ends_after_its_patience_and_keeps_the_weights_of_the_best_validation() -> None:
    watch, ends = watched(RULE, (0.2, 2.0), (0.6, 1.0), *[(0.55, 1.1)] * 4)
    assert ends == [False] * 5 + [True]
    assert watch.best_weights == {"w": torch.tensor(2.0)}
    progress = watch.progress(150, 9.0)
    assert (progress.steps, progress.seconds, progress.n_steps, progress.has_converged) == (50, 2.0, 150, True)


def test_a_falling_loss_is_an_improvement_while_the_accuracy_stands_still() -> None:
    _, ends = watched(RULE, *[(0.1, 2.0 * 0.98**number) for number in range(12)])
    assert not any(ends)


def test_a_solved_task_ends_a_run_and_one_lucky_validation_does_not() -> None:
    _, ends = watched(RULE, (0.2, 2.0), (0.999, 0.1), (0.9, 0.2), (0.999, 0.1), (0.999, 0.1))
    assert ends == [False, False, False, False, True]


def test_a_level_that_was_not_reached_is_a_bound_and_an_unfinished_run_did_not_converge() -> None:
    watch, _ = watched(RULE, (0.2, 2.0), (0.3, 1.5))
    progress = watch.progress(1000, 7.0)
    assert (progress.steps, progress.seconds, progress.has_converged) == (1001, 7.0, False)
    assert not watched(RULE, *[(0.3, 1.5)] * 6)[0].progress(150, 1.0, has_diverged=True).has_converged


def test_training_stops_early_and_reports_ability_and_speed() -> None:
    trained = train_model(SMALL, 1)
    outcome = trained.outcome()
    assert trained.progress is not None
    assert outcome["trained"] == len(trained.losses) < SMALL.steps
    assert outcome["converged"] == 1.0 and outcome["diverged"] == 0.0
    assert outcome["steps"] <= outcome["trained"] and outcome["accuracy"] > 0.8
    again = train_model(SMALL, 1)
    assert again.losses == trained.losses and again.test_scores() == trained.test_scores()


def test_a_run_that_diverges_says_so() -> None:
    def explode(logits: Tensor, expected: Tensor, smoothing: float) -> Tensor:
        return F.cross_entropy(logits, expected) * float("inf")

    outcome = train_model(replace(SMALL, loss=explode), 1).outcome()
    assert (outcome["diverged"], outcome["converged"], outcome["steps"]) == (1.0, 0.0, SMALL.steps + 1)


def test_validation_sentences_are_neither_trained_nor_tested_on() -> None:
    task = Translation(n_train=200)
    rows = {
        split: {tuple(row) for row in task.batch(300, torch.Generator().manual_seed(1), split=split).source.tolist()}  # type: ignore[arg-type, union-attr]
        for split in ("train", "valid", "test")
    }
    unknown = {split: {row for row in found if 3 not in row} for split, found in rows.items()}
    assert len(unknown["valid"]) > 20
    strip = {split: {tuple(one for one in row if one) for row in found} for split, found in unknown.items()}
    assert not strip["valid"] & strip["train"] and not strip["valid"] & strip["test"]


@pytest.mark.parametrize("width", [8, 64])
def test_unit_queries_make_the_variance_of_a_score_the_width_of_the_head(width: int) -> None:
    setup = Setup(
        model={**SMALL.model, "width": 64, "head_width": width, "value_width": 16},
        alter=partial(with_score_scale, power=0.0),
        start=with_unit_queries,
    )
    variance = sum(attention_statistics(make_model(setup, seed), setup, seed).score_variance for seed in range(8)) / 8
    assert variance == pytest.approx(width, rel=0.5)


def test_dividing_scores_is_a_smaller_start_and_a_smaller_step() -> None:
    """Adam's step does not depend on the size of the gradient: a factor can move from the scores into W^Q and W^K.

    Scores divided by √d_k, started as large as unscaled ones, are unscaled scores whose W^Q and W^K learn d_k^¼ times
    more slowly; the slow reference here writes the factor into the weights and scales the updates by hand.
    """
    model = {**SMALL.model, "head_width": 16}
    scaled = replace(
        SMALL,
        model=model,
        clip_norm=float("inf"),
        steps=12,
        convergence=None,
        alter=partial(with_score_scale, power=0.5),
        start=partial(with_unit_queries, power=-0.5),
    )
    plain = replace(scaled, alter=partial(with_score_scale, power=0.0), start=with_unit_queries)
    reference = make_model(plain, 1)
    ours = train_model(scaled, 1)
    factor = 16**-0.25
    groups = [
        {"params": [value], "lr_scale": factor if ".project.query." in name or ".project.key." in name else 1.0}
        for name, value in reference.named_parameters()
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    losses = _train_by_hand(reference, plain, optimizer)
    assert losses == pytest.approx(ours.losses, rel=1e-3)
    assert losses != pytest.approx(train_model(plain, 1).losses, rel=1e-3)


def _train_by_hand(model: torch.nn.Module, setup: Setup, optimizer: torch.optim.AdamW) -> list[float]:
    from manyheads.lab.trial import counted_logits
    from manyheads.training.settings import TrainSettings, learning_rate

    settings = TrainSettings(
        steps=setup.steps, learning_rate=setup.learning_rate, warmup=setup.warmup, schedule="inverse-sqrt"
    )
    losses = []
    for step in range(setup.steps):
        batch = setup.task.batch(setup.n_rows, torch.Generator().manual_seed(1_000_003 + step))
        optimizer.zero_grad()
        loss = F.cross_entropy(counted_logits(model, batch), batch.expected[batch.is_counted])
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = group["lr_scale"] * learning_rate(step + 1, settings, 16)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
