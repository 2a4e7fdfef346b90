"""`plan`: time follows from FLOP and rates, with and without text to try."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.plan.run_plan import ACCELERATORS, RunPlan, assumptions, make_plan, try_recipe
from manyheads.run import Recipe, read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def base() -> Recipe:
    return read_recipe(RECIPES / "wmt14-base.toml")


def plan_gpus(recipe: Recipe, kind: str, n_devices: int, **options: float) -> RunPlan:
    return make_plan(recipe, accelerator=ACCELERATORS[kind], n_devices=n_devices, **options)  # type: ignore[arg-type]


def test_recipe_of_wmt14_has_the_settings_of_the_paper(base: Recipe) -> None:
    model, train = base.model, base.train
    assert (model.n_encoder_layers, model.n_decoder_layers, model.width, model.n_heads) == (6, 6, 512, 8)
    assert (model.feed_forward_width, model.dropout, model.vocab_size) == (2048, 0.1, 37_000)
    assert (model.positions, model.norm_placement, model.tie_source_target, model.tie_output) == (
        "sinusoidal", "post", True, True,
    )  # fmt: skip
    assert (train.steps, train.warmup, train.batch_tokens, train.average_snapshots) == (100_000, 4000, 25_000, 5)
    assert (train.schedule, train.learning_rate, train.accumulation_steps) == ("inverse-sqrt", None, 1)
    assert (base.task.smoothing, base.decode.beam, base.decode.length_penalty) == (0.1, 4, 0.6)  # type: ignore[attr-defined]


def test_base_on_eight_p100_agrees_with_the_paper(base: Recipe) -> None:
    plan = plan_gpus(base, "p100", 8)
    assert plan.n_parameters == pytest.approx(65e6, rel=0.05)
    assert plan.hardware_flop == pytest.approx(3.3e18, rel=0.2)
    assert plan.total_seconds == pytest.approx(12 * 3600, rel=0.2)
    assert plan.precision == "float32"


def test_time_is_flop_over_rate_and_price_follows(base: Recipe) -> None:
    plan = plan_gpus(base, "l4", 4, utilization=0.5, price=2.0)
    assert plan.precision == "bfloat16"
    assert plan.total_seconds == pytest.approx(plan.total_flop / (4 * 121e12 * 0.5 * plan.efficiency))
    assert plan.cost == pytest.approx(2.0 * 4 * plan.total_seconds / 3600)
    assert plan.total_flop == pytest.approx(100_000 * 50_000 * plan.flop_per_token)
    twice = plan_gpus(base, "l4", 8, utilization=0.5)
    assert twice.total_seconds == pytest.approx(plan.total_seconds / 2)


def test_small_model_does_not_keep_a_gpu_busy(tmp_path: Path) -> None:
    plan = plan_gpus(small_recipe(tmp_path), "h100", 1)
    assert plan.total_seconds == 500 * 0.01
    assert any("10 ms" in line for line in assumptions(plan))


def small_recipe(folder: Path, **changes: object) -> Recipe:
    table = {
        "data": {"train": [str(folder / "train.en"), str(folder / "train.de")]},
        "tokenizer": {"vocab_size": 400},
        "model": {"width": 16, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "feed_forward_width": 32},
        "train": {"steps": 500, "batch_tokens": 200},
    }
    return Recipe.from_table(table | changes)


def test_trial_on_missing_text_uses_the_built_in_corpus(tmp_path: Path) -> None:
    recipe = small_recipe(tmp_path)
    trial = try_recipe(recipe)
    assert "there is no such file" in trial.data_problem
    plan = make_plan(recipe, trial=trial)
    assert plan.replicated.total == pytest.approx(trial.estimate.peak_memory, rel=0.1)  # the same sizes as in the trial
    larger = replace(recipe, train=replace(recipe.train, batch_tokens=recipe.train.batch_tokens * 1000))
    more = make_plan(larger, trial=trial).replicated
    assert more.program == plan.replicated.program
    assert more.activations == pytest.approx(1000 * plan.replicated.activations)
    assert set(plan.seconds) == {"training", "validation", "checkpoints"}
    assert plan.batch.n_source == plan.batch.n_target == 200
    assert plan.recipe.model.vocab_size == 400
    assert any("built-in corpus" in line for line in assumptions(plan))
    assert make_plan(recipe, trial=trial, n_devices=2).seconds["training"] < plan.seconds["training"]
    # The batches of the built-in corpus are not full: time is scaled up by FLOP.
    assert plan.seconds["training"] > 500 * trial.estimate.step_seconds[0]


def test_trial_on_own_text_measures_its_batches(tmp_path: Path) -> None:
    for code, text in (("en", "The cat sleeps. "), ("de", "Die Katze schläft hier gern. ")):
        (tmp_path / f"train.{code}").write_text("".join(f"{text * (n % 3 + 1)}{n}\n" for n in range(300)), "utf-8")
    recipe = small_recipe(tmp_path, task={"consistency": 1.0, "consistency_after": 100})
    trial = try_recipe(recipe)
    assert trial.data_problem == ""
    first, second = trial.estimate.batches
    assert second.n_source == pytest.approx(2 * first.n_source, rel=0.5)  # R-Drop's second pass
    plan = make_plan(recipe, trial=trial)
    assert plan.recipe.model.vocab_size == trial.estimate.vocab_size <= 400
    assert 0 < plan.batch.n_source <= plan.batch.n_target <= 200
    per_update = 3 * sum(plan.forward.values())
    assert plan.total_flop == pytest.approx(per_update * (100 + 400 * 2))
    assert set(plan.seconds) == {"preparation", "training", "validation", "checkpoints", "scoring"}
    assert plan.seconds["training"] > 0
