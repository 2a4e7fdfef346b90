"""References of the chapter on positions and embeddings."""

import math
from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.attention_references import softmax
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


def _angles(positions: Array, width: int, faults: Faults) -> Array:
    """(N, width/2): position · 10000^(−2i/width), and the usual ways to get it wrong."""
    index = np.arange(width // 2)
    exponent = 2 * index / width
    exponent = faults.pick(
        exponent,
        exponent_not_doubled=index / width,
        exponent_to_end=index / max(width // 2 - 1, 1),
        exponent_from_one=2 * (index + 1) / width,
        exponent_doubled=4 * index / width,
        frequencies_reversed=exponent[::-1],
        one_frequency=np.zeros_like(exponent),
    )
    base = faults.pick(10000.0, base_thousand=1000.0, base_e=math.e)
    rates = base**exponent if "multiplied" in faults else base**-exponent
    if "positions-from-one" in faults:
        positions = positions + 1
    angles: Array = positions[:, None] * rates
    return np.deg2rad(angles) if "degrees" in faults else angles * 2 * math.pi if "full-turns" in faults else angles


def sinusoidal(n_positions: int, width: int, *, faults: Faults = NO_FAULTS) -> Array:
    """(N, W): sine in even columns, cosine in odd ones."""
    angles = _angles(np.arange(n_positions), width, faults)
    sin, cos = np.sin(angles), np.cos(angles)
    if "odd-columns-own-rate" in faults:
        columns = np.arange(width)
        every = np.arange(n_positions)[:, None] * 10000.0 ** (-columns / width)
        sin, cos = np.sin(every[:, 0::2]), np.cos(every[:, 1::2])
    if "swapped" in faults:
        sin, cos = cos, sin
    if "sine-only" in faults:
        cos = sin
    if "halves" in faults:
        found = np.concatenate([sin, cos], axis=-1)
    else:
        found = np.stack([sin, cos], axis=-1).reshape(n_positions, -1)
    if "scaled" in faults:
        found = found * math.sqrt(width)
    return found.T if "transposed" in faults else found


def sinusoidal_cases(_draw: Draw) -> Iterator[Inputs]:
    """Width 2 has one frequency; 4 shows the exponent."""
    for n_positions, width in ((2, 2), (3, 2), (2, 4), (3, 4), (3, 6), (7, 8)):
        yield {"n_positions": n_positions, "width": width}


def rotary(x: Array, positions: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """Rotate the pairs (0, 1), (2, 3), … of each vector by its position."""
    if "positions-ignored" in faults:
        positions = np.arange(len(x))
    angles = _angles(positions, x.shape[-1], faults)
    sin, cos = np.sin(angles), np.cos(angles)
    if "opposite" in faults:
        sin = -sin
    if "swapped" in faults:
        sin, cos = cos, sin
    half = x.shape[-1] // 2
    if "halves" in faults:
        first, second = x[:, :half], x[:, half:]
    else:
        first, second = x[:, 0::2], x[:, 1::2]
    left, right = first * cos - second * sin, first * sin + second * cos
    if "sign-missing" in faults:
        left = first * cos + second * sin
    if "both-signs" in faults:
        right = first * sin - second * cos
    if "added" in faults:
        left, right = first + sin, second + cos
    if "updated-too-early" in faults:
        right = left * sin + second * cos
    if "halves" in faults or "joined-as-halves" in faults:
        return np.concatenate([left, right], axis=-1)
    return np.stack([left, right], axis=-1).reshape(x.shape)


def rotary_cases(draw: Draw) -> Iterator[Inputs]:
    """One pair first; positions do not begin at 0 in some."""
    for positions, width in (([0, 1], 2), ([1], 2), ([1, 2], 2), ([0, 2], 4), ([3, 1, 2], 4), ([5, 0, 9], 6)):
        yield {"x": draw.numbers(len(positions), width), "positions": np.array(positions)}


def _keeps_length(inputs: Inputs, result: Array, _other: Array) -> bool:
    return close(np.linalg.norm(np.asarray(result), axis=-1), np.linalg.norm(inputs["x"], axis=-1))


def alibi(n_heads: int, n_positions: int, *, faults: Faults = NO_FAULTS) -> Array:
    """(H, N, N): −slope · distance, with slopes 2^(−8/H), 2^(−16/H), …"""
    number = np.arange(1, n_heads + 1)
    slopes: Array = 2.0 ** (-8.0 * number / n_heads)
    slopes = faults.pick(
        slopes,
        slopes_from_zero=2.0 ** (-8.0 * (number - 1) / n_heads),
        slopes_by_halves=2.0 ** (-1.0 * number),
        slopes_equal=np.full(n_heads, slopes[0]),
        slopes_reversed=slopes[::-1],
        slopes_of_e=np.exp(-8.0 * number / n_heads),
        slopes_linear=1.0 / number,
        slopes_growing=1 / slopes,
    )
    place = np.arange(n_positions)
    apart = place[:, None] - place[None, :]
    distance: Array = np.abs(apart).astype(float)
    if "signed" in faults:
        distance = apart.astype(float)
    if "squared" in faults:
        distance = distance**2
    if "from-one" in faults:
        distance = distance + 1
    if "past-only" in faults:
        distance = np.maximum(apart, 0).astype(float)
    if "root" in faults:
        distance = np.sqrt(distance)
    if "relative-length" in faults:
        distance = distance / n_positions
    if "not-distance" in faults:
        distance = np.broadcast_to(place[None, :], distance.shape).astype(float)
    sign = 1.0 if "positive" in faults else -1.0
    return sign * slopes[:, None, None] * distance


def alibi_cases(_draw: Draw) -> Iterator[Inputs]:
    """Powers of two for the number of heads."""
    for n_heads, n_positions in ((1, 2), (2, 2), (2, 3), (4, 3), (8, 4)):
        yield {"n_heads": n_heads, "n_positions": n_positions}


def embed(ids: Array, table: Array, positions: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """√d_model times the rows of the table, plus the rows of the positions."""
    width = table.shape[1]
    root = math.sqrt(width)
    factor = faults.pick(
        root,
        no_scale=1.0,
        scale_divided=1 / root,
        scale_by_width=float(width),
        scale_by_vocabulary=math.sqrt(len(table)),
        scale_after=1.0,
    )
    words = table[ids] * factor
    n = ids.shape[1]
    places = positions[:n]
    if "positions-from-one" in faults:
        places = positions[1 : n + 1]
    if "positions-reversed" in faults:
        places = places[::-1]
    if "positions-of-ids" in faults:
        places = positions[ids % len(positions)]
    if "first-position" in faults:
        places = np.repeat(positions[:1], n, axis=0)
    if "no-positions" in faults:
        return words
    if "positions-multiplied" in faults:
        return words * places
    if "positions-subtracted" in faults:
        return words - places
    if "positions-joined" in faults:
        return np.concatenate([words, np.broadcast_to(places, words.shape)], axis=-1)
    return (words + places) * (root if "scale-after" in faults else 1.0)


def embed_cases(draw: Draw) -> Iterator[Inputs]:
    """Vocabulary, width and length differ."""
    for ids, n_words, width in (([[1]], 2, 2), ([[1, 0]], 3, 2), ([[0, 2], [1, 1]], 3, 2), ([[2, 0, 4]], 5, 4)):
        n = len(ids[0])
        yield {"ids": np.array(ids), "table": draw.numbers(n_words, width), "positions": draw.numbers(n + 1, width)}


def tied_logits(hidden: Array, table: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """(B, N, V): the inner product of each vector with each word's row."""
    width = table.shape[1]
    if "table-normalized" in faults:
        table = table / np.linalg.norm(table, axis=1, keepdims=True)
    if "hidden-normalized" in faults:
        hidden = hidden / np.linalg.norm(hidden, axis=-1, keepdims=True)
    if "table-centered" in faults:
        table = table - table.mean(0)
    if "last-position" in faults:
        hidden = hidden[:, -1:]
    if "mean-position" in faults:
        hidden = hidden.mean(1, keepdims=True)
    logits = hidden @ table.T
    if "distances" in faults:
        logits = -np.linalg.norm(hidden[:, :, None] - table, axis=-1)
    root = math.sqrt(width)
    logits = logits * faults.pick(1.0, scaled=root, scaled_down=1 / root, scaled_down_by_width=1 / width)
    if "softmax" in faults:
        return softmax(logits)
    if "log-softmax" in faults:
        return np.log(softmax(logits))
    if "argmax" in faults:
        return logits.argmax(-1)
    return logits.swapaxes(1, 2) if "transposed" in faults else logits


def tied_cases(draw: Draw) -> Iterator[Inputs]:
    """Vocabulary, width and length differ."""
    for n_rows, n_positions, n_words, width in ((1, 1, 2, 2), (1, 2, 2, 2), (1, 2, 3, 2), (2, 3, 4, 5)):
        yield {"hidden": draw.numbers(n_rows, n_positions, width), "table": draw.numbers(n_words, width)}


REFERENCES = {
    "sinusoidal": Reference(sinusoidal, sinusoidal_cases, {"finite": FINITE}),
    "rotary": Reference(rotary, rotary_cases, {"length": Property(_keeps_length)}),
    "alibi": Reference(alibi, alibi_cases, {"finite": FINITE}),
    "embedding": Reference(embed, embed_cases, {"finite": FINITE}),
    "tied-logits": Reference(tied_logits, tied_cases, {"finite": FINITE}),
}
