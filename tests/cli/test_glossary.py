"""`manyheads predict` with a glossary, words to keep, a prefix and abstaining."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from manyheads.bundle import Bundle
from manyheads.cli.predict import predict
from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings, Language, LanguageSettings
from manyheads.tasks.seq2seq.translation_search import Confidence

from tasks.makers import TOKENIZERS, make_model
from tasks.small import make_task


def run(*words: object, stdin: str = "The dog sleeps.\nA cat reads.\n") -> Result:
    return CliRunner().invoke(predict, [str(word) for word in words], input=stdin)


@pytest.fixture
def rated_folder(untrained: Bundle, tmp_path: Path) -> Path:
    """A bundle whose translations all have the confidence 0."""
    task = replace(untrained.task, confidence=Confidence([index / 100 for index in range(101)], 50.0, 20.0, 100))
    replace(untrained, task=task).save(tmp_path / "rated")
    return tmp_path / "rated"


def test_terms_kept_words_and_prefix(bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("# animals\ndog\t小狗\ncat\t猫儿\n", "utf-8")
    done = run(
        bundle_folder,
        "--glossary",
        tmp_path / "terms.tsv",
        "--keep",
        "reads",
        "--prefix",
        "那只",
        "--max-new-tokens",
        12,
    )
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert (first[:2], "小狗" in first, "猫儿" in first) == ("那只", True, False)
    assert (second[:2], "猫儿" in second, "reads" in second) == ("那只", True, True)
    assert "required term" not in done.stderr


def test_term_that_has_no_room_is_reported(bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text(f"dog\t{'小狗' * 60}\n", "utf-8")
    done = run(bundle_folder, "--glossary", tmp_path / "terms.tsv", "--json")
    assert "a required term lost in line 1" in done.stderr
    assert json.loads(done.stdout.splitlines()[0])["missing"] == ["小狗" * 60]


def test_abstained_lines_are_empty_and_reported(rated_folder: Path) -> None:
    done = run(rated_folder, "--abstain", 0.05)
    assert (done.exit_code, done.stdout) == (0, "\n\n")
    expected = (
        "Warning: 2 of 2 translations have a confidence below --abstain (lines 1, 2): their output lines are empty."
    )
    assert expected in done.stderr
    rows = [json.loads(line) for line in run(rated_folder, "--abstain", 0.05, "--json").stdout.splitlines()]
    assert [(row["abstained"], bool(row["candidates"][0]["text"])) for row in rows] == [(True, True)] * 2
    assert run(rated_folder, "--abstain", 0.05, "--beam", 2, "--n-best", 2).stdout == ""
    assert [line.strip() for line in run(rated_folder, "--abstain", 0.05, "--align").stdout.splitlines()] == ["", ""]
    assert "" not in run(rated_folder, "--abstain", 0).stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--glossary", "none.tsv"], "none.tsv"),
        (["--prefix", ""], "--prefix is empty"),
        (["--keep", " "], "A word of keep has no text"),
        (["--keep", "dog", "--sample"], "are not for samples"),
        (["--abstain", 0.5], "which this bundle does not have"),
        (["--abstain", 2], "is not in the range 0<=x<=1"),
        (["--prompt", "x", "--keep", "dog"], "--prompt is for language models"),
    ],
)
def test_refused(bundle_folder: Path, words: list[object], message: str) -> None:
    done = run(bundle_folder, *words)
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)


def test_refused_for_tasks_that_do_not_translate(tmp_path: Path) -> None:
    rows = [("a good film", "good"), ("a bad film", "bad")] * 20
    Bundle(make_task(Classify, ClassifySettings(), rows), DecodeSettings(), {}, {}).save(tmp_path / "classifier")
    tokenizer = TOKENIZERS["bpe"]
    language = Language.create(make_model(tokenizer, "decoder"), tokenizer, LanguageSettings())
    Bundle(language, DecodeSettings(), {}, {}).save(tmp_path / "language")
    for name, kind in (("classifier", "classify"), ("language", "language")):
        done = run(tmp_path / name, "--keep", "dog")
        assert f"--glossary, --keep and --prefix need a translation model; {tmp_path / name}" in done.output
        assert f"task {kind}" in done.output
    assert "--abstain needs a seq2seq model" in run(tmp_path / "language", "--abstain", 0.5).output
    assert "leave out --abstain" in run(tmp_path / "classifier", "--abstain", 0.5).output
