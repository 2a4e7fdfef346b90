"""`DecodeSettings`: how probabilities become token ids. `SpecialTokens`: the ids that are not words."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults

_EXTRA_TOKENS = 50  # Vaswani 2017, section 6.1: "maximum output length during inference to input length + 50"


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the special tokens."""

    bos: int
    eos: int
    pad: int
    forbidden: tuple[int, ...]  # are never generated


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """How to decode. The defaults are those of Vaswani 2017."""

    # "greedy" takes the most probable token at each step, "beam" keeps several hypotheses, "sample" draws at random.
    method: Literal["greedy", "beam", "sample"] = "beam"
    beam: int = 4  # number of hypotheses that beam search keeps at each step
    length_penalty: float = 0.6  # α of ((5 + length) / 6)^α, which divides the log-probability (Wu 2016)
    n_best: int = 1  # number of hypotheses to return: of a beam search, or samples
    max_new_tokens: int | None = None  # the most tokens to generate; default: the source's + 50, or 50 after a prompt
    stop: tuple[str, ...] = ()  # generation after a prompt ends before the first of these texts

    temperature: float = 1.0  # sampling temperature; lower is more deterministic
    top_k: int | None = None  # sample from the k most probable tokens; default: all
    top_p: float = 1.0  # sample from the smallest set of tokens with this total probability (Holtzman 2020)
    seed: int = 1  # seed of sampling

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "decode.") or self._faults())

    def max_length(self, source_length: int = 0) -> int:
        """The maximum number of tokens to generate, EOS included, for a source of this length (0: for a prompt)."""
        return source_length + _EXTRA_TOKENS if self.max_new_tokens is None else self.max_new_tokens

    def _faults(self) -> list[str]:
        faults = [
            f"decode.{name} = {value} must be at least 1."
            for name in ("beam", "n_best", "top_k")
            if (value := getattr(self, name)) is not None and value < 1
        ]
        faults += [
            f"decode.{name} = {value} must not be negative."
            for name in ("max_new_tokens", "seed")
            if (value := getattr(self, name)) is not None and value < 0
        ]
        if "" in self.stop:
            faults.append('decode.stop contains an empty text. Use a text such as stop = ["\\n\\n"].')
        # The early stopping of beam search is exact only for α ≥ 0; a huge α would overflow.
        if not 0 <= self.length_penalty <= 10:
            faults.append(f"decode.length_penalty = {self.length_penalty} must be at least 0 and at most 10.")
        if self.method == "beam" and self.n_best > self.beam >= 1:
            faults.append(
                f"decode.n_best = {self.n_best} is more than decode.beam = {self.beam}. Use a wider beam or a smaller "
                "n_best."
            )
        if self.method == "greedy" and self.n_best > 1:
            faults.append(
                f'decode.n_best = {self.n_best}: decode.method = "greedy" finds one hypothesis. Use "beam" or "sample".'
            )
        if not 0 < self.temperature < math.inf:
            faults.append(
                f"decode.temperature = {self.temperature} must be greater than 0. "
                'For deterministic output, use decode.method = "greedy".'
            )
        if not 0 < self.top_p <= 1:
            faults.append(f"decode.top_p = {self.top_p} must be greater than 0 and at most 1.")
        return faults
