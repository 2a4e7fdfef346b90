"""The bench room: how fast this machine trains and translates, and what that means for whoever sits at it.

`measure_machine` and `measure_bundle` yield what they find as they find it: a `Stage` that begins, the speed of matrix
products, of training, of each engine. `estimate_times` turns speeds into minutes for a corpus and seconds for a file. No
peer is needed and nothing is kept; comparisons with peers are in benchmarks/speed. May import recipe and below.
"""

from manyheads.bench.decoding_speed import DecodingSpeed, EngineComparison, MissingEngine
from manyheads.bench.flop import count_flop
from manyheads.bench.machine import SIZES, Event, Stage, measure_bundle, measure_machine, read_texts
from manyheads.bench.products import MatmulSpeed
from manyheads.bench.sentences import Sentences
from manyheads.bench.time_estimates import TimeEstimates, estimate_times
from manyheads.bench.training_speed import StepTiming, TrainingSpeed

__all__ = [
    "SIZES",
    "DecodingSpeed",
    "EngineComparison",
    "Event",
    "MatmulSpeed",
    "MissingEngine",
    "Sentences",
    "Stage",
    "StepTiming",
    "TimeEstimates",
    "TrainingSpeed",
    "count_flop",
    "estimate_times",
    "measure_bundle",
    "measure_machine",
    "read_texts",
]
