"""`manyheads evaluate --confusion`: the confusion matrix as a picture."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from manyheads.cli.evaluate import evaluate
from manyheads.metrics import Card, label_card, language_card


@dataclass
class FakeTask:
    """A task that returns a given scorecard."""

    card: Card
    settings: object = None

    def fields(self, settings: object) -> tuple[str, ...]:
        return "text", "label"

    def read(self, files: Sequence[str], columns: object, settings: object) -> Iterator[tuple[str, ...]]:
        yield ("a text", "good")

    def score(self, rows: Sequence[object], settings: object, progress: Callable[[int], None]) -> Card:
        return self.card


@dataclass
class Loaded:
    task: FakeTask
    decode: object = None
    recipe: dict[str, object] = field(default_factory=lambda: {"data": {"train": ["train.tsv"]}})
    validation_used_for: tuple[str, ...] = ()


def run(card: Card, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr("manyheads.cli.evaluate.check_inputs", lambda bundle, data: None)
    monkeypatch.setattr("manyheads.bundle.load", lambda path, device: Loaded(FakeTask(card)))
    result = CliRunner().invoke(evaluate, ["bundle", "test.txt", *arguments])
    return result.exit_code, result.output


def test_picture_is_written_and_the_scorecard_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
    card = label_card(["a", "b"], [("bad",), ("good",)], [("bad",)] * 2, probabilities, ["bad", "good"], n_resamples=5)
    path = tmp_path / "matrix.svg"
    code, output = run(card, monkeypatch, "--confusion", str(path))
    assert code == 0
    assert "accuracy" in output
    assert "good → bad: 1 (100.0 %)" in "".join(ElementTree.parse(path).getroot().itertext())


def test_card_without_a_matrix_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = language_card([3.0], [1], [4], [1], [4], n_resamples=5)
    code, output = run(card, monkeypatch, "--confusion", str(tmp_path / "matrix.svg"))
    assert code == 2
    assert "There is no confusion matrix" in output
    assert not list(tmp_path.iterdir())
