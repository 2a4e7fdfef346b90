"""Embedding, residual connections and feed-forward with every number, from the calls of a model's modules."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from manyheads.model.blocks import PostNorm, PreNorm
from manyheads.model.embedding import Embedding
from manyheads.model.feed_forward import FeedForward, GatedFeedForward
from manyheads.model.settings import ModelSettings
from manyheads.walks.attention_walk import Floats, doubles
from manyheads.walks.norm_walk import NormWalk, walk_norm

# Q positions, W width, F width of the feed-forward network.


@dataclass(frozen=True)
class Call:
    """The arguments and the output of one call of a module."""

    args: tuple[Any, ...]
    output: Any


Calls = Mapping[nn.Module, Call]


@dataclass(frozen=True)
class EmbeddingWalk:
    """output = scale × vectors + positions, one row per token."""

    names: tuple[str, ...]
    ids: tuple[int, ...]
    vectors: Floats  # Q × W: the rows of the embedding matrix
    scale: float  # √d_model, or 1 if the model does not scale
    scaled: Floats  # Q × W
    kind: str  # as in model.positions
    positions: Floats | None  # Q × W: sinusoidal or learned; None if the model adds none
    output: Floats  # Q × W: the input of the first block, before its norm if there is one
    is_normalized: bool = False  # the sum is normalized before the first block

    @property
    def word_lengths(self) -> Floats:
        """The length ‖e‖ of each word vector, before the scale."""
        return np.linalg.norm(self.vectors, axis=-1)

    @property
    def scaled_lengths(self) -> Floats:
        """The length ‖scale × e‖ of each word vector after the scale."""
        return np.linalg.norm(self.scaled, axis=-1)

    @property
    def position_lengths(self) -> Floats | None:
        """The length of each position vector; √(d_model / 2) for sinusoids."""
        return None if self.positions is None else np.linalg.norm(self.positions, axis=-1)


@dataclass(frozen=True)
class SublayerWalk:
    """One residual connection; post-norm: output = norm(input + branch), pre-norm: output = input + branch.

    In a pre-norm model the branch reads norm(input).
    """

    name: str  # such as "encoder.0.self" or "decoder.1.feed_forward"
    placement: str  # "post" or "pre"
    input: Floats  # Q × W
    branch: Floats  # Q × W: what the attention or the feed-forward network computed
    residual: Floats  # Q × W: input + branch
    norm: NormWalk
    output: Floats  # Q × W


@dataclass(frozen=True)
class FeedForwardWalk:
    """output = f(x W_1 + b_1) W_2 + b_2; of SwiGLU, (swish(x W_g + b_g) · (x W_1 + b_1)) W_2 + b_2."""

    activation: str  # as in model.activation
    inner: Floats  # W × F: W_1
    inner_bias: Floats
    outer: Floats  # F × W: W_2
    outer_bias: Floats
    gate: Floats | None  # W × F: W_g
    gate_bias: Floats | None
    input: Floats  # Q × W
    hidden: Floats  # Q × F: x W_1 + b_1
    gate_hidden: Floats | None  # Q × F: x W_g + b_g
    activated: Floats  # Q × F
    output: Floats  # Q × W


@contextmanager
def capture_modules(module: nn.Module) -> Iterator[dict[nn.Module, Call]]:
    """Capture the last call of every module inside a `with` block."""
    calls: dict[nn.Module, Call] = {}

    def keep(called: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        calls[called] = Call(args, output)

    with ExitStack() as hooks:
        for each in module.modules():
            hooks.callback(each.register_forward_hook(keep).remove)
        yield calls


def walk_embedding(embedding: Embedding, call: Call, names: tuple[str, ...], settings: ModelSettings) -> EmbeddingWalk:
    """Return every number of an embedding, for the first sequence of the batch."""
    ids, positions = call.args
    vectors = embedding.token_embedding.weight[ids[0]]
    scaled = embedding.scale * vectors
    has_vectors = settings.positions in ("sinusoidal", "learned")
    added = embedding.positions(positions, vectors.dtype)[0] if has_vectors else None
    output = call.output[0] if not settings.embedding_norm else scaled if added is None else scaled + added
    return EmbeddingWalk(
        names=names,
        ids=tuple(ids[0].tolist()),
        vectors=doubles(vectors),
        scale=embedding.scale,
        scaled=doubles(scaled),
        kind=settings.positions,
        positions=None if added is None else doubles(added),
        output=doubles(output),
        is_normalized=settings.embedding_norm,
    )


def walk_sublayer(name: str, sublayer: PostNorm, branch: nn.Module, calls: Calls) -> SublayerWalk:
    """Return every number of one residual connection and its norm; `branch` is the attention or the feed-forward."""
    x, added = calls[sublayer].args[0][0], calls[branch].output[0]
    norm = calls[sublayer.norm]
    return SublayerWalk(
        name=name,
        placement="pre" if isinstance(sublayer, PreNorm) else "post",
        input=doubles(x),
        branch=doubles(added),
        residual=doubles(x + added),
        norm=walk_norm(sublayer.norm, norm.args[0][0], norm.output[0]),
        output=doubles(calls[sublayer].output[0]),
    )


def walk_feed_forward(module: nn.Module, calls: Calls, activation: str) -> FeedForwardWalk:
    """Return every number of a feed-forward network."""
    assert isinstance(module, FeedForward | GatedFeedForward)
    gate = module.gate if isinstance(module, GatedFeedForward) else None
    return FeedForwardWalk(
        activation=activation,
        inner=doubles(module.inner.weight.T),
        inner_bias=_bias(module.inner),
        outer=doubles(module.outer.weight.T),
        outer_bias=_bias(module.outer),
        gate=None if gate is None else doubles(gate.weight.T),
        gate_bias=None if gate is None else _bias(gate),
        input=doubles(calls[module].args[0][0]),
        hidden=doubles(calls[module.inner].output[0]),
        gate_hidden=None if gate is None else doubles(calls[gate].output[0]),
        activated=doubles(calls[module.outer].args[0][0]),
        output=doubles(calls[module].output[0]),
    )


def _bias(linear: nn.Linear) -> Floats:
    """The bias of a linear layer; zeros if it has none."""
    return np.zeros(linear.out_features) if linear.bias is None else doubles(linear.bias)
