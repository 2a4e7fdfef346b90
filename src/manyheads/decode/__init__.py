"""The decode room: from a model's probabilities to ids.

Greedy search, beam search and sampling, all over one small protocol, `Stepper`: the cached model, or its slow uncached
reference. Above them an `Engine` turns sources into hypotheses: the model itself by these searches, or code made for
speed that is held to the same tokens. This room knows ids and tensors, never text; which ids mark
beginning, end and padding is told by the caller. May import model, settings and errors, nothing else of ours.
Start reading at `searching.py`.
"""

from manyheads.decode.engines import Engine, EngineName, EngineSelector, SpecialTokens, TorchEngine
from manyheads.decode.generate import generate, search
from manyheads.decode.greedy_sampling import StoppingCriterion
from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.shortlist import Shortlist
from manyheads.decode.steppers import CachedStepper, Stepper, UncachedStepper
from manyheads.decode.streaming import GeneratedToken, stream

__all__ = [
    "CachedStepper",
    "DecodeSettings",
    "Engine",
    "EngineName",
    "EngineSelector",
    "GeneratedToken",
    "Hypothesis",
    "Shortlist",
    "SpecialTokens",
    "Stepper",
    "StoppingCriterion",
    "TorchEngine",
    "UncachedStepper",
    "generate",
    "search",
    "stream",
]
