"""manyheads evaluate: a scorecard that others can check, and a comparison that does not flatter."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import click
import pytest
from rich.console import Console

from manyheads.cli.root import commands
from manyheads.cli.scorecard import show_cards, show_differences
from manyheads.errors import BundleError, DataError
from manyheads.metrics import Difference, TranslationCard

from cli.conftest import Run

SOURCES = ["The dog sleeps.", "A small cat reads the book.", "She sings.", "cat " * 90]
REFERENCES = ["那条狗在睡觉。", "一只小猫在看书。", "", "猫"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, lines in (("t.en", SOURCES), ("t.zh", REFERENCES)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), "utf-8")
    return tmp_path / "t.en", tmp_path / "t.zh"


def test_the_scorecard_and_a_file_that_sacrebleu_scores_the_same(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    done = manyheads("evaluate", bundle_folder, *files, "-o", "out.zh", "--examples", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert "t.en + t.zh: 2 of 4 sentences, worst by chrF" in done.stdout
    assert "t.en + t.zh: 2 of 4 sentences, drawn at random" in done.stdout
    assert "1 source is too long for the model" in done.stdout
    assert "1 reference is empty" in done.stdout
    for label in ("BLEU", "chrF", "TER", "length to reference", "copies of the source", "repetitions", "empty"):
        assert label in done.stdout

    payload = json.loads(manyheads("evaluate", bundle_folder, *files, "--json").stdout)["t.en + t.zh"]
    assert len((tmp_path / "out.zh").read_text("utf-8").split("\n")) == 4 + 1
    words = ["sacrebleu", "t.zh", "-i", "out.zh", "-m", "bleu", "chrf", "-tok", "zh", "-w", "6", "-f", "json"]
    theirs = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, check=True)
    assert [one["score"] for one in json.loads(theirs.stdout)] == [
        round(one["value"], 6) for one in payload["scores"][:2]
    ]
    assert payload["n_sentences"] == len(payload["worst"]) == 4
    assert (payload["n_too_long"], payload["n_empty_references"]) == (1, 1)


def test_against_other_output_and_against_another_bundle(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "other.zh").write_text("那条狗在睡觉。\n一只小猫在看书。\n\n猫\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, *files, "--against", "other.zh", "--examples", 0, "--tokenized")
    assert done.returncode == 0
    assert "compared with other.zh" in done.stdout
    assert "against 100.0: -" in done.stdout
    assert "BLEU (tokenized, lowercased)" in done.stdout
    assert "do not look tokenized" in done.stderr
    assert "sentences, worst" not in done.stdout

    done = manyheads("evaluate", bundle_folder, *files, "--against-bundle", bundle_folder, "--json")
    (payload,) = json.loads(done.stdout).values()
    assert [(one["name"], one["difference"], one["p_randomization"]) for one in payload["differences"]] == [
        ("BLEU", 0, 1),
        ("chrF", 0, 1),
    ]
    assert payload["against"] == str(bundle_folder)
    assert "cannot read 1 of the sources" in done.stderr


def test_references_that_look_tokenized_are_pointed_out(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("The dog sleeps .\tder hund schläft .\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, "t.tsv")
    assert done.returncode == 0
    assert "look tokenized already" in done.stderr
    assert "--tokenized" in done.stderr


def test_an_output_of_another_length_is_one_clear_line(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "short.zh").write_text("猫\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, *files, "--against", "short.zh")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: short.zh has 1 lines, but the test set has 4 sentences. "
        "Line n must be the other system's translation of sentence n, an empty line where it has none.\n"
    )


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        (["t.en", "t.zh", "--against", "missing.zh"], DataError, "missing.zh: there is no such file"),
        (["t.en", "t.zh", "--against", "t.zh", "--against-bundle", "b"], click.UsageError, "exclude one another"),
        (["t.en", "t.zh", "--against-bundle", "nowhere"], BundleError, "nowhere: there is no such folder"),
        (["t.en", "t.zh", "-o", "t.zh"], DataError, "t.zh is the file being read"),
        (["t.en", "t.zh", "-o", "t.en", "--against", "t.zh"], DataError, "t.en is the file being read"),
        (["t.en", "t.zh", "--test-set", "test"], click.UsageError, "leave it out, or DATA"),
        (["--test-set", "tset"], click.UsageError, "There is no test set 'tset'. There is: test, compositional"),
        (
            ["-o", "out.zh"],
            click.UsageError,
            "--output is for one test set.*Choose one with --test-set, as in --test-set test",
        ),
        (["--against", "t.zh"], click.UsageError, "--against is for one test set"),
        (["t.en", "t.zh", "--examples", "-1"], click.UsageError, "-1 is not in the range"),
    ],
)
@pytest.mark.usefixtures("files")
def test_bad_input(
    bundle_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    kind: type[Exception],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.glob("*.*")}
    with pytest.raises(kind, match=told):
        commands(["evaluate", str(bundle_folder), *words], standalone_mode=False)
    assert {file: file.read_bytes() for file in tmp_path.glob("*.*")} == before


def test_help_says_what_the_published_protocol_is_for(manyheads: Run) -> None:
    text = " ".join(manyheads("evaluate", "--help").stdout.split())
    assert "not comparable with the default BLEU" in text
    assert "32.3" in text


CARD = TranslationCard(
    scores=[],
    n_sentences=200,
    length_ratio=0.87,
    n_copies=3,
    n_wrong_copies=2,
    n_repetitions=10,
    n_empty=0,
    n_empty_references=0,
    n_cut_off=1,
    n_too_long=0,
    worst=[],
    random=[],
)


def draw(show: object, *given: object) -> str:
    stream = StringIO()
    show(*given, Console(file=stream, width=80, no_color=True, highlight=False))  # type: ignore[operator]
    return stream.getvalue()


def test_counts_come_with_their_share() -> None:
    text = draw(show_cards, {"test": CARD, "compositional": CARD})
    assert "held-out test" in text
    assert "unseen combinations" in text
    for label, cell in (("照抄原文", "3 (1.5 %)"), ("重复", "10 (5.0 %)"), ("长度比", "0.87"), ("空译文", "0")):
        (line,) = (line for line in text.splitlines() if label in line)
        assert line.split(label)[1].split("  ")[-1].strip() in (cell, "")
        assert line.count(cell) >= 2
    assert "2 translations were cut off" in text


@pytest.mark.parametrize(
    ("difference", "p", "verdict"),
    [
        (1.2, 0.01, "better"),
        (-1.2, 0.01, "worse"),
        (1.2, 0.2, "no clear difference"),
        (0.0, 1.0, "no clear difference"),
    ],
)
def test_a_difference_that_may_be_luck_is_called_no_difference(difference: float, p: float, verdict: str) -> None:
    one = Difference(
        "BLEU (tokenized, lowercased)",
        40 + difference,
        40,
        difference,
        difference - 1,
        difference + 1,
        0.0004,
        p,
        "tok:13a",
    )
    text = draw(show_differences, [one])
    assert verdict in text
    assert f"40.0: {difference:+.2f} [{difference - 1:+.2f}, {difference + 1:+.2f}]" in text
    assert f"p = <0.001 bootstrap, {p:.3f} randomization" in text
    assert len(text.splitlines()) == 2  # 80 columns are enough
