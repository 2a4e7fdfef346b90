"""Settings of the tag task."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.metrics import IntentRule
from manyheads.settings import raise_faults, type_faults
from manyheads.tasks.pooling import Pooling


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """How tags are chosen and learnt, and whether each text has an intent besides."""

    kind: Literal["tag"] = "tag"
    decoder: Literal["constrained", "crf"] = "crf"  # whether the steps from tag to tag are learnt, or only valid
    head_dropout: float = 0.2  # of what the tags are chosen by
    ngrams: int = 0  # up to so many words in a row also count by themselves, beside the Transformer; 0: none do
    ngram_dropout: float = 0.3  # of those runs
    swapping: float = 0.0  # of training spans, the share put in place of by another span of the same label
    smoothing: float = 0.0  # ε of label smoothing; with "crf" only of intents
    consistency: float = 0.0  # R-Drop's α: how much two passes with different dropout have to agree; 0: one pass

    intents: bool = False  # whether rows have a label besides their tags
    pooling: Pooling = "mean-max"  # how the tokens' vectors become the one that the intent is told by
    intent_weight: float = 0.3  # of the intent's loss beside that of the tags
    intent_rule: IntentRule = "strict"  # whether "a#b" is right only as a whole, or "a" is right too
    separator: str = "#"

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
