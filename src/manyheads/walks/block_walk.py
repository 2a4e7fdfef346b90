"""`walk`: every number of one head and of everything around it, from the embedding to the loss.

The whole model runs in double precision, and hooks capture what enters and leaves each of its modules.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.lens.traces.tracing import trace_input
from manyheads.model import MultiHeadAttention, Transformer
from manyheads.model.blocks import DecoderBlock, EncoderBlock
from manyheads.model.norms import Norm
from manyheads.tasks import GenerativeTask, Task
from manyheads.text.tokens.tokenizer import Token
from manyheads.walks.attention_walk import (
    AttentionCall,
    Floats,
    Walk,
    choose_attention,
    choose_position,
    walk_attention,
)
from manyheads.walks.norm_walk import NormComparison, compare_norms, walk_norm
from manyheads.walks.output_walk import LossWalk, OutputWalk, walk_loss, walk_output
from manyheads.walks.sublayer_walk import (
    Calls,
    EmbeddingWalk,
    FeedForwardWalk,
    SublayerWalk,
    capture_modules,
    walk_embedding,
    walk_feed_forward,
    walk_sublayer,
)


@dataclass(frozen=True)
class DecoderStep:
    """One position of one decoder block: it reads the tokens up to `reads`, and writes the next one."""

    name: str  # such as "decoder.0"
    position: int
    reads: str
    writes: str | None  # None if it is not known
    self_attention: Walk | None  # masked; None if all its heads are pruned
    self_sublayer: SublayerWalk
    cross_attention: Walk | None  # also None without an encoder
    cross_sublayer: SublayerWalk | None
    feed_forward: FeedForwardWalk
    feed_forward_sublayer: SublayerWalk


@dataclass(frozen=True)
class BlockWalk:
    """Everything around one attention; what a model does not have is None."""

    name: str  # of the block, such as "encoder.0"
    source_embedding: EmbeddingWalk | None
    target_embedding: EmbeddingWalk | None
    sublayer: SublayerWalk  # the residual connection and the norm of the attention
    norms: NormComparison  # layer, batch and sample norm on the numbers that `sublayer.norm` reads
    feed_forward: FeedForwardWalk | None = None
    feed_forward_sublayer: SublayerWalk | None = None
    decoder: DecoderStep | None = None
    output: OutputWalk | None = None
    loss: LossWalk | None = None
    weights: Mapping[str, Floats] | None = None  # of the whole model, if it is the toy model


@dataclass(frozen=True)
class Tokens:
    """The names and the ids of tokens."""

    names: tuple[str, ...]
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Passage:
    """What a model reads and writes."""

    source: Tokens
    target: Tokens
    written: Tokens  # the token that follows each position of the target, as far as known
    name_of: Callable[[int], str]  # of any token of the vocabulary
    smoothing: float  # ε of the loss


def walk(
    of: Bundle | Task,
    text: str,
    *,
    answer: str | None = None,
    layer: str | None = None,
    head: int = 0,
    query: str | None = None,
) -> Walk:
    """Return every number of one head of a trained model as it reads a text, and of the block around it.

    `layer` is the name of an attention; the default is the first. `query` is the word, or the number of the position,
    to show in detail. A decoder writes `answer`; the default is the model's own answer.
    """
    task = of.task if isinstance(of, Bundle) else of
    choose_attention(task.model, layer, head)
    model_input = task.model_input(text, answer)
    if answer is None and model_input.source and isinstance(task, GenerativeTask):
        settings = of.decode if isinstance(of, Bundle) else DecodeSettings(method="greedy")
        model_input = task.generate_one(model_input, settings)[1]
    trace_input(task.model, model_input)  # refuses weights that are NaN
    passage = Passage(
        source=_tokens(model_input.source),
        target=_tokens(model_input.target),
        written=_tokens(model_input.written),
        name_of=task.tokenizer.id_to_token,
        smoothing=task.settings.loss_terms.get("label smoothing", 0.0) if isinstance(task, GenerativeTask) else 0.0,
    )
    walked = walk_model(task.model, passage, layer=layer, head=head, query=query)
    return replace(walked, text=text, answer=model_input.answer)


def _tokens(tokens: Sequence[Token]) -> Tokens:
    return Tokens(tuple(token.text for token in tokens), tuple(token.id for token in tokens))


@torch.no_grad()
def walk_model(model: Transformer, passage: Passage, *, layer: str | None, head: int, query: str | None) -> Walk:
    """Return the walk of one head of a model as it reads a passage."""
    exact = copy.deepcopy(model).cpu().double().eval()
    attention = choose_attention(exact, layer, head)
    in_decoder = attention.name.startswith("decoder")
    position = choose_position((passage.target if in_decoder else passage.source).names, query, 1)
    with capture_modules(exact) as calls:
        exact.hidden(*(torch.tensor([side.ids]) if side.ids else None for side in (passage.source, passage.target)))
    walked = _walk_head(attention, calls, passage, head, position)
    step = position if in_decoder else max(0, min(1, len(passage.target.ids) - 1))
    return replace(walked, block=_Reader(exact, calls, passage).block(walked, step))


def _walk_head(attention: MultiHeadAttention, calls: Calls, passage: Passage, head: int, position: int) -> Walk:
    in_decoder, is_cross = attention.name.startswith("decoder"), attention.name.endswith("cross")
    names = (passage.target if in_decoder else passage.source).names
    queries_from, keys_from, view = calls[attention].args
    walked = walk_attention(
        attention,
        AttentionCall(queries_from, keys_from, view, calls[attention].output),
        head=head,
        query=position,
        query_names=names,
        key_names=passage.source.names if is_cross else names,
    )
    return replace(walked, written_names=passage.written.names if in_decoder else ())


@dataclass(frozen=True)
class _Reader:
    """Reads the parts of a walk from the captured calls of a model."""

    model: Transformer
    calls: Calls
    passage: Passage

    def block(self, walked: Walk, step: int) -> BlockWalk:
        stack, layer, use = walked.attention.split(".")
        block = getattr(self.model, stack)[int(layer)]
        sublayer = self._sublayer(f"{stack}.{layer}", block, use)
        has_decoder = self.model.settings.has_decoder
        output = self._output(step) if has_decoder else None
        target_id = self._written_id(step)
        return BlockWalk(
            name=f"{stack}.{layer}",
            source_embedding=self._embedding("source", self.passage.source.names),
            target_embedding=self._embedding("target", self.passage.target.names),
            sublayer=sublayer,
            norms=compare_norms(sublayer.norm.input, walked.query, self.model.settings.norm_epsilon),
            feed_forward=self._feed_forward(block),
            feed_forward_sublayer=self._sublayer(f"{stack}.{layer}", block, "feed_forward"),
            decoder=self._decoder(int(layer) if stack == "decoder" else 0, walked, step) if has_decoder else None,
            output=output,
            loss=None
            if output is None or target_id is None
            else walk_loss(output.logits, target_id, self.passage.smoothing),
        )

    def _embedding(self, side: str, names: tuple[str, ...]) -> EmbeddingWalk | None:
        embedding = getattr(self.model, f"{side}_embedding", None)
        if embedding is None:
            return None
        return walk_embedding(embedding, self.calls[embedding], names, self.model.settings)

    def _sublayer(self, name: str, block: nn.Module, use: str) -> SublayerWalk:
        branch = {"self": "attention", "cross": "cross_attention", "feed_forward": "feed_forward"}[use]
        modules = getattr(block, f"{branch}_sublayer"), getattr(block, branch)
        return walk_sublayer(f"{name}.{use}", *modules, self.calls)

    def _feed_forward(self, block: EncoderBlock | DecoderBlock) -> FeedForwardWalk:
        return walk_feed_forward(block.feed_forward, self.calls, self.model.settings.activation)

    def _decoder(self, layer: int, walked: Walk, step: int) -> DecoderStep:
        block, name = self.model.decoder[layer], f"decoder.{layer}"
        assert isinstance(block, DecoderBlock)
        has_cross = self.model.settings.has_encoder
        written = self.passage.written.names
        return DecoderStep(
            name=name,
            position=step,
            reads=self.passage.target.names[step],
            writes=written[step] if step < len(written) else None,
            self_attention=self._head(block.attention, walked.head, step),
            self_sublayer=self._sublayer(name, block, "self"),
            cross_attention=self._head(block.cross_attention, walked.head, step) if has_cross else None,
            cross_sublayer=self._sublayer(name, block, "cross") if has_cross else None,
            feed_forward=self._feed_forward(block),
            feed_forward_sublayer=self._sublayer(name, block, "feed_forward"),
        )

    def _head(self, attention: nn.Module, head: int, step: int) -> Walk | None:
        if not isinstance(attention, MultiHeadAttention):
            return None
        # Pruned attentions may have fewer heads than the one that the user chose.
        return _walk_head(attention, self.calls, self.passage, head if head < attention.heads.n_heads else 0, step)

    def _output(self, step: int) -> OutputWalk:
        final: nn.Module = self.model.decoder_norm
        call, target = self.calls[final], self._written_id(step)
        hidden: Tensor = call.output[0]
        return walk_output(
            *self.model.output.factors(hidden[step]),
            position=step,
            reads=self.passage.target.names[step],
            writes=None if target is None else self.passage.written.names[step],
            target=target,
            name_of=self.passage.name_of,
            is_tied=self.model.settings.tie_output,
            final_norm=walk_norm(final, call.args[0][0], hidden) if isinstance(final, Norm) else None,
        )

    def _written_id(self, step: int) -> int | None:
        return self.passage.written.ids[step] if step < len(self.passage.written.ids) else None
