"""What a reference consists of: a function with switches, inputs, and properties of its results.

A reference is a function of the exercise's inputs and of `Faults`, a set of switches. Without any it is right. Each
switch turns on one mistake; two of them at once are two mistakes. So the bank of faulty variants is a list of names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Array = npt.NDArray[Any]
Inputs = dict[str, Any]  # by parameter, in order
Result = Any  # an array, a number, a text, or a list or tuple of them


class Faults(frozenset[str]):
    """The switches that are on."""

    def pick(self, right: T, **wrong: T) -> T:
        """The value whose switch is on, else the right one; `no_scale` is the switch "no-scale"."""
        for name, value in wrong.items():
            if name.replace("_", "-") in self:
                return value
        return right


NO_FAULTS = Faults()


class Raised:
    """The result of a call that raised an error."""

    def __repr__(self) -> str:
        return "error"


RAISED = Raised()


@dataclass(frozen=True)
class Property:
    """Something that holds for every right result; `derive` changes the input for a second call to compare with."""

    holds: Callable[[Inputs, Result, Result], bool]  # of the input, its result, and the derived result or None
    derive: Callable[[Inputs], Inputs | None] | None = None


@dataclass(frozen=True)
class Reference:
    """The reference of an exercise: its function, inputs from small to large, and properties by name."""

    function: Callable[..., Result]
    cases: Callable[["Draw"], Iterable[Inputs]]
    properties: Mapping[str, Property] = field(default_factory=dict)

    def evaluate(self, inputs: Inputs, faults: Iterable[str] = (), dtype: str = "float64") -> Result:
        """The result of the reference, or of a variant; floating arrays have the dtype that the learner gets."""
        values = [_cast(value, dtype) for value in inputs.values()]
        try:
            with np.errstate(all="ignore"):
                return self.function(*values, faults=Faults(faults))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return RAISED


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(dtype) if value.dtype.kind == "f" else value.copy()
    if isinstance(value, tuple):
        return tuple(_cast(item, dtype) for item in value)
    if isinstance(value, list):
        return [_cast(item, dtype) for item in value]
    return value


class Draw:
    """Random inputs that read well: numbers with one decimal, none of them 0, the same in every check."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def numbers(self, *shape: int, most: float = 2.0) -> Array:
        """Numbers between ±`most` with one decimal."""
        found: Array = self.random.integers(1, round(10 * most) + 1, shape) / 10.0
        return found * self.random.choice([-1.0, 1.0], shape)

    def mask(self, *shape: int) -> Array:
        """A mask in which every row sees at least one key."""
        found: Array = self.random.random(shape) < 0.6
        np.put_along_axis(found, self.random.integers(0, shape[-1], (*shape[:-1], 1)), True, axis=-1)
        return found


def close(a: Any, b: Any, *, relative: float = 2e-3, absolute: float = 2e-4) -> bool:
    """Whether two results are the same; NaN equals NaN, and an error an error."""
    if isinstance(a, Raised) or isinstance(b, Raised):
        return isinstance(a, Raised) and isinstance(b, Raised)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and not (_is_numeric(a) and _is_numeric(b)):
        return len(a) == len(b) and all(
            close(one, other, relative=relative, absolute=absolute) for one, other in zip(a, b, strict=True)
        )
    if isinstance(a, str | dict) or isinstance(b, str | dict) or a is None or b is None:
        return type(a) is type(b) and bool(a == b)
    try:
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    with np.errstate(all="ignore"):
        return left.shape == right.shape and bool(
            np.allclose(left, right, rtol=relative, atol=absolute, equal_nan=True)
        )


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "fiub"
    except ValueError:
        return False


def is_finite(_inputs: Inputs, result: Result, _other: Result) -> bool:
    """Whether no number of a result is NaN or infinite."""
    parts = result if isinstance(result, tuple) else (result,)
    return all(bool(np.isfinite(np.asarray(part, dtype=np.float64)).all()) for part in parts)


FINITE = Property(is_finite)


def unchanged(select: Callable[[Inputs, Array], Array]) -> Callable[[Inputs, Result, Result], bool]:
    """Whether a part of the result is the same for the derived input."""
    return lambda inputs, result, other: close(select(inputs, np.asarray(result)), select(inputs, np.asarray(other)))
