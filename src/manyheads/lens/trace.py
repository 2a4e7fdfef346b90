"""`trace`: one text through a model, and all that every head of it did there.

    >>> text, answer = "The cat sees the dog.", "猫看见狗。"
    >>> found = trace(bundle, text, answer)  # one forward pass; without an answer, the model is watched writing its own
    >>> cross = found["decoder.0.cross"]
    >>> tuple(cross.weights.shape) == (cross.n_heads, len(cross.queries), len(cross.keys))
    True
    >>> [text[token.start : token.end] for token in cross.keys][-2:]  # the last is EOS, which is not of the text
    ['.', '']
    >>> where = found.norms("decoder.0.cross/1").argmax(-1)  # the place that head 1 takes most from, for each it writes
    >>> len(where) == len(found.model_input.written)
    True
    >>> found.difference < 1e-5
    True

Each trace is compared with what the model computes where nobody looks, head by head, before it is given out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.forward_pass import FusedOutputs, run, run_fused
from manyheads.lens.heads import Head
from manyheads.lens.recorder import RecordedPath, Recorder
from manyheads.model import MultiHeadAttention, Transformer
from manyheads.settings import did_you_mean
from manyheads.tasks import GenerativeTask, ModelInput, Task
from manyheads.text.tokenizer import Token

BOUND = 1e-5  # how far a trace may be from the fused path; of numbers larger than 1, of the largest

# H heads, Q query places, K key places, W width, D width of a head's key, E width of its value.


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """What every head of one attention did with one text."""

    name: str  # encoder.0.self, decoder.1.cross
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    q: Float[Tensor, "H Q D"]
    k: Float[Tensor, "H K D"]
    v: Float[Tensor, "H K E"]
    scores: Float[Tensor, "H Q K"]  # hidden places are −∞
    weights: Float[Tensor, "H Q K"]
    heads: Float[Tensor, "H Q E"]  # each head's mix of values, before W^O
    output: Float[Tensor, "Q W"]  # of all heads, after W^O
    matrices: Float[Tensor, "H E W"]  # W_i^O
    bias: Float[Tensor, " W"] | None  # what is added after W^O

    @property
    def n_heads(self) -> int:
        """How many heads there are."""
        return len(self.weights)

    def head_output(self, head: int) -> Float[Tensor, "Q W"]:
        """head_i W_i^O: what one head adds to the output at each place."""
        return self.heads[head] @ self.matrices[head]

    def transformed(self, head: int) -> Float[Tensor, "K W"]:
        """f(x) = (x W_i^V) W_i^O: what each key would give to a query that looked at nothing else."""
        return self.v[head] @ self.matrices[head]

    def norms(self, head: int) -> Float[Tensor, "Q K"]:
        """‖α f(x)‖: how long the vector is that each query gets from each key (Kobayashi 2020)."""
        return self.weights[head] * self.transformed(head).norm(dim=-1)

    def sum_of_heads(self) -> Float[Tensor, "Q W"]:
        """Σ head_i W_i^O, and the bias: the output, made of its parts."""
        total = torch.zeros_like(self.output) if self.bias is None else self.bias.expand_as(self.output)
        for head in range(self.n_heads):
            total = total + self.head_output(head)
        return total


@dataclass(frozen=True, eq=False)
class Trace:
    """One text, and all that every head did with it."""

    model_input: ModelInput
    attentions: Mapping[str, AttentionTrace]  # by name, in the order a forward pass meets them
    hidden: Mapping[str, Float[Tensor, "Q W"]]  # what the encoder and the decoder came to
    difference: float = 0.0  # the largest from the fused path, of numbers larger than 1 relative to the largest

    def __getitem__(self, attention: str) -> AttentionTrace:
        if attention not in self.attentions:
            raise LensError(f"There is no attention {attention}. {did_you_mean(attention, self.attentions)}")
        return self.attentions[attention]

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order a forward pass meets them."""
        return [Head(name, number) for name, one in self.attentions.items() for number in range(one.n_heads)]

    def weights(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """How much one head looks from each query at each key: every row sums to 1."""
        attended, number = self._find(head)
        return attended.weights[number]

    def norms(self, head: Head | str) -> Float[Tensor, "Q K"]:
        """How long the vector is that each query gets from each key through one head."""
        attended, number = self._find(head)
        return attended.norms(number)

    def check(self, fused: FusedOutputs) -> float:
        """The largest difference from the fused path, which must be within the bound."""
        largest = 0.0
        for name, one in self.attentions.items():
            sums = one.weights.sum(-1)
            for what, ours, theirs in (
                ("the sums of its rows", sums, torch.ones_like(sums)),
                ("its weighted values", one.weights @ one.v, fused.heads[name]),
                ("its heads", one.heads, fused.heads[name]),
                ("the sum of its heads", one.sum_of_heads(), fused.outputs[name]),
                ("its output", one.output, fused.outputs[name]),
            ):
                largest = max(largest, _compare(f"{name}, {what}", ours, theirs))
        for stack, hidden in self.hidden.items():
            largest = max(largest, _compare(stack, hidden, fused.hidden[stack]))
        return largest

    def _find(self, head: Head | str) -> tuple[AttentionTrace, int]:
        wanted = Head.parse(head) if isinstance(head, str) else head
        attended = self[wanted.attention]
        if not 0 <= wanted.number < attended.n_heads:
            raise LensError(f"There is no head {wanted}: {wanted.attention} has heads 0 to {attended.n_heads - 1}.")
        return attended, wanted.number


def trace(
    of: Bundle | Task,
    text: str,
    answer: str | None = None,
    *,
    search: DecodeSettings | None = None,
    checked: bool = True,
) -> Trace:
    """What every head does as a model reads a text and, if it has a decoder, writes this answer.

    Without an answer the model writes its own, and that very search is traced, step by step as its caches grow: greedy
    unless `search` says otherwise. A language model that is given "" reads the text and writes nothing. `checked` is
    whether the trace is compared with the fused path, which costs one pass more.
    """
    task = of.task if isinstance(of, Bundle) else of
    model_input = task.model_input(text, answer)
    if answer is None and isinstance(task, GenerativeTask):
        found = _trace_writing(task, model_input, search or DecodeSettings(method="greedy"))
    else:
        found = _trace_pass(task.model, model_input)
    return _checked(found, task.model) if checked else found


def trace_input(model: Transformer, model_input: ModelInput, *, checked: bool = True) -> Trace:
    """The same for tokens that are chosen already, in one forward pass."""
    found = _trace_pass(model, model_input)
    return _checked(found, model) if checked else found


def _trace_pass(model: Transformer, model_input: ModelInput) -> Trace:
    recorder = Recorder()
    run(model, model_input, recorder)
    return _collect(model, model_input, recorder)


def _trace_writing(task: Task, model_input: ModelInput, search: DecodeSettings) -> Trace:
    assert isinstance(task, GenerativeTask)
    if task.model.settings.norm == "sample":
        raise LensError(
            'A model with model.norm = "sample" computes every place anew for each one that it writes, so that its '
            "writing has no one trace. Give an answer to trace instead."
        )
    recorder = Recorder()
    _, written = task.generate_one(model_input, search, recorder)
    if not recorder.n_calls("decoder"):  # it was to write nothing at all
        return _trace_pass(task.model, written)
    return _collect(task.model, written, recorder)


def _checked(found: Trace, model: Transformer) -> Trace:
    return replace(found, difference=found.check(run_fused(model, found.model_input)))


def _compare(where: str, ours: Tensor, theirs: Tensor) -> float:
    if not ours.numel():
        return 0.0
    difference = float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1.0))
    if not difference <= BOUND:  # NaN is no number within it
        raise LensError(
            f"The trace is not what the model computes: {where} differ by {difference:.1e}, more than {BOUND:.0e}. "
            "Weights in half precision, gates, or a model that is no longer a number can be the reason."
        )
    return difference


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
    k, v = (path.other_keys(f"{name}.{what}") if is_cross else path.keys(f"{name}.{what}") for what in "kv")
    scores, weights = (
        path.rows(f"{name}.{what}") if is_cross else path.pairs(f"{name}.{what}", hidden)
        for what, hidden in (("scores", -torch.inf), ("weights", 0.0))
    )
    q, heads, output = (path.rows(f"{name}.{what}") for what in ("q", "heads", "output"))
    matrices, bias = output_matrices(attention)
    return AttentionTrace(attention.name, queries, keys, q, k, v, scores, weights, heads, output, matrices, bias)


def output_matrices(attention: MultiHeadAttention) -> tuple[Float[Tensor, "H E W"], Float[Tensor, " W"] | None]:
    """W_i^O of every head, and what is added after them; without projections each head has a slice of the output."""
    output, heads = attention.output, attention.heads
    bias = None
    if isinstance(output, nn.Linear):
        joined = output.weight.detach().cpu().T
        bias = None if output.bias is None else output.bias.detach().cpu()
    else:
        joined = torch.eye(heads.n_heads * heads.value_width)
    return joined.unflatten(0, (heads.n_heads, heads.value_width)), bias
