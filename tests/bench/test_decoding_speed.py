"""Engines are asked the same, and an untrained model answers as long as it is asked."""

import pytest

from manyheads.bench.decoding_speed import (
    BEAM,
    GREEDY,
    BenchmarkCase,
    EngineComparison,
    make_endless_model,
    model_cases,
)
from manyheads.decode import SpecialTokens, TorchEngine
from manyheads.errors import EngineError
from manyheads.model import ModelSettings
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK

SETTINGS = ModelSettings(
    vocab_size=300, width=16, feed_forward_width=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, max_length=64
)
SOURCES = [[*range(10, 10 + length), EOS] for length in (3, 9, 5, 7)]


def test_an_endless_model_writes_as_much_as_it_reads() -> None:
    engine = TorchEngine(make_endless_model(SETTINGS), SpecialTokens(BOS, EOS, PAD, (PAD, UNK, BOS)))
    for settings in (GREEDY, BEAM):
        found = engine.generate(SOURCES, settings, range(4))
        assert [len(best[0].ids) for best in found] == [len(source) for source in SOURCES]
        assert not any(best[0].finished for best in found)


def test_an_engine_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise EngineError("There is no compiler.")

    monkeypatch.setattr("manyheads.bench.decoding_speed.make_native", refuse)
    monkeypatch.setattr("manyheads.bench.decoding_speed.make_ctranslate2", refuse)
    cases, missing = model_cases(make_endless_model(SETTINGS))
    assert [(one.engine, one.method, one.is_default) for one in cases] == [
        ("torch", "greedy", True),
        ("torch", "beam 5", True),
    ]
    assert [one.engine for one in missing] == ["native", "native int8", "ctranslate2"]
    assert {one.reason for one in missing} == {"There is no compiler."}


def test_sources_are_fewer_where_there_is_no_time_and_every_entrant_has_the_same() -> None:
    asked: list[int] = []

    def answer(sources: object) -> None:
        asked.append(len(sources))  # type: ignore[arg-type]

    comparison = EngineComparison(
        "x", SOURCES, n_latency=2, seconds=0.0, cases=[BenchmarkCase("a", "greedy", answer, True)] * 2
    )
    speeds = list(comparison.run())
    assert [(speed.n_sentences, len(speed.latency_seconds)) for speed in speeds] == [(2, 1), (2, 1)]
    assert asked == [1, 1, 2, 2, *[1, 1, 2] * 2]
