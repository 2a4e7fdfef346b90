"""The decode room: from a model's probabilities to ids.

Greedy search, beam search and sampling, all over one small protocol, `Stepper`: the cached model, or its slow uncached
reference. Above them an `Engine` turns sources into hypotheses: the model itself by these searches, or code made for
speed that is held to the same tokens. This room knows ids and tensors, never text; which ids mark
beginning, end and padding is told by the caller. May import model, settings and errors, nothing else of ours.
Start reading at `searching.py`.
"""

from manyheads.decode.engines import ChosenEngine, Engine, EngineName, Marks, ReferenceEngine
from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.searching import generate, search
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.shortlist import Shortlist
from manyheads.decode.steppers import CachedStepper, PlainStepper, Stepper
from manyheads.decode.streaming import Written, stream
from manyheads.decode.walk import IsOver

__all__ = [
    "CachedStepper",
    "ChosenEngine",
    "DecodeSettings",
    "Engine",
    "EngineName",
    "Hypothesis",
    "IsOver",
    "Marks",
    "PlainStepper",
    "ReferenceEngine",
    "Shortlist",
    "Stepper",
    "Written",
    "generate",
    "search",
    "stream",
]
