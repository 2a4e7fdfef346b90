"""Engines: implementations of decoding, from the ids of sources to hypotheses.

    selector = EngineSelector("auto")
    hypotheses = selector.select(model, special_tokens, settings).generate(sources, settings, streams)

To add an engine, write a package with a builder (see `EngineBuilder`) and register it in `ENGINES`.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor

from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.native import make_native
from manyheads.decode.settings import DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.decode.torch_engine import TorchEngine, make_torch_engine
from manyheads.errors import EngineError
from manyheads.messages import _
from manyheads.model import Transformer
from manyheads.settings import did_you_mean

_MANY_TEXTS = 5_000  # from here on, decoding takes so long that a faster engine is worth a line

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


class ModelSnapshot:
    """The modules and weights of a model and their version counters, to detect any later change.

    It is compared before every batch. `Module.modules` and `Module.parameters` would take longer than a short sentence.
    """

    def __init__(self, model: Transformer, special_tokens: SpecialTokens) -> None:
        self.model, self.settings, self.special_tokens = model, model.settings, special_tokens
        self.modules = list(model.modules())
        self.attentions = model.attentions()
        tables = [t for module in self.modules for t in (module._modules, module._parameters, module._buffers)]
        self.tables, self.empty_tables = [t for t in tables if t], [t for t in tables if not t]
        self.values = [value for table in self.tables for value in table.values()]
        self.ids = [id(value) for value in self.values]  # unique while `values` holds references
        self.weights = [value for value in self.values if isinstance(value, Tensor)]
        self.is_tracked = not any(weight.is_inference() for weight in self.weights)
        # Aliases keep the storage alive, so that new weights cannot have its address.
        self.aliases = [weight.detach() for weight in self.weights]
        self.addresses = [weight.data_ptr() for weight in self.weights]
        self.versions = [weight._version for weight in self.weights] if self.is_tracked else []

    def is_current(self, model: Transformer, special_tokens: SpecialTokens) -> bool:
        """Whether this model still has the modules and weights of the snapshot."""
        return (
            model is self.model
            and model.settings is self.settings
            and special_tokens == self.special_tokens
            and not any(self.empty_tables)
            and [id(value) for table in self.tables for value in table.values()] == self.ids
            and [weight.data_ptr() for weight in self.weights] == self.addresses
            and (not self.is_tracked or [weight._version for weight in self.weights] == self.versions)
        )

    def needs_torch(self) -> str:
        """What of this model only PyTorch can run; empty if nothing."""
        if any(attention.gate is not None for attention in self.attentions):
            return _("gated heads")
        if not self.is_tracked:
            return _("weights made in inference mode, whose changes PyTorch does not count")
        hooked = any(module._forward_hooks or module._forward_pre_hooks for module in self.modules)
        return _("hooks") if hooked else ""


class EngineSelector:
    """Selects the engine that decodes for a model: the one with this name, or the fastest that can ("auto").

    An engine other than `torch` is built on first use and keeps its own copy of the weights. Each call compares the
    model with the one that was copied: if a weight was changed or replaced, the engine is built again, and if the
    model has gates or hooks, which only PyTorch runs, `torch` decodes. PyTorch does not count changes made in place
    through `Tensor.data`: call `reset` after them. With `is_silent`, nothing is logged: the caller reads `fallback`.
    """

    def __init__(
        self,
        name: str = "auto",
        *,
        is_int8: bool = False,
        shortlist: Shortlist | None = None,
        is_silent: bool = False,
    ) -> None:
        if name != "auto" and name not in ENGINES:
            raise EngineError(
                _(
                    'engine = "{name}" is not an engine. {hint}',
                    name=name,
                    hint=did_you_mean(name, ["auto", *ENGINES]),
                )
            )
        self.name, self.is_int8, self.shortlist, self.is_silent = name, is_int8, shortlist, is_silent
        self.used: str | None = None  # the engine of the latest call
        self.fallback: str | None = None  # why the latest call fell back to `torch`
        self._snapshot: ModelSnapshot | None = None
        self._built: dict[str, Engine | EngineError] = {}  # from the weights of the snapshot
        self._reported: set[str] = set()
        self._n_texts = 0

    def select(
        self, model: Transformer, special_tokens: SpecialTokens, settings: DecodeSettings, n_texts: int = 1
    ) -> Engine:
        """Return the engine that decodes this many texts with these settings.

        A fallback to `torch` is logged once; that of "auto" only after many texts.
        """
        self.fallback = None
        self._n_texts += n_texts
        engine = next(self._candidates(model, special_tokens, settings), TorchEngine(model, special_tokens))
        self.used = engine.name
        return engine

    def reset(self) -> None:
        """Drop the copies of the weights; the next call builds the engine again."""
        self._snapshot = None
        self._built.clear()

    def _candidates(
        self, model: Transformer, special_tokens: SpecialTokens, settings: DecodeSettings
    ) -> Iterator[Engine]:
        for name in self._names(model):
            snapshot = self._current_snapshot(model, special_tokens)
            if reason := snapshot.needs_torch():
                self._fall_back(_("The {name} engine cannot run a model with {reason}.", name=name, reason=reason))
                continue
            engine = self._build(name, model, special_tokens)
            if isinstance(engine, EngineError):
                self._fall_back(str(engine))
                continue
            if lacking := engine.unsupported(settings):
                self._fall_back(_("The {name} engine does not support {lacking}.", name=name, lacking=lacking))
                continue
            yield engine

    def _names(self, model: Transformer) -> list[str]:
        if self.name != "auto":
            return [] if self.name == "torch" else [self.name]
        # On a GPU, `torch` is the fast engine.
        return [name for name in ENGINES if name != "torch"] if model.device.type == "cpu" else []

    def _current_snapshot(self, model: Transformer, special_tokens: SpecialTokens) -> ModelSnapshot:
        snapshot = self._snapshot
        if snapshot is None or not snapshot.is_current(model, special_tokens):
            if any(not isinstance(engine, EngineError) for engine in self._built.values()):
                logger.info(_("The model has changed: its weights are copied again."))
            self._built.clear()
            snapshot = self._snapshot = ModelSnapshot(model, special_tokens)
        return snapshot

    def _build(self, name: str, model: Transformer, special_tokens: SpecialTokens) -> Engine | EngineError:
        if name not in self._built:
            try:
                engine = ENGINES[name](model, special_tokens, is_int8=self.is_int8, shortlist=self.shortlist)
                self._built[name] = engine
            except EngineError as error:
                self._built[name] = error
        return self._built[name]

    def _fall_back(self, reason: str) -> None:
        self.fallback = reason
        is_worth_a_line = self.name != "auto" or self._n_texts >= _MANY_TEXTS
        if is_worth_a_line and not self.is_silent and reason not in self._reported:
            self._reported.add(reason)
            logger.warning("%s", _("Engine: torch. {reason}", reason=reason))
