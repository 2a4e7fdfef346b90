"""Decoding: from the probabilities of a model to token ids.

Greedy search, sampling and beam search run over one small protocol, `Stepper`: the cached model, or the uncached model
as a slow reference. An `Engine` decodes whole batches of sources: `torch` runs these searches, `native` is a C
implementation that tests require to be token-identical. `EngineSelector` picks between them.

The package works on ids and tensors; the caller passes the ids of the special tokens. It imports model, settings
and errors. Start reading at `generate.py`.
"""

from manyheads.decode.constraints import Automaton, PhraseConstraint
from manyheads.decode.copying import copying_beam, n_extra, n_missing
from manyheads.decode.engines import ENGINES, Engine, EngineSelector
from manyheads.decode.generate import generate, search
from manyheads.decode.hypotheses import NO_REPEAT_NGRAM, Hypothesis, is_looping
from manyheads.decode.sampling import StoppingCriterion
from manyheads.decode.settings import DEFAULT_LENGTH_PENALTY, DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.decode.steppers import CachedStepper, Stepper, UncachedStepper
from manyheads.decode.streaming import GeneratedToken, stream
from manyheads.decode.torch_engine import TorchEngine

__all__ = [
    "DEFAULT_LENGTH_PENALTY",
    "ENGINES",
    "NO_REPEAT_NGRAM",
    "Automaton",
    "CachedStepper",
    "DecodeSettings",
    "Engine",
    "EngineSelector",
    "GeneratedToken",
    "Hypothesis",
    "PhraseConstraint",
    "Shortlist",
    "SpecialTokens",
    "Stepper",
    "StoppingCriterion",
    "TorchEngine",
    "UncachedStepper",
    "copying_beam",
    "generate",
    "is_looping",
    "n_extra",
    "n_missing",
    "search",
    "stream",
]
