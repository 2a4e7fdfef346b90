"""Benchmark: how fast this machine trains and translates.

`measure_machine` and `measure_bundle` yield events: the `Measuring` that starts, the speed of matrix products, of
training and of each engine. `estimate_times` converts speeds to the time that a corpus or a file takes. Nothing is
stored. Comparisons with other libraries are in benchmarks/speed. May import init and everything below.
"""

from manyheads.bench.decoding_speed import DecodingSpeed, EngineComparison, MissingEngine
from manyheads.bench.machine import SIZES, Event, Measuring, measure_bundle, measure_machine, read_texts
from manyheads.bench.time_estimates import TimeEstimates, estimate_times
from manyheads.bench.training_speed import MatmulSpeed, Sentences, StepTiming, TrainingSpeed, count_flop

__all__ = [
    "SIZES",
    "DecodingSpeed",
    "EngineComparison",
    "Event",
    "MatmulSpeed",
    "Measuring",
    "MissingEngine",
    "Sentences",
    "StepTiming",
    "TimeEstimates",
    "TrainingSpeed",
    "count_flop",
    "estimate_times",
    "measure_bundle",
    "measure_machine",
    "read_texts",
]
