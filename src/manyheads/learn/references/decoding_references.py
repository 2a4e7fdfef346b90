"""References of the chapter on decoding: KV cache, greedy search, top-k and top-p, beam search."""

from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.attention_references import attention_weights, softmax
from manyheads.learn.references.reference import FINITE, NO_FAULTS, Array, Draw, Faults, Inputs, Property, Reference


def cached_attention(
    x: Array, past_k: Array, past_v: Array, w_q: Array, w_k: Array, w_v: Array, *, faults: Faults = NO_FAULTS
) -> tuple[Array, Array, Array]:
    """Causal self-attention of new positions, with the keys and values of earlier ones: output, all k, all v."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    n_past = len(past_k)
    if "new-first" in faults:
        all_k, all_v = np.concatenate([k, past_k]), np.concatenate([v, past_v])
    else:
        all_k, all_v = np.concatenate([past_k, k]), np.concatenate([past_v, v])
    if "keys-not-cached" in faults:
        all_k = np.concatenate([np.zeros_like(past_k), k])
    if "values-from-keys" in faults:
        all_v = np.concatenate([past_v, k])
    if "keys-from-values" in faults:
        all_k = np.concatenate([past_k, v])
    visible = np.tril(np.ones((len(x), len(all_k)), bool), 0 if "offset-missing" in faults else n_past)
    if "not-causal" in faults:
        visible = np.ones_like(visible)
    if "past-only" in faults:
        visible = np.tril(visible, n_past - 1)
    if "new-only" in faults:
        visible = np.triu(visible & (np.arange(len(all_k)) >= n_past), -len(x))
    output = attention_weights(q, all_k, visible, faults=faults) @ all_v
    if "returns-new" in faults:
        return output, k, v
    if "returns-past" in faults:
        return output, past_k, past_v
    if "returns-swapped" in faults:
        return output, all_v, all_k
    if "returns-inputs" in faults:
        return output, np.concatenate([past_k, x]), np.concatenate([past_v, x])
    return output, all_k, all_v


def cached_cases(draw: Draw) -> Iterator[Inputs]:
    """One new position first, then several, then none before."""
    for n_new, n_past, width in ((1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2), (3, 0, 2), (2, 3, 3)):
        yield {
            "x": draw.numbers(n_new, width),
            "past_k": draw.numbers(n_past, width),
            "past_v": draw.numbers(n_past, width),
            **{name: draw.numbers(width, width, most=1.5) for name in ("w_q", "w_k", "w_v")},
        }


def greedy(logits: Array, bos: int, eos: int, max_new_tokens: int, *, faults: Faults = NO_FAULTS) -> list[int]:
    """The most probable token after each token, until EOS; without BOS and EOS."""
    table = logits.T if "transposed" in faults else logits
    tokens: list[int] = []
    last = bos
    limit = max_new_tokens + faults.pick(0, one_more=1, one_less=-1)
    while len(tokens) < limit:
        row = table[bos if "always-bos" in faults else last]
        if "eos-forbidden" in faults:
            row = np.where(np.arange(len(row)) == eos, -np.inf, row)
        if "bos-forbidden" in faults:
            row = np.where(np.arange(len(row)) == bos, -np.inf, row)
        if "no-repetition" in faults:
            row = np.where(np.isin(np.arange(len(row)), tokens), -np.inf, row)
        if "smallest" in faults:
            best = int(row.argmin())
        elif "absolute" in faults:
            best = int(np.abs(row).argmax())
        elif "second" in faults:
            best = int(np.argsort(-row)[1])
        elif "last-of-equals" in faults:
            best = len(row) - 1 - int(row[::-1].argmax())
        else:
            best = int(row.argmax())
        if best == eos and "eos-ignored" not in faults:
            if "eos-included" in faults:
                tokens.append(best)
            break
        if best == bos and "stops-at-bos" in faults:
            break
        tokens.append(best)
        last = best
    return [bos, *tokens] if "bos-included" in faults else tokens


def greedy_cases(draw: Draw) -> Iterator[Inputs]:
    """Tables of next-token logits; some end, some do not, one has a tie."""
    yield {"logits": np.array([[0.1, 0.9], [0.8, 0.2]]), "bos": 0, "eos": 1, "max_new_tokens": 2}
    yield {
        "logits": np.array([[-0.9, 0.1, 0.2], [0.3, 0.1, 0.2], [0.1, 0.5, -0.8]]),
        "bos": 0,
        "eos": 1,
        "max_new_tokens": 2,
    }
    for number in range(7):
        size = 3 if number < 4 else 5
        logits = draw.random.permutation(size * size).reshape(size, size) / 10 - (0.4 if number % 2 else 0.0)
        yield {"logits": logits, "bos": 0, "eos": 1 if number % 3 else 2, "max_new_tokens": 3}
    yield {
        "logits": np.array([[0.1, 0.2, 0.9], [0.5, 0.1, 0.2], [0.9, 0.1, 0.2]]),
        "bos": 0,
        "eos": 1,
        "max_new_tokens": 3,
    }
    yield {
        "logits": np.array([[0.1, 0.2, 0.7, 0.7], [0.5, 0.1, 0.2, 0.0], [0.1, 0.9, 0.2, 0.3], [0.3, 0.9, 0.1, 0.1]]),
        "bos": 0,
        "eos": 1,
        "max_new_tokens": 3,
    }


def sampling_probabilities(
    logits: Array, temperature: float, top_k: int, top_p: float, *, faults: Faults = NO_FAULTS
) -> Array:
    """Temperature, then the k most probable, then the smallest set of them with at least p; renormalized."""
    scaled = logits * temperature if "temperature-multiplied" in faults else logits / temperature
    if faults & {"no-temperature", "temperature-last"}:
        scaled = logits
    if "temperature-squared" in faults:
        scaled = logits / temperature**2
    probabilities = softmax(scaled)
    order = np.argsort(-probabilities, kind="stable")
    if "ascending" in faults:
        order = order[::-1]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    n = top_k + faults.pick(0, k_one_more=1, k_one_less=-1)
    kept = rank < n
    if "no-top-k" in faults:
        kept = np.ones_like(kept)
    if "k-and-p-either" in faults:
        kept = np.ones_like(kept)
    within = probabilities * kept
    if "p-before-k" not in faults:
        within = within / within.sum()
    sorted_ = (probabilities if "p-before-k" in faults else within)[order]
    before = sorted_.cumsum() - sorted_
    if "p-leaves-out" in faults:
        nucleus = before + sorted_ <= top_p + 1e-6
        nucleus[0] = True
    elif "p-one-more" in faults:
        nucleus = (before < top_p) | np.roll(before < top_p, 1)
        nucleus[0] = True
    elif "p-threshold" in faults:
        nucleus = sorted_ >= 1 - top_p
        nucleus[0] = True
    elif "p-cut-at-value" in faults:
        nucleus = sorted_ >= top_p
        nucleus[0] = True
    else:
        nucleus = before < top_p - 1e-9
    if "no-top-p" in faults:
        nucleus = np.ones_like(nucleus)
    kept_p = nucleus[rank]
    kept = (rank < top_k) | kept_p if "k-and-p-either" in faults else kept & kept_p
    if "temperature-last" in faults:
        return softmax(np.where(kept, logits / temperature, -np.inf))
    if "zero-logits" in faults:
        return softmax(np.where(kept, scaled, 0))
    left = np.where(kept, probabilities, 0)
    if "not-renormalized" in faults:
        return left
    if "uniform" in faults:
        return kept / kept.sum()
    if "softmax-again" in faults:
        return softmax(np.where(kept, probabilities, -np.inf))
    return left / left.sum()


def sampling_cases(draw: Draw) -> Iterator[Inputs]:
    """Three words first; k or p alone, then both."""
    for size, temperature, top_k, top_p in (
        (3, 1.0, 2, 0.99),
        (3, 0.5, 3, 0.999),
        (3, 1.0, 3, 0.6),
        (3, 2.0, 2, 0.5),
        (4, 1.0, 3, 0.7),
        (4, 0.7, 3, 0.8),
        (5, 1.5, 4, 0.75),
        (6, 2.0, 4, 0.9),
        (6, 3.0, 3, 0.8),
        (8, 2.0, 6, 0.5),
    ):
        order = draw.random.permutation(size)
        yield {
            "logits": np.round(order * 0.6 + 0.1 * draw.random.integers(0, 4, size), 1),
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
        }


def _sums_to_one(_inputs: Inputs, result: Array, _other: Array) -> bool:
    return abs(float(np.sum(np.asarray(result))) - 1) < 1e-3


_TIES = "ties-reversed"  # no mistake: equal hypotheses in the other order


def beam_search(
    logits: Array, bos: int, eos: int, beam: int, max_new_tokens: int, alpha: float, *, faults: Faults = NO_FAULTS
) -> list[int]:
    """The hypothesis with the best log-probability divided by ((5 + length) / 6)^α; EOS counts in the length."""
    shifted = logits - logits.max(-1, keepdims=True)
    table = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    if "raw-logits" in faults:
        table = logits
    if "probabilities" in faults:
        table = softmax(logits)
    beam = 1 if "beam-of-one" in faults else beam

    def final(score: float, length: int) -> float:
        length += faults.pick(0, length_one_less=-1, length_one_more=1)
        penalty = ((5 + length) / 6) ** alpha
        penalty = faults.pick(
            penalty,
            no_penalty=1.0,
            penalty_by_length=float(max(length, 1)) ** alpha,
            penalty_multiplied=1 / penalty,
            penalty_of_full_length=float(max(length, 1)),
            penalty_constant_missing=(max(length, 1) / 6) ** alpha,
        )
        return score / penalty

    running: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for _step in range(max_new_tokens):
        grown = []
        for score, tokens in running:
            row = table[tokens[-1] if tokens else bos]
            added = row if "last-step-score" in faults else score + row
            grown += [(float(value), [*tokens, token]) for token, value in enumerate(added)]
        if _TIES in faults:
            grown.reverse()
        grown.sort(key=lambda one: -round(one[0], 9))
        if "worst-kept" in faults:
            grown.sort(key=lambda one: round(one[0], 9))
        running = []
        for score, tokens in grown[:beam]:
            if tokens[-1] == eos:
                finished.append((final(score, len(tokens)), tokens[:-1]))
            else:
                running.append((score, tokens))
        if "stops-at-first" in faults and finished:
            break
        if not running:
            break
    if "unfinished-dropped" not in faults:
        finished += [(final(score, len(tokens)), tokens) for score, tokens in running]
    if "finished-dropped" in faults:
        finished = [(final(score, len(tokens)), tokens) for score, tokens in running]
    if not finished:
        return []
    if _TIES in faults:
        finished.reverse()
    best = max(finished, key=lambda one: round(one[0], 9))
    if "first-finished" in faults:
        best = finished[0]
    if "worst-chosen" in faults:
        best = min(finished, key=lambda one: one[0])
    tokens = best[1]
    if "bos-included" in faults:
        return [bos, *tokens]
    return [*tokens, eos] if "eos-included" in faults else tokens


def beam_cases(draw: Draw) -> Iterator[Inputs]:
    """Tables of next-token logits whose best hypothesis does not depend on the order of equal ones."""
    for rows in (
        [[-0.3, 1.0, 0.9], [2.0, -0.3, 2.2], [2.5, 0.8, 1.9]],
        [[-1.3, 1.0, 0.7], [2.4, -0.9, -1.9], [1.9, -0.9, 0.5]],
    ):
        yield {"logits": np.array(rows), "bos": 0, "eos": 1, "beam": 3, "max_new_tokens": 3, "alpha": 4.0}
    for number in range(60):
        size = 3 if number < 40 else 5
        case: Inputs = {
            "logits": draw.numbers(size, size, most=2.5),
            "bos": 0,
            "eos": 1,
            "beam": 2 + number % 2,
            "max_new_tokens": 2 + number % 3,
            "alpha": (0.6, 1.5, 2.5)[number % 3],
        }
        if beam_search(*case.values()) == beam_search(*case.values(), faults=Faults([_TIES])):
            yield case


REFERENCES = {
    "kv-cache": Reference(cached_attention, cached_cases, {"finite": FINITE}),
    "greedy": Reference(greedy, greedy_cases),
    "sampling": Reference(sampling_probabilities, sampling_cases, {"sums-to-one": Property(_sums_to_one)}),
    "beam-search": Reference(beam_search, beam_cases),
}
