"""Hostile values, and tables in which some values are replaced by them."""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

_INTEGERS = (0, -1, 1, 2, 3, 7, 255, 1000, 65_536, 65_537, 10**6, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**12, 10**400)
_FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e300, math.inf, -math.inf, math.nan, 0.999999999)
_TEXTS = (
    "",
    " ",
    "x",
    "en",
    "auto",
    "a\0b",
    "../..",
    "/dev/zero",
    "\x1b[2J",
    "\n",
    "é中🙂",
    "\u202e",
    "x" * 5000,
    "1",
    "true",
    "encoder",
    "seq2seq",
    "layer",
    "none",
)


def hostile_value(rng: Random, depth: int = 0) -> Any:
    """Return a value that a setting is not made for, or that only just fits."""
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(_INTEGERS) if rng.random() < 0.7 else rng.randrange(-5, 300)
    if kind == 3:
        return rng.choice(_FLOATS)
    if kind == 4:
        return rng.choice(_TEXTS)
    if kind == 5:
        return rng.random() < 0.5
    if depth > 3 or rng.random() < 0.1:
        return [[]] * rng.choice((0, 1, 40, 1000)) if kind == 6 else {str(n): n for n in range(rng.choice((0, 1, 500)))}
    if kind == 6:
        return [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_TEXTS): hostile_value(rng, depth + 1) for _ in range(rng.randrange(3))}


def changed(rng: Random, table: Mapping[str, Any], n_changes: int) -> dict[str, Any]:
    """Return a copy of nested tables after some values were replaced, removed, renamed or moved."""
    result = _copy(table)
    for _ in range(n_changes):
        inner, key = _pick(rng, result)
        if not isinstance(inner, dict) or key is None:
            continue
        match rng.randrange(10):
            case 0:
                del inner[key]
            case 1:
                inner[rng.choice(_TEXTS)] = inner.pop(key)
            case 2:
                inner[rng.choice(_TEXTS)] = hostile_value(rng)
            case 3:
                other, other_key = _pick(rng, result)
                inner[key] = _copy(other[other_key]) if other_key is not None else hostile_value(rng)
            case 4 | 5 if isinstance(inner[key], int | float) and not isinstance(inner[key], bool):
                number = inner[key]
                inner[key] = rng.choice((number + 1, number * 2, number * 1000, -number, number // 2))
            case 6 if isinstance(inner[key], list) and inner[key]:
                inner[key] = inner[key] * rng.choice((2, 100)) if rng.random() < 0.5 else inner[key][1:]
            case _:
                inner[key] = hostile_value(rng)
    return result


def _pick(rng: Random, table: dict[str, Any]) -> tuple[Any, Any]:
    """Return a random inner table and one of its keys."""
    inner: Any = table
    while True:
        if not inner:
            return inner, None
        key = rng.choice(sorted(inner))
        if not isinstance(inner[key], dict) or rng.random() < 0.2:
            return inner, key
        inner = inner[key]


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
