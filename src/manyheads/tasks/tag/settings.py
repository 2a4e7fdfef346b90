"""Settings of the tag task."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.metrics import IntentRule
from manyheads.settings import raise_faults, type_faults
from manyheads.tasks.pooling import Pooling


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """How tags are decoded and trained, and whether each text also has an intent."""

    kind: Literal["tag"] = "tag"  # predict the labeled spans of a text
    decoder: Literal["constrained", "crf"] = "crf"  # crf: learned transitions; constrained: only valid ones
    head_dropout: float = 0.2  # dropout before the output layer
    ngrams: int = 0  # also score n-grams of up to this many words beside the Transformer; 0: none
    ngram_dropout: float = 0.3  # dropout of n-grams
    swapping: float = 0.0  # share of training spans replaced by another span of the same label
    smoothing: float = 0.0  # ε of label smoothing; with "crf" only for intents
    consistency: float = 0.0  # R-Drop's α: weight of the agreement of two passes with different dropout; 0: one pass

    intents: bool = False  # rows have an intent besides their tags
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text, for the intent
    intent_weight: float = 0.3  # weight of the intent loss beside the tag loss
    intent_rule: IntentRule = "strict"  # strict: "a#b" must be predicted as a whole; else "a" is correct, too
    separator: str = "#"  # between the parts of an intent such as "a#b"

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        faults = [
            f"task.{name} = {getattr(self, name)} must be at least 0 and less than 1."
            for name in ("head_dropout", "ngram_dropout", "smoothing")
            if not 0.0 <= getattr(self, name) < 1.0
        ]
        if not 0 <= self.ngrams <= 5:
            faults.append(f"task.ngrams = {self.ngrams} must be at least 0 and at most 5.")
        if not 0.0 <= self.swapping <= 1.0:
            faults.append(f"task.swapping = {self.swapping} must be at least 0 and at most 1.")
        faults += [
            f"task.{name} = {getattr(self, name)} must be at least 0 and finite."
            for name in ("consistency", "intent_weight")
            if not 0.0 <= getattr(self, name) < math.inf
        ]
        return faults
