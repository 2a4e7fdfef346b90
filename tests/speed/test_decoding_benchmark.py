"""The decoding benchmark: all contenders get the same work, and its tables report the measurements."""

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from manyheads.decode import DecodeSettings, TorchEngine
from manyheads.model import ModelSettings, Transformer

SPEED = Path(__file__).parents[2] / "benchmarks" / "speed"
SMALL = {
    "vocab_size": 40, "width": 16, "n_encoder_layers": 1, "n_decoder_layers": 1, "feed_forward_width": 24,
    "n_heads": 2, "max_length": 64, "dropout": 0.0,
}  # fmt: skip


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SPEED))
    import decoding

    return decoding


def data(decoding: ModuleType, count: int) -> Any:
    return decoding.BenchmarkData({}, [[4, 3]] * count)


def test_slow_contenders_get_every_sentence_over_all_turns(decoding: ModuleType) -> None:
    case, task = decoding.CASES["multi30k"], decoding.Task("ids", 1)
    slow, fast = decoding.CONTENDERS["Hugging Face"], decoding.CONTENDERS["native"]
    benchmark_data = data(decoding, 1000)
    turns = [decoding.choose_rows(benchmark_data, case, task, slow, turn, 3) for turn in range(decoding.SHARE)]
    assert sorted(row for rows in turns for row in rows) == list(range(1000))
    assert all(len(rows) >= 3 * decoding.BATCH for rows in turns)
    assert decoding.choose_rows(benchmark_data, case, task, fast, 1, 3) == list(range(1000))


def test_single_sentences_are_distinct_and_the_same_for_all_contenders(decoding: ModuleType) -> None:
    case, task, benchmark_data = decoding.CASES["multi30k"], decoding.Task("alone", 5), data(decoding, 1000)
    by_contender = [
        [row for turn in range(3) for row in decoding.choose_rows(benchmark_data, case, task, contender, turn, 3)]
        for contender in decoding.CONTENDERS.values()
    ]
    assert all(rows == by_contender[0] for rows in by_contender)
    assert len(set(by_contender[0])) == case.n_alone


def test_ratios_compare_seconds_per_sentence_turn_by_turn(decoding: ModuleType) -> None:
    draw = sys.modules["draw_decoding"]
    ours = [{"cpu": 1.0, "n_sentences": 100}, {"cpu": 4.0, "n_sentences": 100}, {"cpu": 1.0, "n_sentences": 100}]
    theirs = [{"cpu": 0.5, "n_sentences": 10}, {"cpu": 2.0, "n_sentences": 10}, {"cpu": 0.3, "n_sentences": 10}]
    assert draw.times_faster(ours, theirs) == pytest.approx(5.0)
    alone = [{"cpu": [0.001, 0.002], "n_sentences": 2}, {"cpu": [0.004], "n_sentences": 1}]
    assert draw.format_speed("alone, greedy", alone) == "2.0 ms"
    assert draw.format_speed("file, greedy", ours) == "100 /s"


def test_exported_model_generates_the_same_tokens(decoding: ModuleType, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    torch.manual_seed(1)
    model = Transformer(ModelSettings(**SMALL)).eval()  # type: ignore[arg-type]
    tokens = ["<pad>", "<unk>", "<s>", "</s>", *(f"word{number}" for number in range(36))]
    folder = decoding.export_with_tokens(model, tmp_path / "exported", tokens)
    sources = [[5, 9, 17, 3], [30, 8, 3]]
    results = ctranslate2.Translator(str(folder), intra_threads=1).translate_batch(
        [[tokens[number] for number in source] for source in sources],
        beam_size=1,
        # By default CTranslate2 generates special tokens, and never an empty output.
        suppress_sequences=[[tokens[number]] for number in decoding.SPECIAL_TOKENS.forbidden],
        min_decoding_length=0,
        max_decoding_length=8,
    )
    settings = DecodeSettings(method="greedy", max_new_tokens=8)
    expected = TorchEngine(model, decoding.SPECIAL_TOKENS).generate(sources, settings, [0, 1])
    for result, hypotheses in zip(results, expected, strict=True):
        output = [tokens[number] for number in hypotheses[0].ids][:8]
        assert result.hypotheses[0] == output and output


@pytest.mark.proof
def test_whole_benchmark_with_table_and_bars(decoding: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BASE", SMALL)
    case = decoding.Case(
        (decoding.Task("ids", 1, 32), decoding.Task("alone", 5)), ("native", "torch"),
        n_turns=2, n_alone=4, n_tuning=4,
    )  # fmt: skip
    record = decoding.measure("base", case, argparse.Namespace(turns=0, core=None, folder=Path("unused")))
    assert record["failed"] == {}
    assert record["tasks"]["32 ids, greedy"]["torch"]["same_as_native"] == 1.0
    draw = sys.modules["draw_decoding"]
    assert "| native than torch |" in draw.decoding_table({"base": record})
    assert [len(bars) for bars in draw.decoding_bars({"base": record}).values()] == [2, 2]
