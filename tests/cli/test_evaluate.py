"""`manyheads evaluate`: scores that sacreBLEU reproduces, and comparisons with significance tests."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from manyheads.cli.root import commands
from manyheads.errors import BundleError, DataError

from cli.conftest import Run

SOURCES = ["The dog sleeps.", "A small cat reads the book.", "She sings.", "cat " * 90]
REFERENCES = ["那条狗在睡觉。", "一只小猫在看书。", "", "猫"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, lines in (("t.en", SOURCES), ("t.zh", REFERENCES)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), "utf-8")
    return tmp_path / "t.en", tmp_path / "t.zh"


def test_scores_equal_those_of_sacrebleu(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    done = manyheads("evaluate", bundle_folder, *files, "-o", "out.zh", "--examples", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert "t.en + t.zh: worst by chrF (2)" in done.stdout
    assert "t.en + t.zh: drawn at random (2)" in done.stdout
    assert "1 reference empty" in done.stdout
    for label in ("BLEU", "chrF", "TER", "length ratio", "copies of the source", "repetitions", "empty"):
        assert label in done.stdout

    payload = json.loads(manyheads("evaluate", bundle_folder, *files, "--json").stdout)["t.en + t.zh"]
    assert len((tmp_path / "out.zh").read_text("utf-8").split("\n")) == 4 + 1
    words = ["sacrebleu", "t.zh", "-i", "out.zh", "-m", "bleu", "chrf", "-tok", "zh", "-w", "6", "-f", "json"]
    theirs = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, check=True)
    assert [one["score"] for one in json.loads(theirs.stdout)] == [
        round(one["value"], 6) for one in payload["scores"][:2]
    ]
    assert payload["n_sentences"] == len(payload["worst"]) == 4
    assert (payload["n_too_long"], payload["n_empty_references"]) == (0, 1)


def test_comparison_with_other_output_and_another_bundle(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "other.zh").write_text("那条狗在睡觉。\n一只小猫在看书。\n\n猫\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, *files, "--against", "other.zh", "--examples", 0, "--tokenized")
    assert done.returncode == 0
    assert "compared with other.zh" in done.stdout
    assert "against 100.0: -" in done.stdout
    assert "BLEU (tokenized, lowercased)" in done.stdout
    assert "do not look tokenized" in done.stderr
    assert "worst by chrF" not in done.stdout

    done = manyheads("evaluate", bundle_folder, *files, "--against-bundle", bundle_folder, "--json")
    (payload,) = json.loads(done.stdout).values()
    assert [(one["name"], one["difference"], one["p_randomization"]) for one in payload["differences"]] == [
        ("BLEU", 0, 1),
        ("chrF", 0, 1),
    ]
    assert payload["against"] == str(bundle_folder)
    assert "too long" not in done.stderr  # long sources are translated in parts


def test_tokenized_references_raise_a_warning(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("The dog sleeps .\tder hund schläft .\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, "t.tsv")
    assert done.returncode == 0
    assert "the references look tokenized" in done.stderr
    assert "--tokenized" in done.stderr


def test_output_of_another_length_is_refused(
    manyheads: Run, bundle_folder: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "short.zh").write_text("猫\n", "utf-8")
    done = manyheads("evaluate", bundle_folder, *files, "--against", "short.zh")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: short.zh has 1 lines, but the test set has 4 sentences. "
        "Line n must be the other system's translation of sentence n; use an empty line where it has none.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["t.en", "t.zh", "--against", "missing.zh"], DataError, "missing.zh: there is no such file"),
        (["t.en", "t.zh", "--against", "t.zh", "--against-bundle", "b"], click.UsageError, "exclude each other"),
        (["t.en", "t.zh", "--against-bundle", "nowhere"], BundleError, "nowhere: there is no such folder"),
        (["t.en", "t.zh", "-o", "t.zh"], DataError, "t.zh is the file being read"),
        (["t.en", "t.zh", "-o", "t.en", "--against", "t.zh"], DataError, "t.en is the file being read"),
        (["t.en", "t.zh", "--test-set", "test"], click.UsageError, "Omit it, or omit DATA"),
        (["--test-set", "tset"], click.UsageError, "There is no test set 'tset'. Available: test, compositional"),
        (
            ["-o", "out.zh"],
            click.UsageError,
            "--output needs a single test set.*Choose one, as in --test-set test",
        ),
        (["--against", "t.zh"], click.UsageError, "--against needs a single test set"),
        (["t.en", "t.zh", "--examples", "-1"], click.UsageError, "-1 is not in the range"),
    ],
)
@pytest.mark.usefixtures("files")
def test_bad_input(
    bundle_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    kind: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.glob("*.*")}
    with pytest.raises(kind, match=message):
        commands(["evaluate", str(bundle_folder), *arguments], standalone_mode=False)
    assert {file: file.read_bytes() for file in tmp_path.glob("*.*")} == before


def test_help_explains_the_tokenized_protocol(manyheads: Run) -> None:
    text = " ".join(manyheads("evaluate", "--help").stdout.split())
    assert "not comparable with the default BLEU" in text
    assert "32.3" in text
