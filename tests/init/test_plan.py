"""Proposals: what is chosen for how much text, within how much time, and that it is written as it is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.errors import DataError, RecipeError
from manyheads.init.cost_estimate import CostEstimate, measure_cost
from manyheads.init.plan import Plan, propose, propose_translation, to_commented_toml
from manyheads.init.survey import DatasetStats, compute_stats
from manyheads.run import Recipe, read_recipe
from manyheads.run.recipe import DataSettings
from manyheads.tasks import ClassifySettings, LanguageSettings, MaskedSettings, TagSettings, TaskSettings

ESTIMATE = CostEstimate(
    n_parameters=2_000_000,
    vocab_size=6000,
    peak_memory=10**9,
    batches_per_epoch=160,
    prepare_seconds=5.0,
    step_seconds=0.2,
    rdrop_step_seconds=0.4,
    validate_seconds=1.0,
    save_seconds=0.5,
    finish_seconds=10.0,
    slowdown=1.0,
)


def stats_of(n_pairs: int, text: str = "a sentence of some words") -> DatasetStats:
    return DatasetStats(
        data=DataSettings(train=("a.en", "a.de")),
        languages=("en", "de"),
        n_rows=n_pairs,
        n_read=n_pairs,
        n_examined=n_pairs,
        dropped={},
        n_held_out=1000,
        n_scored=1000,
        sample=((text, text),) * 50,
    )


def plan_of(n_pairs: int, budget: float | None = None, **changes: float) -> Plan:
    return propose(stats_of(n_pairs), budget, lambda recipe, found: replace(ESTIMATE, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_pairs", "preset", "tokens", "dropout"),
    [
        (200, "tiny", 1000, 0.3),
        (29_000, "tiny", 6000, 0.15),
        (213_000, "small", 8000, 0.15),
        (1_000_000, "small", 16_000, 0.1),
        (5_000_000, "base", 32_000, 0.1),
    ],
)
def test_choices_follow_the_size_of_the_text(n_pairs: int, preset: str, tokens: int, dropout: float) -> None:
    proposal = propose_translation(stats_of(n_pairs))
    recipe = proposal.recipe()
    assert (proposal.preset, recipe.tokenizer.vocab_size, recipe.model.dropout) == (preset, tokens, dropout)
    assert (recipe.tokenizer.sampling > 0) == (n_pairs < 5000)


def test_chinese_gets_fewer_tokens_unless_there_is_much() -> None:
    characters = "".join(chr(0x4E00 + number) for number in range(400))
    assert propose_translation(stats_of(25_000, characters)).recipe().tokenizer.vocab_size == 4000
    assert propose_translation(stats_of(100_000, characters)).recipe().tokenizer.vocab_size == 10_000


def test_long_sentences_get_room() -> None:
    assert propose_translation(stats_of(25_000, "word " * 200)).recipe().model.max_length == 512


WORDS = " ".join(f"word{number}" for number in range(12))
CHARACTERS = " ".join(chr(0x4E00 + number) for number in range(400))


def survey_for(task: TaskSettings, n_rows: int, *row: str) -> DatasetStats:
    data = DataSettings(train=("a.tsv",), text_column="text")
    n_characters = n_rows * len(row[0])
    return replace(stats_of(n_rows), data=data, task=task, sample=(row,) * 50, n_characters=n_characters)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (survey_for(ClassifySettings(), 500, WORDS, "x"), {"tokens": 2000, "dropout": 0.3, "length": 128, "layers": 1}),
        (survey_for(ClassifySettings(), 200_000, WORDS, "x"), {"tokens": 8000, "dropout": 0.1, "layers": 3}),
        (survey_for(ClassifySettings(), 9_000, f"{WORDS} " * 9, "x"), {"tokens": 8000, "length": 256, "layers": 1}),
        (survey_for(ClassifySettings(), 2_000, CHARACTERS, "x"), {"tokens": 8000, "length": 256}),
        (survey_for(TagSettings(), 9_000, WORDS, "O"), {"tokens": 4000, "kind": "unigram", "length": 128}),
        (survey_for(TagSettings(), 9_000, CHARACTERS, "O"), {"tokens": 700, "kind": "character", "length": 512}),
        (survey_for(LanguageSettings(), 10_000, WORDS), {"kind": "character", "width": 160, "length": 128}),
        (survey_for(LanguageSettings(), 9, f"{WORDS} " * 999), {"kind": "character", "width": 160, "length": 256}),
        (survey_for(LanguageSettings(), 2_000, CHARACTERS), {"kind": "character", "tokens": 701, "width": 192}),
        (survey_for(LanguageSettings(), 100_000, WORDS), {"kind": "bpe", "tokens": 8000, "width": 256}),
        (survey_for(MaskedSettings(), 10_000, WORDS), {"kind": "bpe", "tokens": 2000, "width": 128}),
    ],
)
def test_choices_for_other_tasks(found: DatasetStats, expected: dict[str, object]) -> None:
    plan = propose(found, None, lambda recipe, survey: ESTIMATE)
    recipe = plan.proposal.recipe()
    chosen = {
        "tokens": recipe.tokenizer.vocab_size,
        "kind": recipe.tokenizer.kind,
        "dropout": recipe.model.dropout,
        "length": recipe.model.max_length,
        "width": recipe.model.width,
        "layers": recipe.model.n_encoder_layers,
    }
    assert chosen == chosen | expected
    assert recipe.task.kind == found.task.kind
    assert recipe.data.text_column == "text"
    assert plan.idle_seconds <= (1200 if found.task.kind in ("classify", "tag") else 5400)


def test_what_the_task_was_recognised_by_is_kept() -> None:
    several = survey_for(ClassifySettings(multi_label=True, separator=";"), 500, WORDS, "x;y")
    assert propose(several, None, lambda recipe, survey: ESTIMATE).proposal.recipe().task == replace(
        several.task, head_dropout=0.3, ngrams=3
    )
    joint = survey_for(TagSettings(intents=True), 500, WORDS, "O", "x")
    assert propose(joint, None, lambda recipe, survey: ESTIMATE).proposal.recipe().task == replace(
        joint.task, swapping=0.3, ngrams=2, smoothing=0.1
    )


def test_many_files_of_a_folder_are_named_by_it(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("text", "utf-8")
    files = tuple(str(tmp_path / name) for name in ("a.txt", "b.txt", "c.txt"))
    found = replace(survey_for(LanguageSettings(), 100, WORDS), data=DataSettings(train=files))
    plan = propose(found, None, lambda recipe, survey: ESTIMATE)
    path = tmp_path / "recipe.toml"
    path.write_text(to_commented_toml(plan.proposal.with_files_from(tmp_path), []), "utf-8")
    assert 'train = ["."]' in path.read_text("utf-8")
    assert read_recipe(path).data.train == files


def test_a_plan_without_haste_has_all_its_epochs() -> None:
    plan = plan_of(29_000, budget=1e9)
    recipe = plan.proposal.recipe()
    assert not plan.is_cut
    assert recipe.train.steps == 7200  # 45 epochs of 160
    expected = 5 + 7200 * 0.2 + 36 * (1.0 + 0.5) + 10
    assert plan.seconds == pytest.approx(expected)


def test_a_budget_is_kept_and_said_to_cut() -> None:
    plan = plan_of(29_000, budget=900.0)
    assert plan.is_cut
    assert 0.85 * 900 < plan.seconds <= 900


@pytest.mark.parametrize("budget", [0.0, 30.0])
def test_a_budget_below_the_least_is_refused_with_the_figure(budget: float) -> None:
    with pytest.raises(RecipeError, match=r"even 60 steps, .* take about 72 s here. Give --budget 2m or more"):
        plan_of(29_000, budget=budget)


def test_load_lengthens_the_time_but_does_not_spoil_the_recipe() -> None:
    free, busy = plan_of(29_000), plan_of(29_000, slowdown=5.0)
    assert busy.proposal == free.proposal
    assert busy.seconds == pytest.approx(5 * free.seconds)
    assert busy.idle_seconds == pytest.approx(free.seconds)


def test_a_slow_machine_gets_a_smaller_model() -> None:
    asked = []

    def slow(recipe: Recipe, found: DatasetStats) -> CostEstimate:
        asked.append(recipe.model.width)
        return replace(ESTIMATE, batches_per_epoch=10_000, step_seconds=recipe.model.width / 10)

    plan = propose(stats_of(300_000), 7200.0, slow)
    assert (asked, plan.proposal.preset) == ([256, 128], "tiny")
    assert "too slow here" in to_commented_toml(plan.proposal, [])


def test_what_is_written_is_what_was_proposed(tmp_path: Path) -> None:
    for n_pairs in (200, 29_000, 5_000_000):
        plan = plan_of(n_pairs, budget=1e7)
        proposal = replace(plan.proposal)
        text = to_commented_toml(proposal.with_files_from(tmp_path), ["提示", "A heading."])
        path = tmp_path / "recipe.toml"
        path.write_text(text, "utf-8")
        recipe = read_recipe(path)
        wanted = proposal.recipe()
        files = tuple(str(Path(file).resolve()) for file in wanted.data.train)
        assert recipe == replace(wanted, data=replace(wanted.data, train=files))
        settings = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
        assert len(settings) == len(proposal.choices)
        assert max(map(len, text.splitlines())) <= 160


def test_files_in_the_folder_are_named_from_there(tmp_path: Path) -> None:
    data = DataSettings(train=(str(tmp_path / "in" / "a.en"), "/elsewhere/a.de"))
    proposal = propose_translation(replace(stats_of(9000), data=data)).with_files_from(tmp_path)
    assert proposal.table()["data"]["train"] == ["in/a.en", "/elsewhere/a.de"]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> DataSettings:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    return DataSettings(train=(str(path),))


def test_documents_that_fit_nowhere_are_named(tmp_path: Path) -> None:
    words = " ".join(str(number) for number in range(900, 2400))
    data = write_pairs(tmp_path / "a.tsv", [(f"{n} {words}", f"{words} {n}") for n in range(80)])
    found = compute_stats(data)
    with pytest.raises(DataError, match=r"a.tsv: every pair is longer than model.max_length = 1024 tokens. Split"):
        measure_cost(propose_translation(found).recipe(), found)


def test_the_pace_is_measured(tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "a.tsv", list(corpora.pairs("en", "zh", "train", 300)))
    found = compute_stats(data)
    proposal = propose_translation(found)
    estimate = measure_cost(proposal.recipe(), found)
    assert 0 < estimate.step_seconds <= estimate.rdrop_step_seconds
    assert min(estimate.prepare_seconds, estimate.validate_seconds, estimate.save_seconds, estimate.finish_seconds) > 0
    assert estimate.n_parameters > 1_000_000
    assert estimate.peak_memory > 100e6
    assert estimate.slowdown >= 1
    assert 1 <= estimate.batches_per_epoch < 50


@pytest.mark.parametrize("task", [ClassifySettings(), TagSettings(), LanguageSettings(), MaskedSettings()])
def test_the_pace_of_every_task_is_measured(tmp_path: Path, task: TaskSettings) -> None:
    rows = [f"a cat number {n} sleeps" for n in range(120)]
    beside = {"classify": lambda n: "\tx" if n % 2 else "\ty", "tag": lambda n: "\tO B-animal I-animal O O"}
    told = beside.get(task.kind, lambda n: "")
    path = tmp_path / ("a.txt" if not told(0) else "a.tsv")
    path.write_text("".join(f"{row}{told(n)}\n" for n, row in enumerate(rows)), "utf-8")
    found = compute_stats(DataSettings(train=(str(path),)), task=task)
    proposal = propose(found, None, lambda recipe, survey: ESTIMATE).proposal
    recipe = proposal.recipe()
    estimate = measure_cost(
        replace(recipe, model=replace(recipe.model, width=32, feed_forward_width=32, n_heads=2)), found
    )
    assert (
        min(
            estimate.prepare_seconds,
            estimate.step_seconds,
            estimate.validate_seconds,
            estimate.save_seconds,
            estimate.finish_seconds,
        )
        > 0
    )
    assert estimate.rdrop_step_seconds == estimate.step_seconds
    assert 1 <= estimate.batches_per_epoch < 50
