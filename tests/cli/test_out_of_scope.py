"""`predict` and `evaluate` of a classifier with texts that belong to no label."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from manyheads.bundle import Bundle
from manyheads.cli.root import commands
from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings

from tasks.small import make_task

ROWS = [
    (f"the {noun} was {adjective} {end}", "good" if adjective == "great" else "bad")
    for noun in ("film", "hotel", "meal")
    for adjective in ("great", "awful")
    for end in ("today", "indeed", "again")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("scope")
    task = make_task(Classify, ClassifySettings(), ROWS).calibrate(ROWS)
    Bundle(task, DecodeSettings(), {"data": {"train": ["t.tsv"]}, "task": {"kind": "classify"}}).save(path / "bundle")
    (path / "test.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in ROWS), encoding="utf-8")
    (path / "other.txt").write_text("blah blah blah\n\nWo ist der Zug?\n12345\n", encoding="utf-8")
    return path


def run(*words: object, stdin: str = "") -> Result:
    return CliRunner().invoke(commands, [str(word) for word in words], input=stdin)


def test_predict_warns_and_json_has_the_score(folder: Path) -> None:
    lines = "the film was great today\nblah blah blah\n"
    result = run("predict", folder / "bundle", stdin=lines)
    assert "1 line looks out of scope (line 2): probably no label fits." in result.stderr
    assert len(result.stdout.splitlines()) == 2
    rows = [json.loads(line) for line in run("predict", folder / "bundle", "--json", stdin=lines).stdout.splitlines()]
    assert rows[0]["out_of_scope"] < 0.5 < rows[1]["out_of_scope"] <= 1


def test_evaluate_with_a_file_of_other_texts(folder: Path) -> None:
    result = run("evaluate", folder / "bundle", folder / "test.tsv", "--out-of-scope", folder / "other.txt", "--json")
    scores = {score["name"]: score for score in json.loads(result.stdout)["test.tsv"]["scores"]}
    assert scores["out-of-scope AUROC (other.txt)"]["value"] > 90
    assert scores["out-of-scope found (other.txt)"]["n"] == 3
    assert scores["false alarms"]["value"] < 20
    assert "out-of-scope AUROC" in scores


def test_bad_input(folder: Path, bundle_folder: Path) -> None:
    (folder / "empty.txt").write_text("\n \n", encoding="utf-8")
    empty = run("evaluate", folder / "bundle", folder / "test.tsv", "--out-of-scope", folder / "empty.txt")
    assert "has no text. Give one text per line that belongs to no label." in str(empty.exception)
    generator = run("evaluate", bundle_folder, "--out-of-scope", folder / "other.txt")
    assert "--out-of-scope needs a classifier" in generator.output
