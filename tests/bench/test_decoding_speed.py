"""Engines are measured on the same sources, and an endless model generates as much as requested."""

from dataclasses import replace

import pytest

from manyheads.bench.decoding_speed import (
    BEAM,
    GREEDY,
    BenchmarkCase,
    EngineComparison,
    make_endless_model,
    model_cases,
)
from manyheads.decode import ENGINES, Engine, SpecialTokens, TorchEngine
from manyheads.errors import EngineError
from manyheads.model import ModelSettings
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

SETTINGS = ModelSettings(
    vocab_size=300, width=16, feed_forward_width=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, max_length=64
)
SOURCES = [[*range(10, 10 + length), EOS] for length in (3, 9, 5, 7)]


def test_endless_model_generates_the_maximum_length() -> None:
    engine = TorchEngine(make_endless_model(SETTINGS), SpecialTokens(BOS, EOS, PAD, (PAD, UNK, BOS)))
    for settings in (GREEDY, BEAM):
        hypotheses = engine.generate(SOURCES, replace(settings, max_new_tokens=7), range(4))
        assert [len(best[0].ids) for best in hypotheses] == [7] * 4
        assert not any(best[0].finished for best in hypotheses)


def test_missing_engine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> Engine:
        raise EngineError("There is no compiler.")

    monkeypatch.setitem(ENGINES, "native", refuse)
    cases, missing = model_cases(make_endless_model(SETTINGS), SOURCES)
    assert [(one.engine, one.method, one.is_default) for one in cases] == [
        ("torch", "greedy", True),
        ("torch", "beam 5", True),
    ]
    assert [one.engine for one in missing] == ["native", "native int8"]
    assert {one.reason for one in missing} == {"There is no compiler."}


def test_fewer_sources_if_time_is_short_and_the_same_for_every_case() -> None:
    sizes: list[int] = []

    def decode(sources: object) -> None:
        sizes.append(len(sources))  # type: ignore[arg-type]

    comparison = EngineComparison(
        "x", SOURCES, n_latency=2, seconds=0.0, cases=[BenchmarkCase("a", "greedy", decode, True)] * 2
    )
    speeds = list(comparison.run())
    assert [(speed.n_sentences, len(speed.latency_seconds)) for speed in speeds] == [(2, 1), (2, 1)]
    assert sizes == [1, 1, 2, 2, *[1, 1, 2] * 2]
