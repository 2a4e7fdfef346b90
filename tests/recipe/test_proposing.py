"""Proposals: what is chosen for how much text, within how much time, and that it is written as it is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.errors import DataError, RecipeError
from manyheads.recipe import Recipe, read_recipe, surveying
from manyheads.recipe.estimating import Pace, measure
from manyheads.recipe.proposing import Plan, propose, propose_translation, to_commented_toml
from manyheads.recipe.settings import DataSettings
from manyheads.recipe.surveying import Survey, survey
from manyheads.text import grammar

PACE = Pace(
    n_parameters=2_000_000,
    vocabulary=6000,
    memory=10**9,
    batches_per_epoch=160,
    prepare=5.0,
    step=0.2,
    consistent_step=0.4,
    validate=1.0,
    save=0.5,
    finish=10.0,
    slowdown=1.0,
)


def survey_of(n_pairs: int, text: str = "a sentence of some words") -> Survey:
    return Survey(
        data=DataSettings(train=("a.en", "a.de")),
        languages=("en", "de"),
        n_rows=n_pairs,
        n_read=n_pairs,
        n_looked_at=n_pairs,
        left_out={},
        n_held_out=1000,
        n_scored=1000,
        sample=((text, text),) * 50,
    )


def plan_of(n_pairs: int, budget: float | None = None, **changes: float) -> Plan:
    return propose(survey_of(n_pairs), budget, lambda recipe, found: replace(PACE, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_pairs", "preset", "pieces", "dropout"),
    [
        (200, "tiny", 1000, 0.3),
        (29_000, "tiny", 6000, 0.15),
        (213_000, "small", 8000, 0.15),
        (1_000_000, "small", 16_000, 0.1),
        (5_000_000, "base", 32_000, 0.1),
    ],
)
def test_choices_follow_the_size_of_the_text(n_pairs: int, preset: str, pieces: int, dropout: float) -> None:
    proposal = propose_translation(survey_of(n_pairs))
    recipe = proposal.recipe()
    assert (proposal.preset, recipe.tokenizer.vocabulary, recipe.model.dropout) == (preset, pieces, dropout)
    assert (recipe.tokenizer.sampling > 0) == (n_pairs < 5000)


def test_chinese_gets_more_pieces() -> None:
    signs = "".join(chr(0x4E00 + number) for number in range(400))
    assert propose_translation(survey_of(25_000, signs)).recipe().tokenizer.vocabulary == 8000


def test_long_sentences_get_room() -> None:
    assert propose_translation(survey_of(25_000, "word " * 200)).recipe().model.max_length == 512


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
    assert busy.free_seconds == pytest.approx(free.seconds)


def test_a_slow_machine_gets_a_smaller_model() -> None:
    asked = []

    def slow(recipe: Recipe, found: Survey) -> Pace:
        asked.append(recipe.model.width)
        return replace(PACE, batches_per_epoch=10_000, step=recipe.model.width / 10)

    plan = propose(survey_of(300_000), 7200.0, slow)
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
    proposal = propose_translation(replace(survey_of(9000), data=data)).with_files_from(tmp_path)
    assert proposal.table()["data"]["train"] == ["in/a.en", "/elsewhere/a.de"]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> DataSettings:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    return DataSettings(train=(str(path),))


def test_a_survey_counts_and_cleans(tmp_path: Path) -> None:
    pairs = list(grammar.pairs("en", "zh", "train", 400))
    distinct = list(dict.fromkeys(pairs))
    data = write_pairs(tmp_path / "en-zh.tsv", [*distinct, distinct[0], ("only one side", "")])
    found = survey(data, named=("zh", "en"))
    assert found.languages == ("en", "zh")  # the text knows better than the name
    assert found.is_exact
    assert found.n_read == len(distinct) + 2
    assert found.left_out["empty"] == 1
    assert found.n_rows + found.n_held_out + sum(found.left_out.values()) >= found.n_read
    assert found.n_rows == len(found.sample)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([("", "x")] * 3, "there is no usable pair"),
        ([(f"text {n}", "good") for n in range(2000)], "only 1 different"),
        ([("one", "eins")], "a.tsv: 1 pair, too few to keep any out of training to validate on"),
        ([("x22", "y22")], "a.tsv: 1 pair, too few"),  # the only pair is one that is held out
        ([(f"text {n}", f"text {n}") for n in range(200)], "the target is the same as the source in 1"),
    ],
)
def test_useless_text_is_refused(tmp_path: Path, pairs: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(DataError, match=told):
        survey(write_pairs(tmp_path / "a.tsv", pairs))


def test_a_survey_looks_at_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "_LOOKED_AT", 200)
    pairs = [(f"{'word ' * (n // 100)}{n}", f"{'Wort ' * (n // 100)}{n}") for n in range(1000)]
    data = write_pairs(tmp_path / "a.tsv", pairs)
    found = survey(data)
    assert (found.n_read, found.n_looked_at, found.is_exact) == (1000, 200, False)
    assert 900 < found.n_rows < 1000
    assert sum(int(source.split()[-1]) >= 500 for source, _ in found.sample) > 60
    assert survey(data) == found


@pytest.mark.parametrize(
    ("named", "told", "expected"),
    [
        (("zh-CN", "en"), ("", ""), ("en", "zh-CN")),  # the text knows better
        (("", ""), ("en", "zh-TW"), ("en", "zh-TW")),
        (("", ""), ("zh", "en"), None),
        (("", ""), ("zh-CN", ""), None),
    ],
)
def test_languages_against_the_script(
    tmp_path: Path, named: tuple[str, str], told: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    data = write_pairs(tmp_path / "a.tsv", list(grammar.pairs("en", "zh", "train", 300)))
    if expected is None:
        with pytest.raises(DataError, match=r"the target is written in zh, but zh.* is wanted. Exchange"):
            survey(data, named, told)
    else:
        assert survey(data, named, told).languages == expected


def test_two_languages_of_one_script_are_not_exchanged(tmp_path: Path) -> None:
    signs = [chr(0x4E00 + number) for number in range(300)]
    data = write_pairs(tmp_path / "a.tsv", [(f"{sign}不是", f"{sign}唔係") for sign in signs])
    assert survey(data, named=("zh", "yue")).languages == ("zh", "yue")


def test_documents_that_fit_nowhere_are_named(tmp_path: Path) -> None:
    words = " ".join(str(number) for number in range(900, 2400))
    data = write_pairs(tmp_path / "a.tsv", [(f"{n} {words}", f"{words} {n}") for n in range(80)])
    found = survey(data)
    with pytest.raises(DataError, match=r"a.tsv: every pair is longer than model.max_length = 1024 pieces. Split"):
        measure(propose_translation(found).recipe(), found)


def test_the_pace_is_measured(tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "a.tsv", list(grammar.pairs("en", "zh", "train", 300)))
    found = survey(data)
    proposal = propose_translation(found)
    pace = measure(proposal.recipe(), found)
    assert 0 < pace.step <= pace.consistent_step
    assert min(pace.prepare, pace.validate, pace.save, pace.finish) > 0
    assert pace.n_parameters > 1_000_000
    assert pace.memory > 100e6
    assert pace.slowdown >= 1
    assert 1 <= pace.batches_per_epoch < 50
