"""`DecodeSettings`: how a model's probabilities become ids, frozen and checked."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """How to search. The defaults are those of 2017."""

    method: Literal["greedy", "beam", "sample"] = "beam"
    beam: int = 4
    length_penalty: float = 0.6  # α of ((5 + length) / 6)^α, which divides the log-probability (Wu 2016)
    n_best: int = 1  # hypotheses to keep of a beam search, or samples to draw
    max_new_tokens: int = 50  # maximum length = input length + max_new_tokens; of a continuation, max_new_tokens
    stop: tuple[str, ...] = ()  # a continuation ends before the first of these

    temperature: float = 1.0
    top_k: int = 0  # draw among the k most probable; 0: among all
    top_p: float = 1.0  # draw among the fewest that hold this much probability together (Holtzman 2020)
    seed: int = 1

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "decode.") or self._faults())

    def _faults(self) -> list[str]:
        faults = [
            f"decode.{name} = {getattr(self, name)} must be at least 1."
            for name in ("beam", "n_best")
            if getattr(self, name) < 1
        ]
        faults += [
            f"decode.{name} = {getattr(self, name)} must not be negative."
            for name in ("max_new_tokens", "top_k", "seed")
            if getattr(self, name) < 0
        ]
        if "" in self.stop:
            faults.append('decode.stop has an empty text, which is everywhere. Use for instance stop = ["\\n\\n"].')
        # The bound by which beam.py stops is right for α ≥ 0 only; a huge α would overflow.
        if not 0 <= self.length_penalty <= 10:
            faults.append(f"decode.length_penalty = {self.length_penalty} must be at least 0 and at most 10.")
        if self.method == "beam" and self.n_best > self.beam >= 1:
            faults.append(
                f"decode.n_best = {self.n_best} is more than decode.beam = {self.beam} can find. Widen the beam."
            )
        if self.method == "greedy" and self.n_best > 1:
            faults.append(f'decode.n_best = {self.n_best}: decode.method = "greedy" finds one. Use "beam" or "sample".')
        if not 0 < self.temperature < math.inf:
            faults.append(
                f"decode.temperature = {self.temperature} must be greater than 0. "
                'For no chance at all, use decode.method = "greedy".'
            )
        if not 0 < self.top_p <= 1:
            faults.append(f"decode.top_p = {self.top_p} must be greater than 0 and at most 1.")
        return faults
