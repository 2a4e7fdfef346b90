"""References of the chapter on heads: split and merge, multi-head attention, grouped queries, head importance."""

import math
from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.attention_references import attention_weights
from manyheads.learn.references.reference import (
    FINITE,
    NO_FAULTS,
    Array,
    Draw,
    Faults,
    Inputs,
    Property,
    Reference,
    close,
)


def split_heads(x: Array, n_heads: int, *, faults: Faults = NO_FAULTS) -> Array:
    """(B, N, H·D) to (B, H, N, D): head i gets columns i·D … (i+1)·D."""
    n_rows, n_positions, width = x.shape
    size = width // n_heads
    if "split-scrambles" in faults:
        return x.reshape(n_rows, n_heads, n_positions, size)
    if "split-interleaved" in faults:
        return x.reshape(n_rows, n_positions, size, n_heads).transpose(0, 3, 1, 2)
    if "split-reversed" in faults:
        return x.reshape(n_rows, n_positions, n_heads, size)[:, :, ::-1].transpose(0, 2, 1, 3)
    return x.reshape(n_rows, n_positions, n_heads, size).transpose(0, 2, 1, 3)


def merge_heads(x: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """(B, H, N, D) to (B, N, H·D)."""
    n_rows, n_heads, n_positions, size = x.shape
    if "merge-scrambles" in faults:
        return x.reshape(n_rows, n_positions, n_heads * size)
    if "merge-interleaved" in faults:
        return x.transpose(0, 2, 3, 1).reshape(n_rows, n_positions, n_heads * size)
    if "merge-reversed" in faults:
        x = x[:, ::-1]
    if "merge-mean" in faults:
        x = np.repeat(x.mean(1, keepdims=True), n_heads, axis=1)
    return x.transpose(0, 2, 1, 3).reshape(n_rows, n_positions, n_heads * size)


def split_alone(x: Array, n_heads: int, *, faults: Faults = NO_FAULTS) -> Array:
    """`split_heads` as an exercise, with mistakes that only show without what follows."""
    n_rows, n_positions, width = x.shape
    size = width // n_heads
    four = x.reshape(n_rows, n_positions, n_heads, size)
    if "no-transpose" in faults:
        return four
    if "transposed-last" in faults:
        return four.transpose(0, 2, 3, 1)
    if "heads-first" in faults:
        return four.transpose(2, 0, 1, 3)
    if "sizes-swapped" in faults:
        return x.reshape(n_rows, n_positions, size, n_heads).transpose(0, 2, 1, 3)
    if "split-positions" in faults:
        return x.reshape(n_rows, n_heads, n_positions // n_heads, width) if n_positions % n_heads == 0 else _fail()
    if "repeated" in faults:
        return np.repeat(x[:, None], n_heads, axis=1)
    if "rows-and-heads-merged" in faults:
        return four.transpose(0, 2, 1, 3).reshape(n_rows * n_heads, n_positions, size)
    if "first-columns" in faults:
        return np.repeat(four[:, :, :1], n_heads, axis=2).transpose(0, 2, 1, 3)
    if "rows-mixed" in faults:
        return x.reshape(n_heads, n_rows, n_positions, size).transpose(1, 0, 2, 3)
    if "positions-reversed" in faults:
        return four.transpose(0, 2, 1, 3)[:, :, ::-1]
    return split_heads(x, n_heads, faults=faults)


def _fail() -> Array:
    raise ValueError("no such shape")


def split_cases(draw: Draw) -> Iterator[Inputs]:
    """One row first, then sizes that all differ."""
    for n_rows, n_positions, size, n_heads in (
        (1, 2, 1, 2),
        (1, 3, 1, 2),
        (1, 2, 2, 2),
        (2, 2, 2, 2),
        (2, 2, 1, 3),
        (2, 3, 2, 2),
    ):
        yield {"x": draw.numbers(n_rows, n_positions, n_heads * size, most=9), "n_heads": n_heads}
    yield {"x": draw.numbers(2, 4, 6, most=9), "n_heads": 2}
    yield {"x": draw.numbers(3, 5, 8, most=9), "n_heads": 4}


def merge_alone(x: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """`merge_heads` as an exercise, with mistakes that only show without what follows."""
    n_rows, n_heads, n_positions, size = x.shape
    if "summed" in faults:
        return x.sum(1)
    if "averaged" in faults:
        return x.mean(1)
    if "first-head" in faults:
        return x[:, 0]
    if "concatenated-positions" in faults:
        return x.reshape(n_rows, n_heads * n_positions, size)
    if "not-merged" in faults:
        return x.transpose(0, 2, 1, 3)
    if "result-transposed" in faults:
        return x.transpose(0, 1, 3, 2).reshape(n_rows, n_heads * size, n_positions)
    if "positions-reversed" in faults:
        x = x[:, :, ::-1]
    if "swapped-back-wrongly" in faults:
        return x.transpose(0, 3, 2, 1).reshape(n_rows, n_positions, n_heads * size)
    if "rows-mixed" in faults:
        return x.transpose(1, 2, 0, 3).reshape(n_rows, n_positions, n_heads * size)
    return merge_heads(x, faults=faults)


def merge_cases(draw: Draw) -> Iterator[Inputs]:
    """One row first, then sizes that all differ."""
    for shape in ((1, 2, 2, 1), (1, 2, 2, 2), (1, 2, 3, 2), (2, 2, 2, 2), (2, 3, 2, 2), (2, 2, 3, 3), (3, 2, 4, 5)):
        yield {"x": draw.numbers(*shape, most=9)}


def multi_head(
    x: Array,
    y: Array,
    visible: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array,
    n_heads: int,
    *,
    faults: Faults = NO_FAULTS,
) -> Array:
    """Multi-head attention from x to y."""
    sources = {"q": x, "k": y, "v": y}
    if "keys-from-x" in faults:
        sources["k"] = x
    if "values-from-x" in faults:
        sources["v"] = x
    if "queries-from-y" in faults:
        sources["q"] = y
    if "roles-swapped" in faults:
        sources = {"q": y, "k": x, "v": x}
    w_k = w_q if "keys-by-w-q" in faults else w_k
    w_v = w_k if "values-by-w-k" in faults else w_v
    if "one-head" in faults:
        n_heads = 1
    width = x.shape[-1]
    if "width-assumed" in faults and (w_q.shape[1] != width or w_v.shape[1] != width):
        raise ValueError("d_k is not d_model / n_heads")
    if "value-width-assumed" in faults and w_v.shape[1] != w_q.shape[1]:
        raise ValueError("d_v is not d_k")
    q, k, v = (
        split_heads(sources[name] @ weight, n_heads, faults=faults)
        for name, weight in (("q", w_q), ("k", w_k), ("v", w_v))
    )
    size = q.shape[-1]
    whole = faults.pick(
        size,
        scale_by_model_width=x.shape[-1],
        scale_by_model_share=max(x.shape[-1] // n_heads, 1),
        scale_by_all_heads=size * n_heads,
        scale_by_heads=n_heads,
        scale_by_value_width=v.shape[-1],
    )
    q = q * math.sqrt(size / whole)
    shown = visible[:, None]
    if "mask-first-head" in faults:
        shown = np.concatenate([shown, np.ones_like(np.repeat(shown, n_heads - 1, axis=1))], axis=1)
    weights = attention_weights(q, k, shown, faults=faults)
    heads = weights @ v
    merged = merge_heads(heads, faults=faults)
    if "no-output-projection" in faults:
        return merged
    if "residual-added" in faults:
        return merged @ w_o + x
    return merged @ (w_o.T if "output-transposed" in faults else w_o)


def multi_head_cases(draw: Draw) -> Iterator[Inputs]:
    """Two heads of width 1 first; then widths, lengths and values that all differ."""

    def case(
        rows: int, queries: int, keys: int, width: int, size: int, value: int, heads: int, visible: Array
    ) -> Inputs:
        return {
            "x": draw.numbers(rows, queries, width),
            "y": draw.numbers(rows, keys, width),
            "visible": visible,
            "w_q": draw.numbers(width, heads * size, most=1.5),
            "w_k": draw.numbers(width, heads * size, most=1.5),
            "w_v": draw.numbers(width, heads * value, most=1.5),
            "w_o": draw.numbers(heads * value, width, most=1.5),
            "n_heads": heads,
        }

    everything = np.ones((1, 2, 2), bool)
    yield case(1, 2, 2, 2, 1, 1, 2, everything)
    yield case(1, 2, 2, 2, 2, 1, 1, everything)
    yield case(1, 2, 2, 2, 2, 2, 2, everything)
    yield case(1, 2, 2, 2, 1, 1, 2, np.array([[[True, False], [True, True]]]))
    yield case(1, 2, 3, 2, 1, 1, 2, np.ones((1, 2, 3), bool))
    yield case(1, 3, 2, 2, 2, 1, 2, np.ones((1, 3, 2), bool))
    yield case(2, 3, 3, 4, 2, 2, 2, np.tril(np.ones((2, 3, 3), bool)))
    yield case(2, 2, 3, 3, 2, 3, 2, draw.mask(2, 2, 3))
    same = case(1, 3, 3, 4, 2, 2, 2, np.ones((1, 3, 3), bool))
    yield {**same, "y": same["x"]}
    yield case(2, 3, 4, 6, 4, 2, 3, draw.mask(2, 3, 4))
    yield case(1, 2, 2, 2, 1, 1, 2, np.array([[[True, True], [False, False]]]))


def _permute_keys(inputs: Inputs) -> Inputs | None:
    if inputs["y"].shape[1] < 2:
        return None
    return {**inputs, "y": inputs["y"][:, ::-1].copy(), "visible": inputs["visible"][:, :, ::-1].copy()}


def _same(_inputs: Inputs, result: Array, other: Array) -> bool:
    return close(result, other)


def _change_hidden(inputs: Inputs) -> Inputs | None:
    """Other vectors at the keys that no query of the row sees; hides the last key for that."""
    if inputs["y"].shape[1] < 2 or not inputs["visible"][:, :, :-1].any(-1).all() or inputs["visible"][:, :, -1].any():
        return None
    y = inputs["y"].copy()
    y[:, -1] += 1.5
    return {**inputs, "y": y}


def grouped(q: Array, k: Array, v: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """Grouped-query attention: queries (B, H, Q, D), keys (B, G, K, D), values (B, G, K, E)."""
    n_heads, n_groups = q.shape[1], k.shape[1]
    times = n_heads // n_groups
    k = np.flip(k, 1) if "groups-reversed" in faults else k
    v = np.flip(v, 1) if "value-groups-reversed" in faults else v
    if "tiled" in faults:
        k, v = np.tile(k, (1, times, 1, 1)), np.tile(v, (1, times, 1, 1))
    elif "first-group" in faults:
        k, v = (np.repeat(one[:, :1], n_heads, axis=1) for one in (k, v))
    elif "last-group" in faults:
        k, v = (np.repeat(one[:, -1:], n_heads, axis=1) for one in (k, v))
    elif "groups-averaged" in faults:
        k, v = (np.repeat(one.mean(1, keepdims=True), n_heads, axis=1) for one in (k, v))
    elif "values-tiled" in faults:
        k, v = np.repeat(k, times, axis=1), np.tile(v, (1, times, 1, 1))
    elif "keys-tiled" in faults:
        k, v = np.tile(k, (1, times, 1, 1)), np.repeat(v, times, axis=1)
    else:
        k, v = np.repeat(k, times, axis=1), np.repeat(v, times, axis=1)
    size = q.shape[-1]
    whole = faults.pick(
        size, scale_by_all_heads=size * n_heads, scale_by_groups=n_groups, scale_by_value_width=v.shape[-1]
    )
    visible = np.ones((1, 1, q.shape[2], k.shape[2]), bool)
    if "causal" in faults:
        visible = np.tril(visible)
    heads = attention_weights(q * math.sqrt(size / whole), k, visible, faults=faults) @ v
    if "heads-averaged-in-groups" in faults:
        shape = (q.shape[0], n_groups, times, q.shape[2], v.shape[-1])
        return heads.reshape(shape).mean(2)
    return heads


def grouped_cases(draw: Draw) -> Iterator[Inputs]:
    """Two heads on one key head first; repeating and tiling differ from four on."""
    for rows, heads, groups, queries, keys, size, value in (
        (1, 2, 1, 2, 2, 2, 2),
        (1, 2, 2, 2, 2, 2, 2),
        (1, 2, 1, 2, 2, 2, 1),
        (1, 4, 2, 1, 2, 2, 1),
        (1, 4, 2, 2, 2, 1, 1),
        (1, 4, 2, 2, 3, 2, 3),
        (2, 6, 3, 2, 2, 3, 2),
        (2, 6, 2, 3, 4, 4, 3),
    ):
        yield {
            "q": draw.numbers(rows, heads, queries, size),
            "k": draw.numbers(rows, groups, keys, size),
            "v": draw.numbers(rows, groups, keys, value),
        }


def three_uses(
    x: Array,
    memory: Array,
    is_real: Array,
    memory_is_real: Array,
    kind: str,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    *,
    faults: Faults = NO_FAULTS,
) -> Array:
    """Self-attention, causal self-attention or cross-attention with one head."""
    is_cross = kind == "cross"
    from_, real = (memory, memory_is_real) if is_cross else (x, is_real)
    key_source = x if is_cross and "cross-keys-from-x" in faults else from_
    value_source = x if is_cross and "cross-values-from-x" in faults else from_
    query_source = x
    if is_cross and "cross-roles-swapped" in faults:
        query_source, key_source, value_source, real = memory, x, x, is_real
    if is_cross and "cross-mask-of-x" in faults:
        real = is_real
    if is_cross and "cross-is-self" in faults:
        key_source, value_source, real = x, x, is_real
    visible = np.broadcast_to(real[:, None, :], (len(x), query_source.shape[1], key_source.shape[1]))
    if not is_cross and "padding-ignored" in faults:
        visible = np.ones_like(visible)
    if is_cross and "cross-padding-ignored" in faults:
        visible = np.ones_like(visible)
    is_causal = kind == "causal" and "causal-ignored" not in faults
    is_causal |= (kind == "self" and "self-causal" in faults) or (is_cross and "cross-causal" in faults)
    if is_causal:
        square = np.tril(np.ones(visible.shape[1:], bool), -1 if "no-diagonal" in faults else 0)
        square = square.T if "future" in faults else square
        visible = square & (np.ones_like(visible) if "causal-without-padding" in faults else visible)
    weights = attention_weights(query_source @ w_q, key_source @ w_k, visible, faults=faults)
    return weights @ (value_source @ w_v)


def three_uses_cases(draw: Draw) -> Iterator[Inputs]:
    """Each use with and without padding."""

    def case(kind: str, is_real: Array, memory_is_real: Array, width: int) -> Inputs:
        return {
            "x": draw.numbers(*is_real.shape, width),
            "memory": draw.numbers(*memory_is_real.shape, width),
            "is_real": is_real,
            "memory_is_real": memory_is_real,
            "kind": kind,
            "w_q": draw.numbers(width, 2, most=1.5),
            "w_k": draw.numbers(width, 2, most=1.5),
            "w_v": draw.numbers(width, 2, most=1.5),
        }

    two, padded = np.array([[True, True]]), np.array([[True, False]])
    for kind in ("self", "causal", "cross"):
        yield case(kind, two, two, 2)
        yield case(kind, padded, two, 2)
        yield case(kind, two, padded, 2)
        yield case(kind, np.array([[True, True, True]]), two, 2)
        yield case(kind, two, np.array([[True, False, True]]), 2)
    for kind in ("self", "causal", "cross"):
        yield case(
            kind, np.array([[True, True, True], [True, True, False]]), np.array([[True, False], [True, True]]), 3
        )


def head_importance(heads: Array, gradients: Array, is_real: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """The mean over rows of |Σ head · gradient| over the real positions of a row: one number per head."""
    product = heads * gradients
    if "gradients-alone" in faults:
        product = gradients
    if "outputs-alone" in faults:
        product = heads
    real = is_real[:, None, :, None]
    if "padding-counts" not in faults:
        product = product * real
    if "absolute-numbers" in faults:
        of_rows = np.abs(product).sum((2, 3))
    elif "absolute-positions" in faults:
        of_rows = np.abs(product.sum(3)).sum(2)
    elif "squares" in faults:
        of_rows = np.sqrt((product**2).sum((2, 3)))
    else:
        of_rows = product.sum((2, 3))
        if "per-token" in faults:
            of_rows = of_rows / is_real.sum(1)[:, None]
        if not faults & {"no-absolute", "absolute-of-mean"}:
            of_rows = np.abs(of_rows)
    if "maximum" in faults:
        return of_rows.max(0)
    if "sum-over-rows" in faults:
        return of_rows.sum(0)
    if "mean-over-heads" in faults:
        return of_rows.mean(1)
    found: Array = of_rows.mean(0)
    found = np.abs(found) if "absolute-of-mean" in faults else found
    if "shares" in faults:
        return found / found.sum()
    return found / np.sqrt((found**2).sum()) if "unit-length" in faults else found


def head_importance_cases(draw: Draw) -> Iterator[Inputs]:
    """One row first; then rows of both signs, and padding."""
    for n_rows, n_heads, n_positions, size in (
        (1, 2, 1, 1),
        (1, 2, 2, 1),
        (2, 2, 1, 1),
        (2, 2, 2, 2),
        (3, 2, 2, 1),
        (3, 4, 3, 2),
    ):
        is_real = np.ones((n_rows, n_positions), bool)
        for padded in (False, True):
            if padded and n_positions > 1:
                is_real = is_real.copy()
                is_real[-1, -1] = False
            elif padded:
                continue
            shape = (n_rows, n_heads, n_positions, size)
            yield {"heads": draw.numbers(*shape), "gradients": draw.numbers(*shape), "is_real": is_real}


REFERENCES = {
    "three-uses": Reference(three_uses, three_uses_cases, {"finite": FINITE}),
    "head-importance": Reference(head_importance, head_importance_cases, {"finite": FINITE}),
    "split-heads": Reference(split_alone, split_cases),
    "merge-heads": Reference(merge_alone, merge_cases),
    "multi-head": Reference(
        multi_head,
        multi_head_cases,
        {"finite": FINITE, "order-of-keys": Property(_same, _permute_keys), "hidden": Property(_same, _change_hidden)},
    ),
    "grouped-queries": Reference(grouped, grouped_cases, {"finite": FINITE}),
}
