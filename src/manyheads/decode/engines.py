"""Engines: who does the work between a source's ids and the hypotheses for it.

`torch` is the model itself: plain, exact, any setting, taps and gates. The others do the same faster for the
settings they know, and are held to the reference's very tokens. `EngineSelector` answers by the one that was asked
for, or by the fastest that can; where one that was named cannot, the reference does the work and the caller is told
why, once.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.decode.generate import generate
from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.shortlist import Shortlist
from manyheads.errors import DataError, EngineError
from manyheads.model import Transformer

EngineName = Literal["auto", "native", "ctranslate2", "torch"]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class SpecialTokens:
    """Which ids are not words."""

    bos: int
    eos: int
    pad: int
    forbidden: tuple[int, ...]  # are not written


@runtime_checkable
class Engine(Protocol):
    """Sources in, hypotheses out."""

    @property
    def name(self) -> str:
        """As the user calls it."""

    @property
    def max_batch_tokens(self) -> int:
        """How many tokens of sources, padding included, a call should hold at most."""

    def unsupported(self, settings: DecodeSettings) -> str:
        """What of these settings it cannot do, in a few words; nothing: it can."""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """What `decode.generate` gives for each source; EOS stands at the end of each."""


@dataclass(frozen=True)
class TorchEngine:
    """The model itself."""

    model: Transformer
    special_tokens: SpecialTokens
    name: str = "torch"
    max_batch_tokens: int = 4096

    def unsupported(self, settings: DecodeSettings) -> str:
        """Nothing."""
        return ""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Search with the cached model."""
        width, device = max(map(len, sources), default=0), self.model.device
        rows = [[*source, *[self.special_tokens.pad] * (width - len(source))] for source in sources]
        source: Int[Tensor, "B S"] = torch.tensor(rows, dtype=torch.long, device=device).reshape(len(rows), width)
        is_real: Bool[Tensor, "B S"] = source != self.special_tokens.pad
        return generate(
            self.model,
            source,
            is_real,
            bos=self.special_tokens.bos,
            eos=self.special_tokens.eos,
            forbidden=self.special_tokens.forbidden,
            settings=settings,
            streams=streams,
        )


class EngineSelector:
    """The engine that was asked for, made when it is first needed, and the reference for what it cannot do."""

    def __init__(
        self,
        model: Transformer,
        special_tokens: SpecialTokens,
        wanted: EngineName = "auto",
        folder: Path | None = None,
        tell: Tell = lambda line: None,
        *,
        is_int8: bool = False,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.wanted, self.tell, self.is_int8 = wanted, tell, is_int8
        self.shortlist = shortlist  # for those engines that know what to do with it: the others use all words
        self.torch_engine = TorchEngine(model, special_tokens)
        self.folder = folder  # of the bundle: what an engine has to keep is kept beside it
        self._candidates: list[Engine] | None = None
        self._told: set[str] = set()
        self.used = ""  # the name of the engine that answered last

    def choose(self, settings: DecodeSettings) -> Engine:
        """The first that can do what these settings ask for; tells when that is not the one that was named."""
        if self._candidates is None:
            self._candidates = [*self._make(), self.torch_engine]
        reasons = []
        for engine in self._candidates:
            if not (lacking := engine.unsupported(settings)):
                break
            reasons.append(f"the {engine.name} engine has no {lacking}")
        if reasons and self.wanted != "auto":
            self._tell_once(f"Engine: {engine.name}, since {' and '.join(reasons)}.")
        self.used = engine.name
        return engine

    def _make(self) -> list[Engine]:
        model, special_tokens = self.torch_engine.model, self.torch_engine.special_tokens
        made: list[Engine] = []
        precision: Literal["float32", "int8"] = "int8" if self.is_int8 else "float32"
        for name in ("native", "ctranslate2") if self.wanted == "auto" else (self.wanted,):
            try:
                match name:
                    case "native":
                        from manyheads.decode.native import make_native

                        made.append(
                            make_native(
                                model, special_tokens, self.tell, is_int8=self.is_int8, shortlist=self.shortlist
                            )
                        )
                    case "ctranslate2":
                        from manyheads.decode.ctranslate2 import make_ctranslate2

                        made.append(
                            make_ctranslate2(model, special_tokens, self.folder, self.tell, precision=precision)
                        )
            except EngineError as error:
                if name == self.wanted:
                    self._tell_once(f"Engine: torch. {error}")
            if made:
                break
        return made

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.tell(line)


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_lengths(sources: Sequence[Sequence[int]], max_length: int) -> None:
    """Say so where a source has more places than an engine has positions for."""
    longest = max(map(len, sources), default=0)
    if longest > max_length:
        raise DataError(f"A sequence of {longest} tokens is longer than this model's {max_length}. Split the text.")
