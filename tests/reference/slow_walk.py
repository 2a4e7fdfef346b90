"""`manyheads walk --json` recomputed with numpy: each step from the one before it, the toy model from its weights.

Nothing here imports manyheads. `steps` yields (name, value in the JSON, value recomputed) for whatever a walk has.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

Pair = tuple[str, Any, Any]
Weights = dict[str, np.ndarray]


def with_infinity(rows: list[list[float | None]]) -> np.ndarray:
    return np.array([[-np.inf if value is None else value for value in row] for row in rows])


def plus(bias: list[float] | None) -> np.ndarray | float:
    return 0.0 if bias is None else np.array(bias)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sinusoids(n_positions: int, width: int) -> np.ndarray:
    table = np.empty((n_positions, width))
    for position in range(n_positions):
        for pair in range(width // 2):
            angle = position / 10_000 ** (2 * pair / width)
            table[position, 2 * pair], table[position, 2 * pair + 1] = math.sin(angle), math.cos(angle)
    return table


def rotated(vectors: np.ndarray, n_features: int) -> np.ndarray:
    result = np.empty_like(vectors)
    for position, vector in enumerate(vectors):
        for pair in range(n_features // 2):
            angle = position / 10_000 ** (2 * pair / n_features)
            turned = complex(vector[2 * pair], vector[2 * pair + 1]) * complex(math.cos(angle), math.sin(angle))
            result[position, 2 * pair], result[position, 2 * pair + 1] = turned.real, turned.imag
    return result


def steps(walk: dict[str, Any]) -> Iterator[Pair]:
    """Recompute every step of a walk from the numbers before it."""
    yield from _attention(walk)
    block = walk["block"]
    for side in ("source_embedding", "target_embedding"):
        if block[side] is not None:
            yield from _named(side, _embedding(block[side]))
    yield from _named("sublayer", _sublayer(block["sublayer"], walk["output"]))
    yield from _named("norms", _comparison(block["norms"]))
    for part in (block, block["decoder"] or {}):
        if part.get("feed_forward") is not None:
            yield from _named("feed_forward", _feed_forward(part["feed_forward"]))
            yield from _named(
                "feed_forward_sublayer", _sublayer(part["feed_forward_sublayer"], part["feed_forward"]["output"])
            )
    for use in ("self", "cross"):
        attention = (block["decoder"] or {}).get(f"{use}_attention")
        if attention is not None:
            yield from _named(f"decoder.{use}", _attention(attention))
            sublayer = block["decoder"][f"{use}_sublayer"]
            yield from _named(f"decoder.{use}_sublayer", _sublayer(sublayer, attention["output"]))
    if block["output"] is not None:
        yield from _named("output", _output(block["output"]))
    if block["loss"] is not None:
        yield from _named("loss", _loss(block["loss"], block["output"]))


def _named(prefix: str, pairs: Iterator[Pair]) -> Iterator[Pair]:
    return ((f"{prefix}.{name}", given, expected) for name, given, expected in pairs)


def _attention(walk: dict[str, Any]) -> Iterator[Pair]:
    m, x, y = walk["matrices"], np.array(walk["queries_from"]), np.array(walk["keys_from"])
    head = walk["head"]
    if walk["q"][0]:
        yield "q", walk["q"], x @ m["query"] + plus(m["query_bias"])
    if walk["k"][0]:
        yield "k", walk["k"], y @ m["key"] + plus(m["key_bias"])
    v = y @ m["value"] + plus(m["value_bias"])
    yield "v", walk["v"], v
    if walk["rotated_q"] is not None:
        for name in ("q", "k"):
            vectors = np.array(walk[name])
            yield f"rotated_{name}", walk[f"rotated_{name}"], rotated(vectors, vectors.shape[1])
    products = np.array(walk["terms"]).sum(-1)
    if walk["form"] in ("scaled-dot", "dot"):
        q, k = (np.array(walk[f"rotated_{name}"] or walk[name]) for name in ("q", "k"))
        yield "terms", walk["terms"], q[:, None, :] * k[None, :, :]
        products = q @ k.T
        yield "scale", walk["softmax"]["scale"], math.sqrt(q.shape[1]) if walk["form"] == "scaled-dot" else 1.0
    yield "products", walk["products"], products
    visible = np.array(walk["visible"])
    if walk["attention"].startswith("decoder") and walk["attention"].endswith("self"):
        yield "visible", visible, np.tri(len(x), dtype=bool)
    distance = plus(walk["distance"])
    for name in ("softmax", "contrast"):
        row = walk[name]
        if row is None:
            continue
        scores = np.where(visible, products / row["scale"] + distance, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        yield f"{name}.scores", with_infinity(row["scores"]), scores
        yield f"{name}.exponentials", row["exponentials"], powers
        yield f"{name}.sums", row["sums"], powers.sum(-1)
        yield f"{name}.weights", row["weights"], powers / powers.sum(-1, keepdims=True)
    mixed = np.array(walk["softmax"]["weights"]) @ v
    yield "weighted_sum", walk["weighted_sum"], mixed
    heads, width = np.array(walk["heads"]), v.shape[1]
    part = slice(head * width, (head + 1) * width)
    yield "heads", heads[:, part], mixed
    yield "contribution", walk["contribution"], mixed @ np.array(m["output"])[part]
    yield "output", walk["output"], heads @ m["output"] + plus(m["output_bias"])


def _embedding(walk: dict[str, Any]) -> Iterator[Pair]:
    vectors = np.array(walk["vectors"])
    scaled = walk["scale"] * vectors
    yield "scale", walk["scale"], math.sqrt(vectors.shape[1])
    yield "scaled", walk["scaled"], scaled
    if walk["kind"] == "sinusoidal":
        yield "positions", walk["positions"], sinusoids(*vectors.shape)
    yield "output", walk["output"], scaled + plus(walk["positions"])


def _norm(walk: dict[str, Any]) -> Iterator[Pair]:
    x = np.array(walk["input"])
    means = {
        "layer": x.mean(-1, keepdims=True),
        "rms": np.zeros((len(x), 1)),
        "sample": x.mean(keepdims=True),
    }
    if walk["kind"] in means:  # batch norms use statistics of the training data
        mean = means[walk["kind"]]
        square = ((x - mean) ** 2).mean(None if walk["kind"] == "sample" else -1, keepdims=True)
        yield "mean", walk["mean"], mean
        yield "variance", walk["variance"], square
    normalized = (x - np.array(walk["mean"])) / np.sqrt(np.array(walk["variance"]) + walk["epsilon"])
    yield "normalized", walk["normalized"], normalized
    yield "output", walk["output"], normalized * walk["weight"] + plus(walk["bias"])


def _sublayer(walk: dict[str, Any], branch: Any) -> Iterator[Pair]:
    residual = np.array(walk["input"]) + walk["branch"]
    yield "branch", walk["branch"], branch
    yield "residual", walk["residual"], residual
    yield from _named("norm", _norm(walk["norm"]))
    is_post = walk["placement"] == "post"
    yield "norm.input", walk["norm"]["input"], residual if is_post else walk["input"]
    yield "output", walk["output"], walk["norm"]["output"] if is_post else residual


def _comparison(walk: dict[str, Any]) -> Iterator[Pair]:
    long, short, position = np.array(walk["sentence"]), np.array(walk["shorter"]), walk["position"]
    zeros = np.zeros((walk["n_padding"], long.shape[1]))
    short_padded = np.vstack([short, zeros])
    long_padded = np.vstack([long, np.zeros((len(short_padded) - len(long), long.shape[1]))])
    yield "shorter", short, long[: len(short)]
    # The rows over which each norm computes its mean and variance, without padding and with it.
    rows = {
        "layer": (short[position][:, None], short[position][:, None]),
        "batch": (np.vstack([long, short]),) * 2,
        "batch-with-padding": (np.vstack([long, short]), np.vstack([long_padded, short_padded])),
        "sample": (short.reshape(-1, 1), short_padded.reshape(-1, 1)),
    }
    for norm in walk["norms"]:
        for counted, case in zip(rows[norm["kind"]], ("without_padding", "with_padding"), strict=True):
            name, given, mean = f"{norm['kind']}.{case}", norm[case], counted.mean(0)
            variance = ((counted - mean) ** 2).mean(0)
            yield f"{name}.count", given["count"], len(counted)
            yield f"{name}.mean", given["mean"], mean
            yield f"{name}.variance", given["variance"], variance
            normalized = (short[position] - mean) / np.sqrt(variance + walk["epsilon"])
            yield f"{name}.normalized", given["normalized"], normalized


def _feed_forward(walk: dict[str, Any]) -> Iterator[Pair]:
    x = np.array(walk["input"])
    hidden = x @ walk["inner"] + walk["inner_bias"]
    yield "hidden", walk["hidden"], hidden
    if walk["activation"] == "swiglu":
        gate = x @ walk["gate"] + walk["gate_bias"]
        yield "gate_hidden", walk["gate_hidden"], gate
        activated = gate / (1 + np.exp(-gate)) * hidden
    elif walk["activation"] == "gelu":
        activated = hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
    else:
        activated = np.where(hidden > 0, hidden, 0)
    yield "activated", walk["activated"], activated
    yield "output", walk["output"], activated @ walk["outer"] + walk["outer_bias"]


def _output(walk: dict[str, Any]) -> Iterator[Pair]:
    logits = np.array(walk["logits"])
    if walk["final_norm"] is not None:
        yield from _named("final_norm", _norm(walk["final_norm"]))
        yield "hidden", walk["hidden"], walk["final_norm"]["output"][walk["position"]]
    yield "logits", logits[walk["ids"]], np.array(walk["vectors"]) @ walk["hidden"]
    powers = np.exp(logits - logits.max())
    yield "exponentials", walk["exponentials"], powers
    yield "exponential_sum", walk["exponential_sum"], powers.sum()
    yield "probabilities", walk["probabilities"], powers / powers.sum()


def _loss(walk: dict[str, Any], output: dict[str, Any]) -> Iterator[Pair]:
    probabilities, epsilon, right = np.array(output["probabilities"]), walk["smoothing"], walk["target"]
    targets = np.full(len(probabilities), epsilon / (len(probabilities) - 1))
    targets[right] = 1 - epsilon
    yield "right", walk["right"], 1 - epsilon
    yield "wrong", walk["wrong"], epsilon / (len(probabilities) - 1)
    yield "targets", walk["targets"], targets
    yield "log_probabilities", walk["log_probabilities"], np.log(probabilities)
    yield "loss", walk["loss"], -(targets * np.log(probabilities)).sum()
    yield "loss_unsmoothed", walk["loss_unsmoothed"], -math.log(probabilities[right])
    counted = targets[targets > 0]
    yield "smallest_loss", walk["smallest_loss"], -(counted * np.log(counted)).sum()


def toy_model(walk: dict[str, Any]) -> Iterator[Pair]:
    """Recompute the toy model from its weights and token ids alone: two heads, one block a stack, post-norm."""
    block = walk["block"]
    weights = {name: np.array(value) for name, value in block["weights"].items()}
    embedding = weights["output.weight"]
    n_source, n_target = (len(block[f"{side}_embedding"]["ids"]) for side in ("source", "target"))
    memory = 2 * embedding[block["source_embedding"]["ids"]] + sinusoids(n_source, 4)
    inputs = {"encoder.0.self": memory}
    outputs = {"encoder.0.self": _multi_head(memory, memory, weights, "encoder.0.attention")}
    memory = _layer_norm(memory + outputs["encoder.0.self"])
    memory = _layer_norm(memory + _network(memory, weights, "encoder.0"))
    x = 2 * embedding[block["target_embedding"]["ids"]] + sinusoids(n_target, 4)
    inputs["decoder.0.self"] = x
    outputs["decoder.0.self"] = _multi_head(x, x, weights, "decoder.0.attention", np.tri(n_target, dtype=bool))
    x = _layer_norm(x + outputs["decoder.0.self"])
    inputs["decoder.0.cross"] = x
    outputs["decoder.0.cross"] = _multi_head(x, memory, weights, "decoder.0.cross_attention")
    x = _layer_norm(x + outputs["decoder.0.cross"])
    x = _layer_norm(x + _network(x, weights, "decoder.0"))
    for attention in (walk, block["decoder"]["self_attention"], block["decoder"]["cross_attention"]):
        yield "queries_from", attention["queries_from"], inputs[attention["attention"]]
        yield "output", attention["output"], outputs[attention["attention"]]
        if attention["attention"].endswith("cross"):
            yield "keys_from", attention["keys_from"], memory
    yield "hidden", block["output"]["hidden"], x[block["output"]["position"]]
    yield "decoder", block["decoder"]["feed_forward_sublayer"]["output"], x
    logits = x[block["output"]["position"]] @ embedding.T
    yield "probabilities", block["output"]["probabilities"], softmax(logits)


def _multi_head(
    x: np.ndarray, y: np.ndarray, weights: Weights, name: str, visible: np.ndarray | None = None
) -> np.ndarray:
    heads = []
    for head in range(2):
        part = slice(2 * head, 2 * head + 2)
        q, k, v = (
            side @ weights[f"{name}.project.{kind}.weight"].T[:, part]
            for kind, side in (("query", x), ("key", y), ("value", y))
        )
        scores = q @ k.T / math.sqrt(2)
        heads.append(softmax(scores if visible is None else np.where(visible, scores, -np.inf)) @ v)
    return np.hstack(heads) @ weights[f"{name}.output.weight"].T


def _layer_norm(x: np.ndarray) -> np.ndarray:
    below = x - x.mean(-1, keepdims=True)
    return below / np.sqrt((below**2).mean(-1, keepdims=True) + 1e-5)


def _network(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    inner, outer = (f"{name}.feed_forward.{part}" for part in ("inner", "outer"))
    hidden = x @ weights[f"{inner}.weight"].T + weights[f"{inner}.bias"]
    return np.maximum(hidden, 0) @ weights[f"{outer}.weight"].T + weights[f"{outer}.bias"]
