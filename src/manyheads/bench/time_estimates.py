"""From speeds to what they mean for whoever sits here: how long a corpus, a file, a sentence takes."""

from collections.abc import Iterable
from dataclasses import dataclass

from manyheads.bench.decoding_speed import DecodingSpeed
from manyheads.bench.training_speed import TrainingSpeed
from manyheads.init.pair_choices import count_epochs

N_PAIRS = 30_000
N_LINES = 10_000


@dataclass(frozen=True, kw_only=True)
class Training:
    """A corpus, learnt as often as `manyheads init` would propose."""

    model: str
    n_pairs: int
    n_epochs: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Translating:
    """A file and a sentence, by the engine that is used unless another is asked for."""

    model: str
    engine: str
    method: str
    n_lines: int
    seconds: float
    latency_ms: float  # one sentence


@dataclass(frozen=True)
class TimeEstimates:
    """All of it."""

    training: tuple[Training, ...]
    translating: tuple[Translating, ...]


def estimate_times(
    trained: Iterable[TrainingSpeed], decoded: Iterable[DecodingSpeed], tokens_a_pair: float = 0.0
) -> TimeEstimates:
    """`tokens_a_pair` are those of a target, EOS included."""
    n_epochs = count_epochs(N_PAIRS)
    return TimeEstimates(
        tuple(
            Training(
                model=speed.model,
                n_pairs=N_PAIRS,
                n_epochs=n_epochs,
                seconds=N_PAIRS * tokens_a_pair * n_epochs / speed.tokens_per_second,
            )
            for speed in trained
        ),
        tuple(
            Translating(
                model=speed.model,
                engine=speed.engine,
                method=speed.method,
                n_lines=N_LINES,
                seconds=N_LINES / speed.sentences_per_second,
                latency_ms=speed.latency_ms,
            )
            for speed in decoded
            if speed.is_default
        ),
    )
