import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from manyheads import language
from manyheads.cli.lab import lab
from manyheads.errors import LabError, RecipeError
from manyheads.lab.lab_texts import LabText
from manyheads.lab.question import Arm
from manyheads.lab.questions import QUESTIONS

from lab.questions_for_tests import ARITHMETIC, TRAINING

RunLab = Callable[..., Result]


@pytest.fixture
def run_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunLab:
    """Run the command in this process, with the small questions of the tests among the others."""
    monkeypatch.setitem(QUESTIONS, "arithmetic", ARITHMETIC)
    monkeypatch.setitem(QUESTIONS, "training", TRAINING)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        with language.using("en"):
            result = CliRunner().invoke(lab, list(map(str, words)))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_the_list_has_every_question_with_its_answer(run_lab: RunLab) -> None:
    shown = run_lab().output
    for name, question in QUESTIONS.items():
        assert name in shown
        assert question.title["en"] in shown
    table = json.loads(run_lab("--json").output)
    assert table["arithmetic"]["answer"] is None
    assert "not run yet" in shown
    assert "√d_k" in table["scale"]["answer"]


def test_a_question_runs_and_is_shown_again(run_lab: RunLab, tmp_path: Path) -> None:
    ran = run_lab("arithmetic", "--processes", 1)
    assert ran.exit_code == 0
    assert "high v low (one): value\n    predicted higher · measured +1." in ran.output
    assert "as predicted" in ran.output
    assert "Higher by +1." in ran.output
    page = (tmp_path / "runs/lab/arithmetic/report.html").read_text()
    assert "Higher by +1." in page and "中Higher by +1." in page
    (tmp_path / "runs/lab/arithmetic/report.html").unlink()
    shown = run_lab("arithmetic", "--show")
    assert shown.output.split("Report:")[0].strip() in ran.output
    assert (tmp_path / "runs/lab/arithmetic/report.html").read_text() == page
    assert "Higher by" in run_lab("--json").output  # the list takes own results


def test_a_run_without_time_names_what_is_missing_and_resumes(run_lab: RunLab, tmp_path: Path) -> None:
    ran = run_lab("arithmetic", "--processes", 1, "--minutes", 0)
    assert ran.exit_code == 0
    assert "The time is up: 72 trials are missing. Run the same command again to resume." in ran.output
    assert "high v low (one): value\n    not measured" in ran.output
    assert "low · one: 0 of 6 seeds were run" in ran.output
    assert "The run is not complete" in ran.output
    table = json.loads(run_lab("arithmetic", "--show", "--json").output)
    assert len(table["not_measured"]) == 2 and len(table["keep_in_mind"]) == 6
    assert "not complete" not in run_lab("arithmetic", "--processes", 1).output
    assert run_lab("arithmetic", "--minutes", -1).exit_code == 2


def test_json_has_every_effect(run_lab: RunLab) -> None:
    table = json.loads(run_lab("arithmetic", "--processes", 1, "--json").output)
    assert [effect["verdict"] for effect in table["effects"]] == ["as predicted", "as predicted"]
    assert table["effects"][0]["low"] < table["effects"][0]["mean"] < table["effects"][0]["high"]


def test_fresh_starts_over(run_lab: RunLab, tmp_path: Path) -> None:
    run_lab("arithmetic", "--processes", 1)
    rows = tmp_path / "runs/lab/arithmetic/rows.jsonl"
    rows.write_text("garbage\n")
    with pytest.raises(LabError, match="damaged"):
        run_lab("arithmetic", "--processes", 1)
    assert run_lab("arithmetic", "--processes", 1, "--fresh").exit_code == 0


def test_an_unknown_question_gets_a_suggestion(run_lab: RunLab) -> None:
    with pytest.raises(LabError, match=r"'scal' is not a question of the lab\. Did you mean scale\?"):
        run_lab("scal")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--full",), "Name a question"),
        (("cards", "--full"), "cards takes no option but -o"),
        (("arithmetic", "--processes", "0"), "must be at least 1"),
        (("arithmetic", "--show"), "There are no results of arithmetic yet"),
    ],
)
def test_options_that_do_not_fit(run_lab: RunLab, words: tuple[str, ...], message: str) -> None:
    result = run_lab(*words)
    assert result.exit_code == 2
    assert message in result.output


def test_shipped_results_are_shown_without_a_run(run_lab: RunLab, tmp_path: Path) -> None:
    assert run_lab("scale", "--show", "-o", tmp_path / "scale").exit_code == 0
    assert "√d_k" in (tmp_path / "scale/report.html").read_text()


RECIPE = """
[data]
builtin = "en-zh"
builtin_rows = 1000
[tokenizer]
kind = "bpe"
vocab_size = 400
[model]
preset = "tiny"
width = 16
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 1
feed_forward_width = 16
max_length = 100
[train]
steps = 3
batch_tokens = 200
learning_rate = 1e-3
warmup = 1
"""


def test_a_question_is_asked_on_a_recipe(run_lab: RunLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arms = (
        *TRAINING.arms,
        Arm("seven", LabText({"en": "seven heads", "zh": "七个头"}), {"model.n_heads": 7}),
        Arm("rows", LabText({"en": "more rows", "zh": "更多行"}), {"n_rows": 7}),
    )
    monkeypatch.setitem(QUESTIONS, "training", replace(TRAINING, arms=arms, n_seeds=2))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    result = run_lab("training", "--on", "recipe.toml", "--processes", 1)
    assert result.exit_code == 0
    assert "Left out: seven heads. model.n_heads = 7 does not divide model.width = 16. Use" in result.output
    assert "Left out: more rows. An arm changes n_rows, which a recipe does not have." in result.output
    assert "plain v one" in result.output
    page = (tmp_path / "runs/lab/training-on-recipe/report.html").read_text()
    assert (
        "seven" in page and "training loss, last 3 steps" in page and "manyheads lab training --on recipe.toml" in page
    )
    shown = run_lab("training", "--on", "recipe.toml", "--show")
    assert shown.output.strip().splitlines()[-4:] == result.output.strip().splitlines()[-4:]
    with pytest.raises(LabError, match=r"has the results on recipe\.toml"):
        run_lab("training", "--show", "-o", "runs/lab/training-on-recipe")


def test_shipped_results_are_never_shown_as_those_of_a_recipe(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    result = run_lab("scale", "--on", "recipe.toml", "--show")
    assert result.exit_code == 2
    assert "has no finished results on recipe.toml. Run" in result.output
    with pytest.raises(RecipeError, match=r"none\.toml: there is no such file"):
        run_lab("scale", "--on", "none.toml", "--show")


def test_an_unfinished_sweep_is_named_when_shipped_results_are_shown(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/rows.jsonl").write_text("")
    shown = run_lab("scale", "--show", "-o", "mine").output
    assert "mine has no finished results: these come with manyheads." in shown
    assert "These results come with manyheads." in shown


def test_a_file_is_not_a_folder(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_lab("scale", "--show", "-o", "file")
    assert result.exit_code == 2
    assert "file is a file. Give a folder with -o." in result.output


def test_a_recipe_on_which_nothing_can_run(run_lab: RunLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(QUESTIONS, "arithmetic", replace(ARITHMETIC, arms=ARITHMETIC.arms[:2]))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    with pytest.raises(LabError, match="fewer than two of its arms can run"):
        run_lab("arithmetic", "--on", "recipe.toml")


def test_the_quiz_asks_again_what_was_not_known() -> None:
    with language.using("en"):
        done = CliRunner().invoke(lab, ["cards", "--quiz"], input="\nn\n" + "\ny\n" * 4)
    assert done.exit_code == 0
    assert done.output.count("Enter shows the answer") == 6  # the input ends at the sixth
    first, *later = [part.splitlines()[-1] for part in _asked(done.output)]
    assert later.count(first) == 1
    assert done.output.endswith("\nYou knew 4 of 36 cards.\n")


def _asked(output: str) -> list[str]:
    """What was printed before each prompt."""
    return output.split("Enter shows the answer")[:-1]


@pytest.mark.parametrize("words", [["scale", "--quiz"], ["--quiz"], ["cards", "--quiz", "-o", "a.html"]])
def test_the_quiz_belongs_to_the_cards(words: list[str]) -> None:
    with language.using("en"):
        done = CliRunner().invoke(lab, words)
    assert done.exit_code == 2
    assert "--quiz belongs to manyheads lab cards, without -o." in done.output
