"""`manyheads walk`: what the command prints, and bad input is one line."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyheads.cli import main

from cli.conftest import Run

Here = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the command in this process, which is faster; return its exit code and its two streams."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["manyheads", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capsys.readouterr()
        return int(done.value.code or 0), out, err

    return run


def test_worked_example_from_the_shell(manyheads: Run) -> None:
    done = manyheads("walk")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 x3  30×50 + 36×122 + 42×194 = 1500 + 4392 + 8148 = 14040" in done.stdout
    assert "output  [ 50  194  122 ]" in done.stdout
    assert "Their K and V are wrong" in done.stdout
    assert "d_model = 9" in done.stdout
    assert "\x1b" not in done.stdout  # no color in a pipe
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("text", ["我爱水课", "猫在睡觉", "I love cats"])
def test_sentences(here: Here, text: str) -> None:
    code, out, err = here("walk", text, "--steps", "1,6-7")
    assert (code, err) == (0, "")
    assert re.findall(r"^ ?(\d+)  [A-Z]", out, re.MULTILINE) == ["1", "6", "7"]
    assert text in out
    assert "Untrained" in out


def test_json_has_every_number(here: Here) -> None:
    code, out, _ = here("walk", "我爱水课", "--layer", "decoder.0.self", "--query", "水", "--json")
    payload = json.loads(out)
    assert (code, payload["origin"], payload["attention"], payload["query"]) == (0, "untrained", "decoder.0.self", 3)
    assert payload["softmax"]["scores"][0][1] is None  # hidden
    weights, v = np.array(payload["softmax"]["weights"]), np.array(payload["v"])
    np.testing.assert_allclose(weights @ v, payload["weighted_sum"], atol=1e-12)
    np.testing.assert_allclose(np.array(payload["heads"]) @ np.array(payload["matrices"]["output"]), payload["output"])
    assert np.array(payload["terms"]).shape == (5, 5, 2)
    assert payload["contrast"]["scale"] == 1.0
    assert payload["written_names"] == ["我", "爱", "水", "课", "</s>"]
    block = payload["block"]
    assert (block["decoder"]["reads"], block["decoder"]["writes"]) == ("水", "课")
    assert {len(block["output"][name]) for name in ("logits", "probabilities", "names")} == {6}
    assert block["loss"]["targets"] == pytest.approx([0.02, 0.02, 0.02, 0.9, 0.02, 0.02], abs=1e-12)


def test_walk_of_a_bundle(here: Here, bundle_folder: Path) -> None:
    words = ("walk", bundle_folder, "Two cats are sleeping.", "--layer", "decoder.0.cross", "--head", "2")
    code, out, err = here(*words, "--answer", "两只猫在睡觉。", "--query", "0")
    assert (code, err) == (0, "")
    assert "→ 两只猫在睡觉。" in out
    assert "decoder.0.cross/2  (cross-attention)" in out
    assert "Untrained" not in out
    code, out, err = here("walk", bundle_folder, "猫在睡觉", "--steps", "1", "--answer", "猫")
    assert (code, err) == (0, "Warning: The text is not in English, the language that this model reads.\n")


def test_bad_input_is_one_line(here: Here, bundle_folder: Path) -> None:
    for words, code, message in (
        ([bundle_folder, "Two cats.", "--layer", "encoder.5.self"], 1, "Known: encoder.0.self, decoder.0.self,"),
        ([bundle_folder, "Two cats.", "--head", "7"], 1, "encoder.0.self has heads 0 to 3"),
        (
            [bundle_folder, "Two cats.", "--query", "dogs"],
            1,
            "There is no query 'dogs'. Give a word or its number: 0 ▁Two",
        ),
        ([bundle_folder, " "], 1, "The text is empty"),
        ([bundle_folder, "cats " * 99], 1, "this model reads at most 39"),
        (["nowhere", "Two cats."], 1, "nowhere: there is no such folder"),
        (["word " * 13], 1, "has 13 words"),
        (["word " * 60], 1, "has 60 words"),  # longer than a file's name may be
        ([""], 1, "The text is empty"),
        ([bundle_folder], 2, "Give a text too"),
        (["I", "love", "cats"], 2, 'Put the text in quotes: manyheads walk "I love cats".'),
        (["cats", "--steps", "9-17"], 2, "is not a list of steps from 1 to 16"),
        (["cats", "--steps", "2", "--json"], 2, "leave out --steps"),
        (["--head", "1"], 2, "The worked example has one head"),
    ):
        exit_code, out, err = here("walk", *words)
        assert (exit_code, out) == (code, ""), words
        assert message in err
        assert len([line for line in err.splitlines() if line.startswith("Error: ")]) == 1
