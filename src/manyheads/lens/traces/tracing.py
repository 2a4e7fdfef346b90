"""`trace`: record what every head of a model does with one text.

    >>> text, answer = "The cat sees the dog.", "猫看见狗。"
    >>> recorded = trace(bundle, text, answer)  # one forward pass; without an answer, the model's own search is traced
    >>> cross = recorded["decoder.0.cross"]
    >>> tuple(cross.weights.shape) == (cross.n_heads, len(cross.queries), len(cross.keys))
    True
    >>> [text[token.start : token.end] for token in cross.keys][-2:]  # the last one is EOS, which covers no text
    ['.', '']
    >>> positions = recorded.norms("decoder.0.cross/1").argmax(-1)  # the key that contributes most to each query
    >>> len(positions) == len(recorded.model_input.written)
    True
    >>> recorded.difference < 1e-5
    True

Every trace is compared head by head with the fused path, which computes the same without a tap.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.traces.recorder import RecordedPath, Recorder
from manyheads.messages import _
from manyheads.metrics.card_sections import truncate
from manyheads.model import MultiHeadAttention, Tap, Transformer, evaluating
from manyheads.settings import did_you_mean
from manyheads.tasks import GenerativeTask, ModelInput, Task
from manyheads.text.tokens.tokenizer import Token

MAX_DIFFERENCE = 1e-5  # between a trace and the fused path; relative to the largest value where that exceeds 1

_REPR_CHARACTERS = 30  # of a text in the repr of a trace

# H heads, Q query positions, K key positions, W width, D width of a head's key, E width of its value.


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """What every head of one attention computed for one text."""

    name: str  # encoder.0.self, decoder.1.cross
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    q: Float[Tensor, "H Q D"]
    k: Float[Tensor, "H K D"]
    v: Float[Tensor, "H K E"]
    scores: Float[Tensor, "H Q K"]  # −∞ where masked
    weights: Float[Tensor, "H Q K"]
    heads: Float[Tensor, "H Q E"]  # weights @ v of each head, before W^O
    output: Float[Tensor, "Q W"]  # of all heads, after W^O
    matrices: Float[Tensor, "H E W"]  # W_i^O
    bias: Float[Tensor, " W"] | None  # of W^O

    def __repr__(self) -> str:
        return f"AttentionTrace({self.name}, {self.n_heads} heads, {len(self.queries)} × {len(self.keys)} positions)"

    @property
    def n_heads(self) -> int:
        """The number of heads."""
        return len(self.weights)

    def head_output(self, head: int) -> Float[Tensor, "Q W"]:
        """Return head_i W_i^O: what one head adds to the output at each position."""
        return self.heads[head] @ self.matrices[head]

    def transformed(self, head: int) -> Float[Tensor, "K W"]:
        """Return f(x) = (x W_i^V) W_i^O: what each key contributes at a weight of 1."""
        return self.v[head] @ self.matrices[head]

    def norms(self, head: int) -> Float[Tensor, "Q K"]:
        """Return ‖α f(x)‖: the norm of what each key contributes to each query (Kobayashi 2020)."""
        return self.weights[head] * self.transformed(head).norm(dim=-1)

    def sum_of_heads(self) -> Float[Tensor, "Q W"]:
        """Return Σ head_i W_i^O plus the bias, which equals the output."""
        total = torch.zeros_like(self.output) if self.bias is None else self.bias.expand_as(self.output)
        for head in range(self.n_heads):
            total = total + self.head_output(head)
        return total


@dataclass(frozen=True, eq=False)
class FusedOutputs:
    """What a forward pass without a tap computes: before and after W^O of every attention, and each stack's output."""

    heads: dict[str, Float[Tensor, "H Q E"]] = field(default_factory=dict)
    outputs: dict[str, Float[Tensor, "Q W"]] = field(default_factory=dict)
    hidden: dict[str, Float[Tensor, "Q W"]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trace:
    """What every head of a model computed for one text."""

    model_input: ModelInput
    attentions: Mapping[str, AttentionTrace]  # by name, in the order of a forward pass
    hidden: Mapping[str, Float[Tensor, "Q W"]]  # the outputs of the encoder and the decoder
    difference: float = 0.0  # the largest from the fused path; relative where values exceed 1

    def __repr__(self) -> str:
        text, answer = (truncate(part, _REPR_CHARACTERS) for part in (self.model_input.text, self.model_input.answer))
        written = f" → {answer!r}" if answer else ""
        return f"Trace({text!r}{written}, {len(self.attentions)} attentions, {len(self.heads)} heads)"

    def _repr_html_(self) -> str:
        """Show the maps of all heads of one kind in a notebook."""
        from manyheads.lens.pictures.notebook_views import trace_html

        return trace_html(self)

    def __getitem__(self, attention: str) -> AttentionTrace:
        if attention not in self.attentions:
            raise LensError(
                _(
                    "There is no attention {attention}. {did_you_mean}",
                    attention=attention,
                    did_you_mean=did_you_mean(attention, self.attentions),
                )
            )
        return self.attentions[attention]

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order of a forward pass."""
        return [Head(name, number) for name, traced in self.attentions.items() for number in range(traced.n_heads)]

    def weights(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """Return the attention weights of one head; every row sums to 1."""
        traced, number = self._find(head)
        return traced.weights[number]

    def norms(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """Return ‖α f(x)‖ of one head: the norm of what each key contributes to each query."""
        traced, number = self._find(head)
        return traced.norms(number)

    def check(self, fused: FusedOutputs) -> float:
        """Return the largest difference from the fused path; raise `LensError` if it exceeds the bound."""
        largest = 0.0
        for name, traced in self.attentions.items():
            sums = traced.weights.sum(-1)
            for what, ours, theirs in (
                ("the sums of its rows", sums, torch.ones_like(sums)),
                ("its weighted values", traced.weights @ traced.v, fused.heads[name]),
                ("its heads", traced.heads, fused.heads[name]),
                ("the sum of its heads", traced.sum_of_heads(), fused.outputs[name]),
                ("its output", traced.output, fused.outputs[name]),
            ):
                largest = max(largest, _compare(f"{name}, {what}", ours, theirs))
        for stack, hidden in self.hidden.items():
            largest = max(largest, _compare(stack, hidden, fused.hidden[stack]))
        return largest

    def _find(self, head: Head | str) -> tuple[AttentionTrace, int]:
        head = Head.parse(head) if isinstance(head, str) else head
        traced = self[head.attention]
        if not 0 <= head.number < traced.n_heads:
            raise LensError(
                _(
                    "There is no head {head}: {attention} has heads 0 to {last}.",
                    head=head,
                    attention=head.attention,
                    last=traced.n_heads - 1,
                )
            )
        return traced, head.number


def trace(
    of: Bundle | Task,
    text: str,
    answer: str | None = None,
    *,
    search: DecodeSettings | None = None,
    checked: bool = True,
) -> Trace:
    """Record what every head does as a model reads a text and, if it has a decoder, writes this answer.

    Without an answer the model writes its own, and the trace is of that search, step by step with its KV caches:
    greedy, or as `search` sets it. A language model with the answer "" reads the text and writes nothing. `checked`
    compares the trace with the fused path, which costs one more forward pass.
    """
    task = of.task if isinstance(of, Bundle) else of
    model_input = task.model_input(text, answer)
    if answer is None and isinstance(task, GenerativeTask):
        recorded = _trace_search(task, model_input, search or DecodeSettings(method="greedy"))
    else:
        recorded = _trace_forward_pass(task.model, model_input)
    return _checked(recorded, task.model) if checked else recorded


def trace_input(model: Transformer, model_input: ModelInput, *, checked: bool = True) -> Trace:
    """Record one forward pass over these tokens."""
    recorded = _trace_forward_pass(model, model_input)
    return _checked(recorded, model) if checked else recorded


def _trace_forward_pass(model: Transformer, model_input: ModelInput) -> Trace:
    recorder = Recorder()
    _run(model, model_input, recorder)
    return _collect(model, model_input, recorder)


def _trace_search(task: Task, model_input: ModelInput, search: DecodeSettings) -> Trace:
    assert isinstance(task, GenerativeTask)
    if task.model.settings.mixes_positions:
        raise LensError(
            _(
                'A model with model.norm = "{norm}" recomputes every position at each step of a search, so a '
                "search has no single trace. Give an answer to trace instead.",
                norm=task.model.settings.norm,
            )
        )
    recorder = Recorder()
    _best, written = task.generate_one(model_input, search, recorder)
    if not recorder.n_calls("decoder"):  # max_new_tokens was 0
        return _trace_forward_pass(task.model, written)
    return _collect(task.model, written, recorder)


def _checked(recorded: Trace, model: Transformer) -> Trace:
    return replace(recorded, difference=recorded.check(run_fused(model, recorded.model_input)))


def _compare(where: str, ours: Tensor, theirs: Tensor) -> float:
    if not ours.numel():
        return 0.0
    difference = float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1.0))
    if not difference <= MAX_DIFFERENCE:  # also true of NaN
        raise LensError(
            _(
                "The trace is not what the model computes: {where} differ by {difference:.1e}, more than "
                "{most:.0e}. Possible causes: weights in half precision, gates, or weights that are NaN.",
                where=where,
                difference=difference,
                most=MAX_DIFFERENCE,
            )
        )
    return difference


def _run(model: Transformer, model_input: ModelInput, tap: Tap | None = None) -> None:
    """Run one forward pass over one text, without dropout or gradients."""
    source, target = (
        torch.tensor([[token.id for token in tokens]], device=model.device) if tokens else None
        for tokens in (model_input.source, model_input.target)
    )
    with evaluating(model):
        model.hidden(source, target, tap=tap)


def run_fused(model: Transformer, model_input: ModelInput) -> FusedOutputs:
    """Run one forward pass on the fused path and keep its outputs."""
    fused = FusedOutputs()
    with ExitStack() as hooks:

        def keep_output(module: nn.Module, outputs: dict[str, Tensor], name: str) -> None:
            handle = module.register_forward_hook(lambda _, args, output: outputs.update({name: output[0].cpu()}))
            hooks.callback(handle.remove)

        for attention in model.attentions():
            keep_output(attention, fused.outputs, attention.name)
            handle = attention.output.register_forward_hook(_heads_hook(attention, fused.heads))
            hooks.callback(handle.remove)
        for stack in ("encoder", "decoder"):
            if hasattr(model, f"{stack}_norm"):
                keep_output(getattr(model, f"{stack}_norm"), fused.hidden, stack)
        _run(model, model_input)
    return fused


def _heads_hook(
    attention: MultiHeadAttention, heads: dict[str, Tensor]
) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
    def keep_heads(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        (concatenated,) = args  # Concat(head_1 … head_h)
        shape = (attention.heads.n_heads, attention.heads.value_width)
        heads[attention.name] = concatenated[0].unflatten(-1, shape).transpose(0, 1).cpu()

    return keep_heads


def _collect(model: Transformer, model_input: ModelInput, recorder: Recorder) -> Trace:
    sides = {"encoder": model_input.source, "decoder": model_input.target}
    paths = {stack: recorder.along(stack, [token.id for token in tokens]) for stack, tokens in sides.items() if tokens}
    attentions = {}
    for attention in model.attentions():
        stack, rest = attention.name.split(".", 1)
        keys = model_input.source if rest.endswith("cross") else sides[stack]
        attentions[attention.name] = _trace_attention(attention, sides[stack], keys, paths[stack], rest)
    return Trace(model_input, attentions, {stack: path.rows("hidden") for stack, path in paths.items()})


def _trace_attention(
    attention: MultiHeadAttention, queries: tuple[Token, ...], keys: tuple[Token, ...], path: RecordedPath, name: str
) -> AttentionTrace:
    is_cross = name.endswith("cross")
    k, v = (path.source_keys(f"{name}.{what}") if is_cross else path.keys(f"{name}.{what}") for what in "kv")
    scores, weights = (
        path.rows(f"{name}.{what}") if is_cross else path.pairs(f"{name}.{what}", masked)
        for what, masked in (("scores", -torch.inf), ("weights", 0.0))
    )
    q, heads, output = (path.rows(f"{name}.{what}") for what in ("q", "heads", "output"))
    matrices, bias = output_matrices(attention)
    if attention.gate is not None:  # what a gated head adds is gated, so the sum of heads remains the output
        gate = attention.gate if isinstance(attention.gate, Tensor) else attention.gate(1)
        v, heads = (each * gate.detach().cpu().reshape(-1, 1, 1) for each in (v, heads))
    return AttentionTrace(attention.name, queries, keys, q, k, v, scores, weights, heads, output, matrices, bias)


def output_matrices(attention: MultiHeadAttention) -> tuple[Float[Tensor, "H E W"], Float[Tensor, " W"] | None]:
    """Return W_i^O of every head and the bias of W^O; without W^O, each head has its slice of the identity."""
    output, heads = attention.output, attention.heads
    bias = None
    if isinstance(output, nn.Linear):
        joined = output.weight.detach().cpu().T
        bias = None if output.bias is None else output.bias.detach().cpu()
    else:
        joined = torch.eye(heads.n_heads * heads.value_width)
    return joined.unflatten(0, (heads.n_heads, heads.value_width)), bias
