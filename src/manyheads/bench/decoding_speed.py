"""How fast this machine answers: one sentence that somebody waits for, and many at once."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np
import torch

from manyheads.bundle import Bundle
from manyheads.data import plan_batches
from manyheads.decode import DecodeSettings, Engine, EngineName, SpecialTokens, TorchEngine
from manyheads.decode.ctranslate2 import make_ctranslate2
from manyheads.decode.native import make_native
from manyheads.errors import EngineError
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Task
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK

Answer = Callable[[Sequence[Any]], object]  # all of these, at once

# Without extra length a model that never ends writes as much as it reads.
GREEDY = DecodeSettings(method="greedy", max_new_tokens=0)
BEAM = DecodeSettings(method="beam", beam=5, max_new_tokens=0)
_SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))
_TURNS = 5


@dataclass(frozen=True, kw_only=True)
class DecodingSpeed:
    """What was seen of one engine."""

    model: str
    engine: str
    method: str
    is_default: bool  # whether it is what `manyheads predict` would use
    n_sentences: int  # that were given at once
    latency_seconds: tuple[float, ...]  # seconds for one sentence by itself, the mean of a few, in each turn
    batch_seconds: tuple[float, ...]  # seconds for all

    @property
    def latency_ms(self) -> float:
        """For one sentence by itself; the median over turns."""
        return 1000 * median(self.latency_seconds)

    @property
    def sentences_per_second(self) -> float:
        """Of many; the median over turns."""
        return median(self.n_sentences / seconds for seconds in self.batch_seconds)


@dataclass(frozen=True)
class MissingEngine:
    """An engine that is not there, and why."""

    engine: str
    reason: str


@dataclass(frozen=True)
class BenchmarkCase:
    """One way to answer."""

    engine: str
    method: str
    answer: Answer
    is_default: bool


@dataclass
class EngineComparison:
    """Several ways to answer the same, asked in turns, so that whatever else the machine does meets them alike."""

    model: str
    sources: Sequence[Any]
    n_latency: int  # how many of the sources are also answered one by one
    seconds: float  # after which no further turn begins
    cases: list[BenchmarkCase] = field(default_factory=list)

    def run(self) -> Iterator[DecodingSpeed]:
        """One turn at least, after one that does not count and tells how many sources there is time for."""
        # Spread over all of them: neighbours may be alike.
        few = self.sources[:: max(1, len(self.sources) // self.n_latency)][: self.n_latency]
        alone: list[list[float]] = [[] for _ in self.cases]
        together: list[list[float]] = [[] for _ in self.cases]
        for case in self.cases:
            case.answer(few[:1])
        a_turn = sum(_time(case.answer, few) for case in self.cases) / len(few)
        sources = self.sources[: max(len(few), int(self.seconds / a_turn))]
        started = time.perf_counter()
        for _ in range(_TURNS):
            for number, case in enumerate(self.cases):
                alone[number].append(fmean(_time(case.answer, [source]) for source in few))
                together[number].append(_time(case.answer, sources))
            if time.perf_counter() - started > self.seconds:
                break
        for number, case in enumerate(self.cases):
            yield DecodingSpeed(
                model=self.model,
                engine=case.engine,
                method=case.method,
                is_default=case.is_default,
                n_sentences=len(sources),
                latency_seconds=tuple(alone[number]),
                batch_seconds=tuple(together[number]),
            )


def _time(answer: Answer, sources: Sequence[Any]) -> float:
    started = time.perf_counter()
    answer(sources)
    return time.perf_counter() - started


def make_endless_model(settings: ModelSettings) -> Transformer:
    """An untrained model that never ends by itself, so that every engine has the same to write."""
    torch.manual_seed(1)
    model = Transformer(settings).eval()
    with torch.no_grad():
        model.output.weight[EOS] = 0.0  # of thousands of other words, one is always likelier than this
    return model


def model_cases(model: Transformer) -> tuple[list[BenchmarkCase], list[MissingEngine]]:
    """Every engine that is here, greedily; and the one that is chosen by default also with a beam."""
    engines: list[Engine] = []
    missing = []
    makers: dict[str, Callable[[], Engine]] = {
        "native": lambda: make_native(model, _SPECIAL_TOKENS),
        "native int8": lambda: make_native(model, _SPECIAL_TOKENS, is_int8=True),
        "ctranslate2": lambda: make_ctranslate2(model, _SPECIAL_TOKENS, None, lambda line: None),
        "torch": lambda: TorchEngine(model, _SPECIAL_TOKENS),
    }
    for name, make in makers.items():
        try:
            engines.append(make())
        except EngineError as error:
            missing.append(MissingEngine(name, str(error)))
    # As a `EngineSelector` does it: the first that can.
    cases = []
    for settings in (GREEDY, BEAM):
        able = [engine for engine in engines if not engine.unsupported(settings)]
        usual = next(engine for engine in able if engine.name != "native int8")
        cases += [
            BenchmarkCase(engine.name, name_method(settings), _answer_by(engine, settings), engine is usual)
            for engine in (able if settings is GREEDY else [usual])
        ]
    return cases, missing


def _answer_by(engine: Engine, settings: DecodeSettings) -> Answer:
    def answer(sources: Sequence[Sequence[int]]) -> None:
        lengths = np.array([[len(source)] for source in sources])
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            engine.generate([sources[row] for row in batch.tolist()], settings, batch.tolist())

    return answer


def bundle_cases(bundle: Bundle) -> tuple[list[BenchmarkCase], list[MissingEngine]]:
    """Every engine that can answer for a bundle, by its own settings and greedily."""
    task = bundle.task
    if not isinstance(task, Seq2Seq):
        method = name_method(bundle.decode) if bundle.kind == "language" else ""
        return [BenchmarkCase("torch", method, _predict_by(task, bundle.decode), True)], []
    cases, missing = [], []
    ways: dict[str, tuple[EngineName, bool]] = {
        "native": ("native", bundle.int8 is not None),
        "native int8": ("native", True),
        "ctranslate2": ("ctranslate2", bundle.int8 is not None),
        "torch": ("torch", False),
    }
    if bundle.int8 is not None:
        del ways["native"]
    greedy = DecodeSettings(method="greedy", max_new_tokens=bundle.decode.max_new_tokens)
    for settings in dict.fromkeys((bundle.decode, greedy)):
        has_default = False
        for name, (engine, is_int8) in ways.items():
            told: list[str] = []
            engine_task = task.with_engine(engine, tell=told.append, is_int8=is_int8)
            assert engine_task.engine is not None
            if engine_task.engine.choose(settings).name == "torch" and engine != "torch":
                missing.append(
                    MissingEngine(name, f"{name_method(settings)}: {told[-1] if told else 'it cannot do this.'}")
                )
                continue
            is_default = not has_default and (name != "native int8" or bundle.int8 is not None)
            has_default = has_default or is_default
            cases.append(BenchmarkCase(name, name_method(settings), _predict_by(engine_task, settings), is_default))
    return cases, list({one.engine: one for one in reversed(missing)}.values())


def _predict_by(task: Task, settings: DecodeSettings) -> Answer:
    return lambda texts: task.predict(texts, settings)


def name_method(settings: DecodeSettings) -> str:
    """As one says it: greedy, beam 5, sample."""
    return f"beam {settings.beam}" if settings.method == "beam" else settings.method
