"""The Transformer in its three shapes: encoder–decoder, encoder only, decoder only."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.blocks import DecoderBlock, EncoderBlock, make_final_norm
from manyheads.model.embedding import Embedding, TokenEmbedding, make_output
from manyheads.model.kv_cache import CrossAttentionCache, KeyValueCache
from manyheads.model.masks import View, count_positions
from manyheads.model.settings import ModelSettings
from manyheads.model.size import refuse_too_large
from manyheads.model.tap import Tap
from manyheads.model.weights import count_parameters


@dataclass
class DecoderState:
    """The state of incremental decoding: the encoder output, the positions so far, and the caches of each layer."""

    memory: Float[Tensor, "B S W"] | None
    memory_is_real: Bool[Tensor, "B S"] | None
    is_real: Bool[Tensor, "B T"]
    caches: list[tuple[KeyValueCache, KeyValueCache]]

    def select(self, rows: Int[Tensor, " B2"]) -> None:
        """Keep these rows of the batch, in this order."""
        self.is_real = self.is_real[rows]
        if self.memory is not None and self.memory_is_real is not None:
            self.memory, self.memory_is_real = self.memory[rows], self.memory_is_real[rows]
        for pair in self.caches:
            for cache in pair:
                cache.select(rows)


class Transformer(nn.Module):
    """The Transformer of "Attention is all you need" (Vaswani 2017) and the variants that `ModelSettings` describes."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        refuse_too_large(settings)
        self.settings = settings
        token_embedding = TokenEmbedding(settings.vocab_size, settings.width)
        if settings.has_encoder:
            self.source_embedding = Embedding(token_embedding, settings)
            self.encoder = nn.ModuleList(
                EncoderBlock(f"encoder.{layer}", settings) for layer in range(settings.n_encoder_layers)
            )
            self.encoder_norm = make_final_norm(settings)
        if settings.has_decoder:
            if settings.has_encoder and not settings.tie_source_target:
                token_embedding = TokenEmbedding(settings.vocab_size, settings.width)
            self.target_embedding = Embedding(token_embedding, settings)
            self.decoder = nn.ModuleList(
                DecoderBlock(f"decoder.{layer}", settings) for layer in range(settings.n_decoder_layers)
            )
            self.decoder_norm = make_final_norm(settings)
        own = token_embedding if settings.tie_output else TokenEmbedding(settings.vocab_size, settings.width)
        self.output = make_output(own, settings)
        self._initialize()

    def forward(
        self,
        source: Int[Tensor, "B S"] | None = None,
        target: Int[Tensor, "B T"] | None = None,
        *,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        target_is_real: Bool[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the next token at every target position; of an encoder only, of each source position."""
        hidden = self.hidden(source, target, source_is_real=source_is_real, target_is_real=target_is_real, tap=tap)
        return self.output.logits(hidden)

    def hidden(
        self,
        source: Int[Tensor, "B S"] | None = None,
        target: Int[Tensor, "B T"] | None = None,
        *,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        target_is_real: Bool[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T W"]:
        """The output of the last layer, from which `output.logits` computes the logits."""
        memory = None
        if self.settings.has_encoder:
            if source is None:
                raise TypeError(f"A model of shape {self.settings.shape} needs a source.")
            source_is_real = _all_real(source) if source_is_real is None else source_is_real
            memory = self.encode(source, source_is_real, tap=tap)
            if not self.settings.has_decoder:
                return memory
        if target is None:
            raise TypeError(f"A model of shape {self.settings.shape} needs a target.")
        state = DecoderState(memory, source_is_real, _all_real(target[:, :0]), [])
        return self.decode(target, state, is_real=target_is_real, tap=tap)

    def encode(
        self,
        source: Int[Tensor, "B S"],
        is_real: Bool[Tensor, "B S"],
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B S W"]:
        """The output of the encoder."""
        self._check_length(source.size(1))
        view = View.bidirectional(is_real)
        x = self.source_embedding(source, view.query_positions)
        if tap is not None:
            tap.begin("encoder", source, view.visible)
        for block in self.encoder:
            x = block(x, is_real, view, tap=tap)
        hidden = self.encoder_norm(x, is_real)
        if tap is not None:
            tap.receive("encoder.hidden", hidden)
        return hidden

    def decode(
        self,
        target: Int[Tensor, "B T"],
        state: DecoderState,
        *,
        is_real: Bool[Tensor, "B T"] | None = None,
        view: View | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T W"]:
        """The output of the decoder for new target positions, which follow those in the state; updates the state.

        A `view` overrides the positions and the causal mask. Beam search needs this: its hypotheses form a tree, in
        which several tokens have the same position.
        """
        is_real = _all_real(target) if is_real is None else is_real
        if view is None:
            self._check_length(state.is_real.size(1) + target.size(1))
        state.is_real = torch.cat([state.is_real, is_real], dim=1)
        if view is None:
            view = View.causal(state.is_real, count_positions(state.is_real), target.size(1))
        memory_view = None
        if state.memory_is_real is not None:
            memory_view = View.cross(view.query_positions, state.memory_is_real)
        x = self.target_embedding(target, view.query_positions)
        if tap is not None:
            tap.begin("decoder", target, view.visible)
        for layer, block in enumerate(self.decoder):
            caches = state.caches[layer] if state.caches else None
            x = block(x, is_real, view, state.memory, memory_view, caches=caches, tap=tap)
        hidden = self.decoder_norm(x, is_real)
        if tap is not None:
            tap.receive("decoder.hidden", hidden)
        return hidden

    def start(
        self,
        source: Int[Tensor, "B S"] | None = None,
        source_is_real: Bool[Tensor, "B S"] | None = None,
        *,
        n_rows: int = 1,
        tap: Tap | None = None,
    ) -> DecoderState:
        """Encode the source and return a state with empty caches, from which `decode` proceeds token by token."""
        if not self.settings.has_decoder:
            raise TypeError(f"A model of shape {self.settings.shape} has no decoder.")
        if self.settings.has_encoder != (source is not None):
            needs = "needs a source" if self.settings.has_encoder else "takes no source"
            raise TypeError(f"A model of shape {self.settings.shape} {needs}.")
        memory = None
        if source is not None:
            source_is_real = _all_real(source) if source_is_real is None else source_is_real
            memory, n_rows = self.encode(source, source_is_real, tap=tap), source.size(0)
        no_positions = torch.ones(n_rows, 0, dtype=torch.bool, device=self.device)
        caches: list[tuple[KeyValueCache, KeyValueCache]] = [
            (KeyValueCache(), CrossAttentionCache()) for _ in self.decoder
        ]
        return DecoderState(memory, source_is_real, no_positions, caches)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.output.weight.device

    @property
    def is_gated(self) -> bool:
        """Whether `gated` scales any head: an engine that does not run this module would ignore the gates."""
        return any(attention.gate is not None for attention in self.attentions())

    @property
    def n_parameters(self) -> int:
        """The number of parameters; a tied matrix counts once."""
        return count_parameters(self)

    def attentions(self) -> list[MultiHeadAttention]:
        """Every attention, in the order of a forward pass."""
        return [module for module in self.modules() if isinstance(module, MultiHeadAttention)]

    def _check_length(self, length: int) -> None:
        if self.settings.is_length_limited and length > self.settings.max_length:
            raise DataError(
                _(
                    "A sequence of {length} tokens is longer than model.max_length = {max_length}. Split the text.",
                    length=length,
                    max_length=self.settings.max_length,
                )
            )

    def _initialize(self) -> None:
        """Glorot (Xavier) uniform initialization of every linear layer; other modules initialize themselves."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


def _all_real(ids: Int[Tensor, "B Q"]) -> Bool[Tensor, "B Q"]:
    return torch.ones_like(ids, dtype=torch.bool)
