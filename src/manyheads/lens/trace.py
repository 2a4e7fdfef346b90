"""`trace`: one text through a model, and all that every head of it did there."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.recorder import Path, Recorder
from manyheads.model import MultiHeadAttention, Transformer
from manyheads.tasks import Reading, Task, Writer
from manyheads.text.tokenizer import Piece

# H heads, Q query places, K key places, W width, D width of a head's key, E width of its value.


@dataclass(frozen=True)
class Attended:
    """What every head of one attention did with one text."""

    name: str  # encoder.0.self, decoder.1.cross
    queries: tuple[Piece, ...]
    keys: tuple[Piece, ...]
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
        """f(x) = (x W_i^V) W_i^O: what each key would give a query that looks at nothing else."""
        return self.v[head] @ self.matrices[head]

    def norms(self, head: int) -> Float[Tensor, "Q K"]:
        """‖α f(x)‖: how long the vector is that a query gets from each key (Kobayashi 2020)."""
        return self.weights[head] * self.transformed(head).norm(dim=-1)


@dataclass(frozen=True)
class Trace:
    """One text, and all that every head did with it."""

    reading: Reading
    attentions: Mapping[str, Attended]  # by name, in the order a forward pass meets them
    hidden: Mapping[str, Float[Tensor, "Q W"]]  # what the encoder and the decoder came to

    def __getitem__(self, name: str) -> Attended:
        return self.attentions[name]


def trace(of: Bundle | Task, text: str, answer: str | None = None, *, search: DecodeSettings | None = None) -> Trace:
    """What every head does as a model reads a text and, where it writes, writes this answer.

    Without an answer the model writes its own, and what is traced is that very search, step by step: greedy unless
    `search` says otherwise.
    """
    task = of.task if isinstance(of, Bundle) else of
    reading = task.reading(text, answer)
    if answer is None and isinstance(task, Writer):
        return _trace_writing(task, reading, search or DecodeSettings(method="greedy"))
    return trace_reading(task, reading)


def trace_reading(task: Task, reading: Reading) -> Trace:
    """The same for pieces that are chosen already, in one forward pass."""
    model, recorder = task.model, Recorder()
    device = model.output.weight.device
    source, target = (
        torch.tensor([[piece.id for piece in pieces]], device=device) if pieces else None
        for pieces in (reading.source, reading.target)
    )
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            model.hidden(source, target, tap=recorder)
    finally:
        model.train(was_training)
    return _collect(model, reading, recorder)


def _trace_writing(task: Task, reading: Reading, search: DecodeSettings) -> Trace:
    assert isinstance(task, Writer)
    if task.model.settings.norm == "sample":
        raise LensError(
            'A model with model.norm = "sample" computes every place anew with each one that is written, so that its '
            "writing has no one trace. Trace an answer of your choice."
        )
    recorder = Recorder()
    _, written = task.write(reading, search, recorder)
    if not recorder.reads("decoder"):
        return trace_reading(task, written)
    return _collect(task.model, written, recorder)


def _collect(model: Transformer, reading: Reading, recorder: Recorder) -> Trace:
    sides = {"encoder": reading.source, "decoder": reading.target}
    paths = {stack: recorder.along(stack, [piece.id for piece in pieces]) for stack, pieces in sides.items() if pieces}
    attentions = {}
    for attention in model.attentions():
        stack, rest = attention.name.split(".", 1)
        keys = reading.source if rest.endswith("cross") else sides[stack]
        attentions[attention.name] = _attended(attention, sides[stack], keys, paths[stack], rest)
    return Trace(reading, attentions, {stack: path.rows("hidden") for stack, path in paths.items()})


def _attended(
    attention: MultiHeadAttention, queries: tuple[Piece, ...], keys: tuple[Piece, ...], path: Path, name: str
) -> Attended:
    is_cross = name.endswith("cross")
    k, v = (path.other_keys(f"{name}.{key}") if is_cross else path.keys(f"{name}.{key}") for key in "kv")
    matrices, bias = output_matrices(attention)
    return Attended(
        attention.name,
        queries,
        keys,
        q=path.rows(f"{name}.q"),
        k=k,
        v=v,
        scores=path.rows(f"{name}.scores") if is_cross else path.pairs(f"{name}.scores", -torch.inf),
        weights=path.rows(f"{name}.weights") if is_cross else path.pairs(f"{name}.weights", 0.0),
        heads=path.rows(f"{name}.heads"),
        output=path.rows(f"{name}.output"),
        matrices=matrices.cpu(),
        bias=None if bias is None else bias.cpu(),
    )


def output_matrices(attention: MultiHeadAttention) -> tuple[Float[Tensor, "H E W"], Float[Tensor, " W"] | None]:
    """W_i^O of every head, and what is added after them; without projections each head has a slice of the output."""
    output = attention.output
    if isinstance(output, nn.Linear):
        matrices = output.weight.detach().T.unflatten(0, (attention.heads.n_heads, -1))
        return matrices, None if output.bias is None else output.bias.detach()
    width = attention.heads.n_heads * attention.heads.value_width
    return torch.eye(width).unflatten(0, (attention.heads.n_heads, -1)), None
