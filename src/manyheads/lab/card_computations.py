"""Numbers of the answer cards that need no experiment: small computations in float64.

A text writes {{computed GROUP NAME}}. A group is a function of this module; `COMPUTATIONS` lists them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import torch
from torch import Tensor, nn

from manyheads.decode.hypotheses import length_penalty
from manyheads.errors import LabError
from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.lab_texts import LabText, changed
from manyheads.messages import _
from manyheads.model import ModelSettings, Transformer, attention, attention_weights, smoothed_cross_entropy
from manyheads.model.attention import masked_softmax
from manyheads.model.feed_forward import make_feed_forward
from manyheads.model.norms import NORMS
from manyheads.model.positions import RotaryPositions, SinusoidalPositions
from manyheads.model.size import parameters_by_part
from manyheads.training.settings import TrainSettings, learning_rate

_COMPUTED = re.compile(r"\{\{computed (\S+) (\S+)\}\}")
_MEBIBYTE, _GIBIBYTE = 2.0**20, 2.0**30
_VOCAB_SIZE = 37_000  # of the base model of 2017


def fill_computed(text: LabText) -> LabText:
    """The text in every language with its computed numbers."""
    return changed(text, lambda part: _COMPUTED.sub(lambda match: computed(match[1], match[2]), part))


def computed(group: str, name: str) -> str:
    """One computed number or vector, as text."""
    try:
        return _compute(group)[name]
    except KeyError:
        shown = f"{{{{computed {group} {name}}}}}"
        raise LabError(_("{computation} names a computation that does not exist.", computation=shown)) from None


@cache
def _compute(group: str) -> Mapping[str, str]:
    return COMPUTATIONS[group]()


def _doubles(*rows: Iterable[float]) -> Tensor:
    return torch.tensor([list(row) for row in rows], dtype=torch.float64)


def _number(value: float, digits: int = 3) -> str:
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0.0 else text.replace("-", "−")


def _vector(values: Tensor, digits: int = 3) -> str:
    shown = (_number(float(value), digits).replace(",", "") for value in values.flatten())
    return f"[{', '.join(shown)}]"


def one_head_by_hand() -> dict[str, str]:
    """Two lookups by one softmax with weights set by hand: two thirds on the first record, a third on the second.

    A query scores the record of its first key by ln 2 more than that of its second, and both far above the others. The
    value that gets two thirds is then the first one; logits linear in the mixture, with a bias, read off the pair.
    """
    task = Lookup(n_keys=8, n_values=8, n_lookups=2)
    batch = task.batch(2000, torch.Generator().manual_seed(1), split="test")
    assert batch.source is not None
    first_query = 1 + task.n_answers
    asked = batch.source[:, :1] - first_query
    records = batch.source[:, 1:] - first_query - task.n_keys**2
    keys, values = (nn.functional.one_hot(ids, 8).double() for ids in (records // 8, records % 8))
    first, second = (nn.functional.one_hot(ids, 8).double() for ids in (asked // 8, asked % 8))
    query = (40 + math.log(2)) * first + 40 * second
    mixture = attention(query * math.sqrt(8), keys, values)[:, 0]
    eye = torch.eye(8, dtype=torch.float64)
    means = (2 * eye[:, None] + eye[None]).flatten(0, 1) / 3  # of every pair of values
    logits = mixture @ means.mT - means.square().sum(-1) / 2  # the nearest pair has the highest
    is_right = logits.argmax(-1) == batch.expected[:, 0] - 1
    return {"accuracy": _number(100 * float(is_right.double().mean()), 0)}


def one_query() -> dict[str, str]:
    """Attention of one query to three keys of width 2."""
    q, k, v = _doubles((1, 2)), _doubles((1, 0), (0, 1), (1, 1)), _doubles((10, 0), (0, 10), (5, 5))
    weights = attention_weights(q, k)
    return {
        "products": _vector(q @ k.mT, 0),
        "scores": _vector(q @ k.mT / math.sqrt(2)),
        "weights": _vector(weights),
        "output": _vector(attention(q, k, v)),
    }


def three_by_three() -> dict[str, str]:
    """The worked example of the circulating notes: X = W^Q = [[1,2,3],[4,5,6],[7,8,9]], W^K = Xᵀ."""
    x, w_v = _doubles((1, 2, 3), (4, 5, 6), (7, 8, 9)), _doubles((1, 7, 4), (2, 8, 5), (3, 9, 6))
    q, k, v = x @ x, x @ x.mT, x @ w_v
    scores, weights = q @ k.mT / math.sqrt(3), attention_weights(q, k)
    return {
        "scores": _vector(scores[0], 0),
        "gap": _number(float(scores[0, 2] - scores[0, 1]), 0),
        "weights": ", ".join(_vector(row, 0) for row in weights),
        "output": _vector((weights @ v)[0], 0),
    }


def softmax() -> dict[str, str]:
    """Softmax against division by the sum, for scores of both signs."""
    scores = _doubles((2, 1, -1))
    weights = scores.softmax(-1)
    return {
        "weights": _vector(weights),
        "shifted": _vector((scores + 100).softmax(-1)),
        "divided": _vector(scores / scores.sum()),
        "doubled": _vector((2 * scores).softmax(-1)),
    }


def tied() -> dict[str, str]:
    """Scores of two tokens with separate and with tied projections of queries and keys."""
    x, w_q, w_k = _doubles((1, 0), (2, 1)), _doubles((1, 0), (1, 1)), _doubles((2, 1), (1, 0))
    separate, together = (x @ w_q) @ (x @ w_k).mT, (x @ w_q) @ (x @ w_q).mT
    weights = attention_weights(x @ w_q, x @ w_q)
    return {
        "forward": _number(float(separate[0, 1]), 0),
        "backward": _number(float(separate[1, 0]), 0),
        "tied-forward": _number(float(together[0, 1]), 0),
        "tied-backward": _number(float(together[1, 0]), 0),
        "self": _number(float(weights[0, 0])),
        "other": _number(float(weights[0, 1])),
    }


def masks() -> dict[str, str]:
    """Three scores of which the last belongs to a hidden key."""
    scores, visible = _doubles((2, 1, 3)), torch.tensor([[True, True, False]])
    zeroed, louder = (rows.softmax(-1).masked_fill(~visible, 0.0) for rows in (scores, scores + _doubles((0, 0, 2))))
    return {
        "before": _vector(masked_softmax(scores, visible)),
        "after": _vector(zeroed),
        "after-sum": _number(float(zeroed.sum())),
        "after-louder": _vector(louder),
        "before-louder": _vector(masked_softmax(scores + _doubles((0, 0, 2)), visible)),
        "all-hidden": _vector((scores * 0 - math.inf).softmax(-1), 0).replace("nan", "NaN"),
    }


def views() -> dict[str, str]:
    """How many pairs of positions see each other."""
    n, n_source = 6, 5
    return {
        "bidirectional": _number(n * n, 0),
        "causal": _number(float(torch.ones(n, n).tril().sum()), 0),
        "last": _number(float(torch.ones(n, n).tril()[-1].sum()), 0),
        "cross": _number(n * n_source, 0),
    }


def multi_head() -> dict[str, str]:
    """Parameters, work and weights of one attention of width 512, and W^O as a sum over heads."""
    width, n_positions = 512, 100
    sizes = {}
    for n_heads in (1, 8, 16):
        settings = ModelSettings(vocab_size=1, shape="encoder", n_encoder_layers=1, n_heads=n_heads, width=width)
        block = Transformer(settings).attentions()[0]
        sizes[f"parameters-{n_heads}"] = _number(sum(parameter.numel() for parameter in block.parameters()), 0)
        head_width = width // n_heads
        sizes[f"products-{n_heads}"] = _number(2 * n_heads * n_positions**2 * head_width, 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        q, k = torch.randn(2, 8, 5, 64, dtype=torch.float64)
    weights = attention_weights(q, k)
    first, second = _doubles((1, 2)), _doubles((3, -1))
    w_o = _doubles((1, 0), (0, 1), (2, 1), (1, -1))
    return sizes | {
        "one-head-sum": _number(float(weights[0, 0].sum()), 1),
        "all-heads-sum": _number(float(weights[:, 0].sum()), 1),
        "concat": _vector(torch.cat([first, second], -1) @ w_o, 0),
        "first": _vector(first @ w_o[:2], 0),
        "second": _vector(second @ w_o[2:], 0),
    }


def norms() -> dict[str, str]:
    """The token [1, 2, 3, 6] under four norms: alone in its sentence, with padding, with another sentence."""
    token, padding = _doubles((1, 2, 3, 6), (5, 4, 1, 2)), torch.zeros(1, 4, dtype=torch.float64)
    other = _doubles((9, 0, 4, 3), (7, 8, 0, 1))
    alone = token[None]
    batches = {
        "alone": (alone, torch.ones(1, 2, dtype=torch.bool)),
        "padded": (torch.cat([token, padding])[None], torch.tensor([[True, True, False]])),
        "with-other": (torch.stack([token, other]), torch.ones(2, 2, dtype=torch.bool)),
    }
    values = {"mean": _number(float(token[0].mean()), 1), "variance": _number(float(token[0].var(correction=0)), 1)}
    for name, kind in NORMS.items():
        for batch, (x, is_real) in batches.items():
            norm = kind(4, 1e-12).double().train()
            values[f"{name}-{batch}"] = _vector(norm(x, is_real)[0, 0].detach(), 2)
    shifted = NORMS["layer"](4, 1e-12).double()((alone + 10), batches["alone"][1])[0, 0]
    rms_shifted = NORMS["rms"](4, 1e-12).double()((alone + 10), batches["alone"][1])[0, 0]
    return values | {"layer-shifted": _vector(shifted.detach(), 2), "rms-shifted": _vector(rms_shifted.detach(), 2)}


def feed_forward() -> dict[str, str]:
    """Parameters of a layer of the base model without biases and norms, and what a changed token changes."""
    in_attention, in_network = 4 * 512 * 512, 2 * 512 * 2048
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = make_feed_forward(ModelSettings(vocab_size=1, width=8, n_heads=1, feed_forward_width=32)).double()
        x = torch.randn(1, 3, 8, dtype=torch.float64)
    changed = x.clone()
    changed[0, 0] += 1.0
    with torch.no_grad():
        changes = (network(changed) - network(x)).abs().amax(-1)[0]
    return {
        "own-change": _number(float(changes[0]), 2),
        "other-change": _number(float(changes[1:].max()), 2),
        "attention": _number(in_attention, 0),
        "network": _number(in_network, 0),
        "share": _number(100 * in_network / (in_attention + in_network), 0),
        "layer": _number(in_attention + in_network, 0),
        "layer-with-cross": _number(2 * in_attention + in_network, 0),
    }


def order() -> dict[str, str]:
    """How much the outputs of an untrained encoder change, apart from their order, when the input is reversed."""
    changes = {}
    for positions in ("none", "sinusoidal"):
        settings = ModelSettings(
            vocab_size=10, shape="encoder", n_encoder_layers=2, width=16, n_heads=2, positions=positions, dropout=0.0
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            model = Transformer(settings).double().eval()
        ids = torch.tensor([[3, 1, 4, 9, 2]])
        with torch.no_grad():
            straight, reversed_back = model.hidden(ids), model.hidden(ids.flip(1)).flip(1)
        changes[positions] = _number(float((straight - reversed_back).abs().max()), 2)
    return changes


def rotary() -> dict[str, str]:
    """The same query and key at three pairs of positions with the same distance, and at another distance."""
    rotate = RotaryPositions(4)
    q, k = _doubles((1, 2, 0, 1))[None, None], _doubles((2, 1, 1, 0))[None, None]

    def product(query_position: int, key_position: int) -> str:
        at_query, at_key = (torch.tensor([[position]]) for position in (query_position, key_position))
        return _number(float((rotate.rotate(q, at_query) * rotate.rotate(k, at_key)).sum()))

    return {f"{m}-{n}": product(m, n) for m, n in ((3, 1), (10, 8), (103, 101), (3, 2), (0, 0))}


def embedding() -> dict[str, str]:
    """Sizes of initial embeddings and of sinusoids at width 512."""
    width = 512
    sinusoid = SinusoidalPositions(width)(torch.arange(100)[None])
    return {
        "component": _number(width**-0.5),
        "factor": _number(width**0.5, 1),
        "scaled": _number(width**-0.5 * width**0.5, 0),
        "length": _number(1.0, 0),
        "sinusoid-component": _number(float(sinusoid.square().mean().sqrt()), 2),
        "sinusoid-length": _number(float(sinusoid.norm(dim=-1).mean()), 0),
        "scaled-length": _number(width**0.5, 1),
    }


def tying() -> dict[str, str]:
    """Parameters of the base model of 2017 with one shared matrix, and with three."""
    tied_size = sum(parameters_by_part(ModelSettings(vocab_size=_VOCAB_SIZE)).values())
    free = ModelSettings(vocab_size=_VOCAB_SIZE, tie_source_target=False, tie_output=False)
    free_size = sum(parameters_by_part(free).values())
    return {
        "matrix": _number(_VOCAB_SIZE * 512 / 1e6, 1),
        "tied": _number(tied_size / 1e6, 1),
        "free": _number(free_size / 1e6, 1),
        "share": _number(100 * (free_size - tied_size) / free_size, 0),
    }


def smoothing() -> dict[str, str]:
    """The target of a vocabulary of five with ε = 0.1, read from the gradient of the loss: softmax − target."""
    n_classes, right = 5, torch.tensor([2])

    def target(loss: Callable[[Tensor], Tensor]) -> Tensor:
        logits = torch.zeros(1, n_classes, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(loss(logits), logits)
        return logits.detach().softmax(-1) - gradient

    ours = target(lambda logits: smoothed_cross_entropy(logits, right, 0.1))
    pytorch = target(lambda logits: nn.functional.cross_entropy(logits, right, label_smoothing=0.1))
    best_gap = torch.log(ours[0, 2] / ours[0, 0])
    return {
        "target": _vector(ours),
        "pytorch": _vector(pytorch),
        "lowest-loss": _number(float(-(ours * ours.log()).sum())),
        "best-gap": _number(float(best_gap), 2),
    }


def warm_up() -> dict[str, str]:
    """The learning rates of the base model of 2017."""
    settings = TrainSettings()
    rates = {f"step-{step}": learning_rate(step, settings, 512) for step in (1, 4000, 16_000, 100_000)}
    return {name: f"{rate:.1e}".replace("e-0", "e−") for name, rate in rates.items()}


def dropout() -> dict[str, str]:
    """Values that survive dropout are scaled up, so that the mean stays."""
    rate, n_values = 0.1, 10
    kept = 1 / (1 - rate)
    return {"kept": _number(kept), "mean": _number(kept * (n_values - rate * n_values) / n_values, 1)}


def beam() -> dict[str, str]:
    """A tree of two steps in which the best first token is not the start of the best sequence."""
    first, second = {"a": 0.6, "b": 0.4}, {"a": 0.4, "b": 0.9}
    totals = {name: first[name] * second[name] for name in first}
    short, long = -4.0, -5.0  # log-probabilities of sequences of 5 and 10 tokens
    return {
        "greedy": _number(totals["a"], 2),
        "beam": _number(totals["b"], 2),
        "score-5": _number(short / length_penalty(5, 0.6), 2),
        "score-10": _number(long / length_penalty(10, 0.6), 2),
    }


def sampling() -> dict[str, str]:
    """One distribution at three temperatures, cut by top-k and by top-p."""
    logits = _doubles((3, 2, 1, 0))
    probabilities = logits.softmax(-1)[0]
    top_k = torch.cat([probabilities[:2] / probabilities[:2].sum(), torch.zeros(2)])
    kept = probabilities.cumsum(0) - probabilities < 0.9
    top_p = probabilities * kept / (probabilities * kept).sum()
    return {
        "cold": _vector((logits / 0.5).softmax(-1), 2),
        "plain": _vector(probabilities, 2),
        "hot": _vector((logits / 2).softmax(-1), 2),
        "top-k": _vector(top_k, 2),
        "top-p": _vector(top_p, 2),
        "n-top-p": _number(float(kept.sum()), 0),
    }


def cost() -> dict[str, str]:
    """Multiply–adds and memory of one attention of width 512 with eight heads."""
    width, n_heads = 512, 8
    values = {}
    for n in (512, 1024, 2048, 8192):
        quadratic, linear = 2 * n * n * width, 4 * n * width * width
        values[f"share-{n}"] = _number(100 * quadratic / (quadratic + linear), 0)
        values[f"memory-{n}"] = _number(n_heads * n * n * 4 / _MEBIBYTE, 0)
    return values


def kv_cache() -> dict[str, str]:
    """Keys and values of 32 layers with 32 heads of width 128 and 4,096 positions, two bytes a number."""
    n_layers, head_width, n_positions, n_new = 32, 128, 4096, 1000

    def size(n_key_heads: int) -> str:
        return _number(2 * n_layers * n_key_heads * head_width * n_positions * 2 / _GIBIBYTE, 2)

    return {
        "all": size(32),
        "grouped": size(8),
        "one": size(1),
        "with": _number(n_new, 0),
        "without": _number(n_new * (n_new + 1) / 2, 0),
    }


COMPUTATIONS: dict[str, Callable[[], Mapping[str, str]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        one_head_by_hand,
        one_query,
        three_by_three,
        softmax,
        tied,
        masks,
        views,
        multi_head,
        norms,
        feed_forward,
        order,
        rotary,
        embedding,
        tying,
        smoothing,
        warm_up,
        dropout,
        beam,
        sampling,
        cost,
        kv_cache,
    )
}
