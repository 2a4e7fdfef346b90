"""The bench room: how fast this machine trains and translates, and what that means for whoever sits at it.

`measure_machine` and `measure_bundle` yield what they find as they find it: a `Stage` that begins, the speed of matrix
products, of training, of each engine. `find_meaning` turns speeds into minutes for a corpus and seconds for a file. No
peer is needed and nothing is kept; comparisons with peers are in benchmarks/speed. May import recipe and below.
"""

from manyheads.bench.decoding import Contest, DecodingSpeed, Missing
from manyheads.bench.flop import count_flop
from manyheads.bench.machine import SIZES, Event, Stage, measure_bundle, measure_machine, read_texts
from manyheads.bench.meaning import Meaning, find_meaning
from manyheads.bench.products import Products
from manyheads.bench.sentences import Sentences
from manyheads.bench.training import TrainingSpeed, TrainingTurn

__all__ = [
    "SIZES",
    "Contest",
    "DecodingSpeed",
    "Event",
    "Meaning",
    "Missing",
    "Products",
    "Sentences",
    "Stage",
    "TrainingSpeed",
    "TrainingTurn",
    "count_flop",
    "find_meaning",
    "measure_bundle",
    "measure_machine",
    "read_texts",
]
