"""Eight bits: what is stored is what was measured, and what costs too much is refused with the figure."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.bundle import load
from manyheads.compress import quantization
from manyheads.compress.quantization import quantize
from manyheads.compress.trade_off import TradeOff
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import BundleError
from manyheads.model.weights import dequantize_weights, quantize_weights
from manyheads.tasks import Seq2Seq


def test_a_matrix_comes_back_within_half_a_step() -> None:
    torch.manual_seed(0)
    weights = {"a": torch.randn(5, 30) * torch.tensor([[1e-3], [1.0], [0.0], [50.0], [1.0]]), "b": torch.randn(7)}
    stored = quantize_weights(weights)
    assert stored["a"].dtype == torch.int8
    assert stored["a"].abs().amax(1).tolist() == [127, 127, 0, 127, 127]
    back = dequantize_weights(stored)
    assert set(back) == {"a", "b"}
    assert torch.equal(back["b"], weights["b"])
    steps = weights["a"].abs().amax(1, keepdim=True) / 127
    assert ((back["a"] - weights["a"]).abs() <= steps * 0.5001).all()
    assert torch.equal(quantize_weights(back)["a"], stored["a"])  # once is enough


def test_what_is_stored_is_what_was_measured(bundle_folder: Path, tmp_path: Path) -> None:
    bundle = load(bundle_folder)
    rows = [(f"The {word} sleeps.", f"{word} 睡觉。") for word in ("dog", "cat", "bird", "child")] * 3
    small, trials = quantize(replace(bundle, decode=DecodeSettings(method="greedy")), rows)
    assert trials
    assert small.int8 is not None
    assert small.int8["trade_off"]["n_sentences"] == 12
    small.save(tmp_path / "small")
    loaded = load(tmp_path / "small")
    assert loaded.int8 == small.int8
    for ours, theirs in zip(loaded.task.model.parameters(), small.task.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert json.loads((tmp_path / "small" / "bundle.json").read_text())["format"] == 3
    sizes = [(folder / "weights.safetensors").stat().st_size for folder in (bundle_folder, tmp_path / "small")]
    assert sizes[1] < 0.4 * sizes[0]
    texts = [row[0] for row in rows]
    assert isinstance(small.task, Seq2Seq)
    measured = small.task.with_engine(EngineSelector("native", is_int8=True)).predict(texts, small.decode)
    assert loaded.predict(texts, method="greedy") == [one.answer for one in measured]
    with pytest.raises(BundleError, match="in eight bits already"):
        quantize(loaded, rows)


def test_what_costs_too_much_is_refused_with_the_figure(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def costly(*rest: object) -> TradeOff:
        return TradeOff(12, before=40.0, after=39.5, low=-0.9, high=-0.1, speedup=2.0, identical=0.8)

    monkeypatch.setattr(quantization, "measure_trade_off", costly)
    with pytest.raises(BundleError, match=r"cost this model 0\.50 BLEU \(40\.00 → 39\.50 on 12 sentences"):
        quantize(load(bundle_folder), [("a", "b")] * 12)
