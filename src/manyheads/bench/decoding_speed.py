"""Decoding speed: the latency of one sentence, and the throughput of many."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any

import numpy as np
import torch

from manyheads.bundle import Bundle
from manyheads.data import plan_batches
from manyheads.decode import ENGINES, DecodeSettings, Engine, EngineSelector, SpecialTokens
from manyheads.errors import EngineError
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import PairTask, Task
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

Decode = Callable[[Sequence[Any]], object]  # decodes a batch

GREEDY = DecodeSettings(method="greedy")
BEAM = DecodeSettings(method="beam", beam=5)
_SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))
_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class DecodingSpeed:
    """The measurements of one engine and method."""

    model: str
    engine: str
    method: str
    is_default: bool  # whether `manyheads predict` would use it
    n_sentences: int  # in the batch
    latency_seconds: tuple[float, ...]  # for one sentence at a time: the mean of several, in each round
    batch_seconds: tuple[float, ...]  # for the whole batch, in each round

    @property
    def latency_ms(self) -> float:
        """Milliseconds for one sentence; the median over rounds."""
        return 1000 * median(self.latency_seconds)

    @property
    def sentences_per_second(self) -> float:
        """Throughput of the batch; the median over rounds."""
        return median(self.n_sentences / seconds for seconds in self.batch_seconds)


@dataclass(frozen=True)
class MissingEngine:
    """An engine that is not available, and why."""

    engine: str
    reason: str


@dataclass(frozen=True)
class BenchmarkCase:
    """One engine with one method."""

    engine: str
    method: str
    decode: Decode
    is_default: bool


@dataclass
class EngineComparison:
    """Several cases measured on the same sources. Cases alternate, so that other load affects them equally."""

    model: str
    sources: Sequence[Any]
    n_latency: int  # number of sources that are also decoded one at a time
    seconds: float  # no further round starts after this time
    cases: list[BenchmarkCase] = field(default_factory=list)

    def run(self) -> Iterator[DecodingSpeed]:
        """Measure one round at least, after a warm-up that decides how many sources fit into the time."""
        # Evenly spaced, since neighboring sources can be similar.
        sample = self.sources[:: max(1, len(self.sources) // self.n_latency)][: self.n_latency]
        latencies: list[list[float]] = [[] for _ in self.cases]
        batches: list[list[float]] = [[] for _ in self.cases]
        for case in self.cases:
            case.decode(sample[:1])
        seconds_per_source = sum(_time(case.decode, sample) for case in self.cases) / len(sample)
        sources = self.sources[: max(len(sample), int(self.seconds / seconds_per_source))]
        started = time.perf_counter()
        for _ in range(_ROUNDS):
            for number, case in enumerate(self.cases):
                latencies[number].append(fmean(_time(case.decode, [source]) for source in sample))
                batches[number].append(_time(case.decode, sources))
            if time.perf_counter() - started > self.seconds:
                break
        for number, case in enumerate(self.cases):
            yield DecodingSpeed(
                model=self.model,
                engine=case.engine,
                method=case.method,
                is_default=case.is_default,
                n_sentences=len(sources),
                latency_seconds=tuple(latencies[number]),
                batch_seconds=tuple(batches[number]),
            )


def _time(decode: Decode, sources: Sequence[Any]) -> float:
    started = time.perf_counter()
    decode(sources)
    return time.perf_counter() - started


def make_endless_model(settings: ModelSettings) -> Transformer:
    """An untrained model that never generates EOS, so that every engine generates the same number of tokens."""
    torch.manual_seed(1)
    model = Transformer(settings).eval()
    with torch.no_grad():
        model.output.weight[EOS] = 0.0  # one of thousands of other tokens always has a larger logit
    return model


def engine_variants() -> list[tuple[str, str, bool]]:
    """What is measured: the name to display, the engine, and whether it computes in int8."""
    engines = [(name, name, False) for name in ENGINES if name != "torch"]
    return [*engines, ("native int8", "native", True), ("torch", "torch", False)]


def model_cases(
    model: Transformer, sources: Sequence[Sequence[int]]
) -> tuple[list[BenchmarkCase], list[MissingEngine]]:
    """Greedy search with every available engine, and beam search with the default engine.

    Outputs are as long as an average source.
    """
    engines: list[tuple[str, Engine]] = []
    missing = []
    for label, name, is_int8 in engine_variants():
        try:
            engines.append((label, ENGINES[name](model, _SPECIAL_TOKENS, is_int8=is_int8, shortlist=None)))
        except EngineError as error:
            missing.append(MissingEngine(label, str(error)))
    length = round(fmean(len(source) for source in sources))
    cases = []
    for settings in (replace(GREEDY, max_new_tokens=length), replace(BEAM, max_new_tokens=length)):
        supported = [(label, engine) for label, engine in engines if not engine.unsupported(settings)]
        default = next(label for label, _ in supported if label != "native int8")
        cases += [
            BenchmarkCase(label, describe_method(settings), _decode_ids(engine, settings), label == default)
            for label, engine in supported
            if settings.method == "greedy" or label == default
        ]
    return cases, missing


def _decode_ids(engine: Engine, settings: DecodeSettings) -> Decode:
    def decode(sources: Sequence[Sequence[int]]) -> None:
        lengths = np.array([[len(source)] for source in sources])
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            engine.generate([sources[row] for row in batch.tolist()], settings, batch.tolist())

    return decode


def bundle_cases(bundle: Bundle) -> tuple[list[BenchmarkCase], list[MissingEngine]]:
    """Every engine that can decode for a bundle, with the bundle's settings and greedily."""
    task = bundle.task
    if not isinstance(task, PairTask):
        method = describe_method(bundle.decode) if task.model.settings.has_decoder else ""
        return [BenchmarkCase("torch", method, _predict(task, bundle.decode), True)], []
    cases, missing = [], {}
    is_int8_bundle = bundle.int8 is not None
    variants = [variant for variant in engine_variants() if not (is_int8_bundle and variant[0] == "native")]
    greedy = DecodeSettings(method="greedy", max_new_tokens=bundle.decode.max_new_tokens)
    for settings in dict.fromkeys((bundle.decode, greedy)):
        method, has_default = describe_method(settings), False
        for label, name, is_int8 in variants:
            selector = EngineSelector(name, is_int8=is_int8, is_silent=True)
            engine_task = task.with_engine(selector)
            if engine_task.engine_for(settings).name == "torch" and name != "torch":
                missing[label] = MissingEngine(label, f"{method}: {selector.fallback}")
                continue
            is_default = not has_default and (label != "native int8" or is_int8_bundle)
            has_default = has_default or is_default
            cases.append(BenchmarkCase(label, method, _predict(engine_task, settings), is_default))
    return cases, list(missing.values())


def _predict(task: Task, settings: DecodeSettings) -> Decode:
    single = replace(settings, repetition_guard=False, copy_guard=False)  # a second search would be one of PyTorch
    return lambda texts: task.predict(texts, single)


def describe_method(settings: DecodeSettings) -> str:
    """The method in a few words: greedy, beam 5, sample."""
    return f"beam {settings.beam}" if settings.method == "beam" else settings.method
