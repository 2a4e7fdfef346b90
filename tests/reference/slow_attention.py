"""A slow reference of multi-head attention in plain Python: one row, head, query and key at a time."""

import math

import torch
from torch import Tensor

from manyheads.model import ModelSettings, MultiHeadAttention
from manyheads.model.masks import View

Vector = list[float]
Matrix = list[Vector]


def slow_attention(module: MultiHeadAttention, settings: ModelSettings, x: Tensor, y: Tensor, view: View) -> Tensor:
    """The expected value of `module(x, y, view)`; of `module`, only the weights are used."""
    weights = {name: value.tolist() for name, value in module.state_dict().items()}
    visible = view.visible.expand(x.size(0), 1, x.size(1), y.size(1))
    query_positions, key_positions = (
        positions.expand(x.size(0), -1).tolist() for positions in (view.query_positions, view.key_positions)
    )
    rows = [
        _one_sentence(
            settings, weights, x[row].tolist(), y[row].tolist(), visible[row, 0].tolist(),
            query_positions[row], key_positions[row], is_cross=module.name.endswith("cross"),
        )
        for row in range(x.size(0))
    ]  # fmt: skip
    return torch.tensor(rows)


def _one_sentence(
    settings: ModelSettings,
    weights: dict[str, list],
    x: Matrix,
    y: Matrix,
    visible: list[list[bool]],
    query_positions: list[int],
    key_positions: list[int],
    *,
    is_cross: bool,
) -> Matrix:
    n_heads, n_key_heads, head_width, value_width = settings.heads
    names = {
        "separate": ("query", "key", "value"),
        "tied": ("query_key", "query_key", "value"),
        "shared": ("shared",) * 3,
        "none": (None,) * 3,
    }[settings.projections]
    scores = "scaled-dot" if is_cross and not settings.score_form.reads_keys else settings.scores
    positions = "none" if is_cross else settings.positions
    concatenated: Matrix = [[] for _ in x]
    for head in range(n_heads):
        key_head = head * n_key_heads // n_heads
        q = [_project(weights, names[0], vector, head, head_width) for vector in x]
        k = [_project(weights, names[1], vector, key_head, head_width) for vector in y]
        v = [_project(weights, names[2], vector, key_head, value_width) for vector in y]
        if positions == "rotary":
            q = [_rotate(vector, position) for vector, position in zip(q, query_positions, strict=True)]
            k = [_rotate(vector, position) for vector, position in zip(k, key_positions, strict=True)]
        for i, query_position in enumerate(query_positions):
            powers = []
            for j, key_position in enumerate(key_positions):
                score = _score(scores, weights, head, q[i], k[j], query_position, key_position)
                if positions == "alibi":
                    score -= 2 ** (-8 * (head + 1) / n_heads) * abs(query_position - key_position)
                powers.append(math.exp(score) if visible[i][j] else 0.0)
            total = sum(powers) or 1.0
            mix = [sum(power / total * v[j][e] for j, power in enumerate(powers)) for e in range(value_width)]
            concatenated[i] += mix
    if settings.projections == "none":
        return concatenated
    bias = weights.get("output.bias", [0.0] * settings.width)
    return [
        [_dot(row, mixed) + b for row, b in zip(weights["output.weight"], bias, strict=True)] for mixed in concatenated
    ]


def _project(weights: dict[str, list], name: str | None, vector: Vector, head: int, width: int) -> Vector:
    """The slice of x W + b that belongs to a head; empty if the score form does not read it."""
    rows = range(head * width, (head + 1) * width)
    if name is None:
        return [vector[row] for row in rows]
    if f"project.{name}.weight" not in weights:
        return []
    bias = weights.get(f"project.{name}.bias")
    return [_dot(weights[f"project.{name}.weight"][row], vector) + (bias[row] if bias else 0.0) for row in rows]


def _score(
    form: str, weights: dict[str, list], head: int, q: Vector, k: Vector, query_position: int, key_position: int
) -> float:
    match form:
        case "scaled-dot":
            return _dot(q, k) / math.sqrt(len(q))
        case "dot":
            return _dot(q, k)
        case "cosine":
            tau = weights["scores.temperature"][head][0][0]
            return tau * _dot(q, k) / math.sqrt(_dot(q, q) * _dot(k, k))
        case "bilinear":
            matrix = weights["scores.weight"][head]
            products = [q[i] * matrix[i][j] * k[j] for i in range(len(q)) for j in range(len(k))]
            return sum(products) / math.sqrt(len(q))
        case "additive":
            return sum(w * math.tanh(a + b) for w, a, b in zip(weights["scores.weight"][head], q, k, strict=True))
        case "dense-synthesizer":
            return sum(
                max(a, 0.0) * row[key_position] for a, row in zip(q, weights["scores.weight"][head], strict=True)
            )
        case "random-synthesizer":
            return weights["scores.weight"][head][query_position][key_position]
    raise ValueError(form)


def _rotate(vector: Vector, position: int) -> Vector:
    rotated = []
    for i in range(0, len(vector), 2):
        angle = position * 10_000 ** (-i / len(vector))
        rotated.append(vector[i] * math.cos(angle) - vector[i + 1] * math.sin(angle))
        rotated.append(vector[i] * math.sin(angle) + vector[i + 1] * math.cos(angle))
    return rotated


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
