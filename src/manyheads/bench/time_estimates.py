"""`estimate_times`: from measured speeds to the time that a corpus, a file and a sentence take."""

from collections.abc import Iterable
from dataclasses import dataclass

from manyheads.bench.decoding_speed import DecodingSpeed
from manyheads.bench.training_speed import TrainingSpeed
from manyheads.tasks.seq2seq.seq2seq_commands import count_pair_epochs

N_PAIRS = 30_000
N_LINES = 10_000


@dataclass(frozen=True, kw_only=True)
class Training:
    """Training on a corpus, for as many epochs as `manyheads init` proposes."""

    model: str
    n_pairs: int
    n_epochs: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Translating:
    """Translating a file and one sentence with the default engine."""

    model: str
    engine: str
    method: str
    n_lines: int
    seconds: float
    latency_ms: float  # one sentence


@dataclass(frozen=True)
class TimeEstimates:
    """The estimates for training and for translating."""

    training: tuple[Training, ...]
    translating: tuple[Translating, ...]


def estimate_times(
    trained: Iterable[TrainingSpeed], decoded: Iterable[DecodingSpeed], tokens_per_pair: float = 0.0
) -> TimeEstimates:
    """Estimate times; `tokens_per_pair` counts target tokens, EOS included."""
    n_epochs = count_pair_epochs(N_PAIRS)
    return TimeEstimates(
        tuple(
            Training(
                model=speed.model,
                n_pairs=N_PAIRS,
                n_epochs=n_epochs,
                seconds=N_PAIRS * tokens_per_pair * n_epochs / speed.tokens_per_second,
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
