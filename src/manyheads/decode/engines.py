"""Engines: implementations of decoding, from the ids of sources to hypotheses.

    selector = EngineSelector("auto")
    hypotheses = selector.select(model, special_tokens, settings).generate(sources, settings, streams)

To add an engine, write a package with a builder (see `EngineBuilder`) and register it in `ENGINES`.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.native import make_native
from manyheads.decode.settings import DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.decode.torch_engine import TorchEngine, make_torch_engine
from manyheads.errors import EngineError
from manyheads.model import ModelSettings, Transformer
from manyheads.settings import did_you_mean

logger = logging.getLogger(__name__)


@runtime_checkable
class Engine(Protocol):
    """Decodes sources with one model."""

    @property
    def name(self) -> str:
        """The name to display."""

    @property
    def max_batch_tokens(self) -> int:
        """The largest useful batch, in tokens of the sources including padding."""

    def unsupported(self, settings: DecodeSettings) -> str:
        """The first setting that the engine does not support, as a noun phrase; empty if it supports all."""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first. Sources end with EOS; `streams` number the random streams."""


class EngineBuilder(Protocol):
    """Builds an engine for a model; raises `EngineError` if the engine does not support it or is not available."""

    def __call__(
        self, model: Transformer, special_tokens: SpecialTokens, *, is_int8: bool, shortlist: Shortlist | None
    ) -> Engine:
        """Build the engine. `is_int8` and `shortlist` are requests that an engine may ignore."""


ENGINES: dict[str, EngineBuilder] = {  # "auto" tries them in this order
    "native": make_native,
    "torch": make_torch_engine,
}


class EngineSelector:
    """Selects the engine that decodes for a model: the one with this name, or the fastest that can ("auto").

    An engine other than `torch` is built on first use and keeps its own copy of the weights. Each call compares the
    model with the one that was packed: if a weight was changed or replaced, the engine is built again, and if the
    model has gates or hooks, which only PyTorch runs, `torch` decodes. PyTorch does not count changes made through
    `Tensor.data`: call `reset` after them.
    """

    def __init__(self, name: str = "auto", *, is_int8: bool = False, shortlist: Shortlist | None = None) -> None:
        if name != "auto" and name not in ENGINES:
            raise EngineError(f'engine = "{name}" is not an engine. {did_you_mean(name, ["auto", *ENGINES])}')
        self.name, self.is_int8, self.shortlist = name, is_int8, shortlist
        self.used: str | None = None  # the engine of the latest call
        self.fallback: str | None = None  # why the latest call fell back to `torch`
        self._built: dict[str, _Built] = {}
        self._reported: set[str] = set()

    def select(self, model: Transformer, special_tokens: SpecialTokens, settings: DecodeSettings) -> Engine:
        """Return the engine for these settings. A fallback to `torch` is logged once."""
        self.fallback = None
        engine = next(self._candidates(model, special_tokens, settings), TorchEngine(model, special_tokens))
        self.used = engine.name
        return engine

    def reset(self) -> None:
        """Drop the packed copies of the weights; the next call builds the engine again."""
        self._built.clear()

    def _candidates(
        self, model: Transformer, special_tokens: SpecialTokens, settings: DecodeSettings
    ) -> Iterator[Engine]:
        for name in self._names(model):
            if reason := _needs_torch(model):
                self._fall_back(f"The {name} engine cannot run a model with {reason}.")
                continue
            try:
                engine = self._engine(name, model, special_tokens)
            except EngineError as error:
                self._fall_back(str(error))
                continue
            if lacking := engine.unsupported(settings):
                level = logging.DEBUG if self.name == "auto" else logging.WARNING
                self._fall_back(f"The {name} engine does not support {lacking}.", level)
                continue
            yield engine

    def _names(self, model: Transformer) -> list[str]:
        if self.name != "auto":
            return [] if self.name == "torch" else [self.name]
        # On a GPU, `torch` is the fast engine.
        return [name for name in ENGINES if name != "torch"] if model.device.type == "cpu" else []

    def _engine(self, name: str, model: Transformer, special_tokens: SpecialTokens) -> Engine:
        weights = list(_tensors(model))
        built = self._built.get(name)
        if built is None or not built.is_current(model, special_tokens, weights):
            if built is not None and isinstance(built.result, Engine):
                logger.info("The model has changed: building the %s engine again.", name)
            result: Engine | EngineError
            try:
                result = ENGINES[name](model, special_tokens, is_int8=self.is_int8, shortlist=self.shortlist)
            except EngineError as error:
                result = error
            built = self._built[name] = _Built.of(model, special_tokens, weights, result)
        if isinstance(built.result, EngineError):
            raise built.result
        return built.result

    def _fall_back(self, reason: str, level: int = logging.WARNING) -> None:
        self.fallback = reason
        if reason not in self._reported:
            self._reported.add(reason)
            logger.log(level, "Engine: torch. %s", reason)


@dataclass(frozen=True)
class _Built:
    """An engine, or the error that building it raised, and the state of the model that it was built from."""

    model: Transformer
    settings: ModelSettings
    special_tokens: SpecialTokens
    weights: Sequence[Tensor]
    # Aliases keep the packed storage alive, so that new weights cannot have its address.
    aliases: Sequence[Tensor]
    versions: Sequence[int]
    result: Engine | EngineError

    @classmethod
    def of(
        cls, model: Transformer, special_tokens: SpecialTokens, weights: Sequence[Tensor], result: Engine | EngineError
    ) -> "_Built":
        aliases, versions = [tensor.detach() for tensor in weights], [tensor._version for tensor in weights]
        return cls(model, model.settings, special_tokens, weights, aliases, versions, result)

    def is_current(self, model: Transformer, special_tokens: SpecialTokens, weights: Sequence[Tensor]) -> bool:
        """Whether the model still has the weights that the engine was built from."""
        if (self.model, self.settings, self.special_tokens) != (model, model.settings, special_tokens):
            return False
        if len(weights) != len(self.weights):
            return False
        packed = zip(weights, self.weights, self.aliases, self.versions, strict=True)
        return all(
            now is then and now._version == version and now.data_ptr() == alias.data_ptr()
            for now, then, alias, version in packed
        )


def _needs_torch(model: Transformer) -> str:
    """What of this model only PyTorch runs; empty if nothing."""
    if model.is_gated:
        return "gated heads"
    if any(tensor.is_inference() for tensor in _tensors(model)):
        return "weights made in inference mode, whose changes PyTorch does not count"
    # Outermost first: a hook can change anything.
    return "hooks" if any(module._forward_hooks or module._forward_pre_hooks for module in _modules(model)) else ""


def _modules(model: nn.Module) -> Iterator[nn.Module]:
    """The modules of a model. Three times as fast as `model.modules()`: it runs before every sentence."""
    waiting = [model]
    while waiting:
        module = waiting.pop()
        waiting.extend(child for child in module._modules.values() if child is not None)
        yield module


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """The parameters and buffers of a model; a shared one comes more than once."""
    for module in _modules(model):
        for tensor in (*module._parameters.values(), *module._buffers.values()):
            if tensor is not None:
                yield tensor
