"""Quantization: the stored bundle is the measured one, and a large cost is refused."""

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
from manyheads.metrics import Change
from manyheads.model.weights import dequantize_weights, quantize_weights
from manyheads.tasks import Seq2Seq

from needs import needs_compiler


def test_round_trip_is_exact_to_half_a_step() -> None:
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
    assert torch.equal(quantize_weights(back)["a"], stored["a"])  # idempotent


@needs_compiler
def test_stored_bundle_is_the_measured_one(bundle_folder: Path, tmp_path: Path) -> None:
    bundle = load(bundle_folder)
    rows = [(f"The {word} sleeps.", f"{word} 睡觉。") for word in ("dog", "cat", "bird", "child")] * 3
    compressed = quantize(replace(bundle, decode=DecodeSettings(method="greedy")), rows)
    small = compressed.bundle
    assert compressed.report.engine == "native int8"
    assert small.int8 is not None
    assert small.int8["trade_off"]["change"]["n_texts"] == 12
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
    with pytest.raises(BundleError, match="quantized already"):
        quantize(loaded, rows)


@needs_compiler
def test_large_cost_is_refused(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def costly(*rest: object) -> TradeOff:
        return TradeOff(Change("BLEU", 39.5, 40.0, -0.5, -0.9, -0.1, 12), speedup=2.0, identical=0.8)

    monkeypatch.setattr(quantization, "measure_trade_off", costly)
    with pytest.raises(BundleError, match=r"Quantization would cost 0\.50 BLEU \(40\.00 → 39\.50 on 12 texts"):
        quantize(load(bundle_folder), [("a", "b")] * 12)
    with pytest.raises(BundleError, match=r"at most 0\.2 is accepted.*To accept this cost, add --max-cost 0\.5\."):
        quantize(load(bundle_folder), [("a", "b")] * 12)
    assert quantize(load(bundle_folder), [("a", "b")] * 12, max_cost=0.5).bundle.int8 is not None
