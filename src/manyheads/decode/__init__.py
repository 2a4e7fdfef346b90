"""The decode room: from a model's probabilities to ids.

Greedy search, beam search and sampling, all over one small protocol, `Stepper`, which any engine can follow: the
cached model, its slow uncached reference, later others. This room knows ids and tensors, never text; which ids mark
beginning, end and padding is told by the caller. May import model, settings and errors, nothing else of ours.
Start reading at `searching.py`.
"""

from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.searching import generate, search
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import CachedStepper, PlainStepper, Stepper
from manyheads.decode.streaming import Written, stream
from manyheads.decode.walk import IsOver

__all__ = [
    "CachedStepper",
    "DecodeSettings",
    "Hypothesis",
    "IsOver",
    "PlainStepper",
    "Stepper",
    "Written",
    "generate",
    "search",
    "stream",
]
