"""Every step of `manyheads walk --json` equals an independent computation with numpy, to 1e-9."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyheads.cli import main
from manyheads.cli.walk import json_of
from manyheads.walks import Walk, walk

from lens.makers import MODELS, TEXTS, task_of
from reference.slow_walk import Pair, steps, toy_model

TOLERANCE = 1e-9


def check(pairs: Iterable[Pair]) -> set[str]:
    """Compare all pairs; return their names."""
    names = set()
    for name, given, expected in pairs:
        np.testing.assert_allclose(np.array(given), expected, rtol=0, atol=TOLERANCE, err_msg=name)
        names.add(name)
    return names


def payload_of(walked: Walk, origin: str = "bundle") -> dict[str, Any]:
    return json.loads(json.dumps(json_of(walked, origin), allow_nan=False))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `manyheads walk … --json` and return what it prints."""

    def run(*words: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["manyheads", "walk", *words, "--json"])
        with pytest.raises(SystemExit):
            main()
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("layer", ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])
@pytest.mark.parametrize("words", [("I love cats",), ("我爱水课", "--answer", "I like it"), ("好",)], ids=str)
def test_toy_model(printed: Any, words: tuple[str, ...], layer: str) -> None:
    payload = printed(*words, "--layer", layer, "--head", "1")
    names = check(steps(payload))
    assert {"q", "softmax.weights", "contrast.weights", "source_embedding.positions", "sublayer.norm.output"} <= names
    assert {"norms.sample.with_padding.normalized", "feed_forward.activated", "decoder.cross.output"} <= names
    assert {"output.probabilities", "loss.targets", "loss.loss"} <= names
    assert len(check(toy_model(payload))) >= 5
    tenths = np.concatenate([np.ravel(value) for value in payload["block"]["weights"].values()]) * 10
    np.testing.assert_allclose(tenths, np.round(tenths), rtol=0, atol=1e-12)


def test_worked_example(printed: Any) -> None:
    names = check(steps(printed("--query", "x2")))
    assert {"products", "sublayer.residual", "sublayer.norm.output", "norms.batch.without_padding.normalized"} <= names


ARMS = {
    **MODELS,
    "swiglu, pre, untied": {"activation": "swiglu", "norm_placement": "pre", "tie_output": False},
    "gelu, sample norm": {"activation": "gelu", "norm": "sample"},
}


@pytest.mark.parametrize("model", ARMS)
@pytest.mark.parametrize("kind", ["seq2seq", "language", "classify"])
def test_models(kind: str, model: str) -> None:
    task = task_of(kind, model) if model in MODELS else task_of(kind, **ARMS[model])
    answer = " mat" if kind == "seq2seq" else None
    for attention in task.model.settings.attention_names():
        walked = walk(task, TEXTS[kind], answer=answer, layer=attention, head=1)
        names = check(steps(payload_of(walked)))
        assert ("loss.loss" in names) == (kind != "classify")
        assert ("decoder.cross.q" in names) == (kind == "seq2seq")


def test_the_script_imports_only_numpy() -> None:
    source = (Path(__file__).parent / "slow_walk.py").read_text("utf-8")
    assert "manyheads" not in source.split('"""', 2)[2]
    assert "torch" not in source


def test_a_wrong_number_is_noticed(printed: Any) -> None:
    payload = printed("I love cats")
    payload["block"]["feed_forward"]["output"][1][2] += 1e-8
    with pytest.raises(AssertionError, match="feed_forward"):
        check(steps(payload))
