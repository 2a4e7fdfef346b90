"""Printed equations that a calculator confirms: operands get as many digits as their printed result needs.

`calculable` renders lines with three decimals, then with more, until every result that was rounded from the true value
equals the result of the printed operands. Numbers with up to five decimals, such as a weight of 0.3, are exact.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
from rich.cells import cell_len

from manyheads.messages import _
from manyheads.walks.attention_walk import Floats
from manyheads.walks.number_format import Line, bracketed, ends, factor, n_more

RESULT = 3  # decimals of a result
_EXACT = 5  # numbers with up to this many decimals are printed exactly
_MAX_PLACES = 11
_ENDS = (3, 2)  # how many numbers of a long vector are shown at its front and its back
_SMALL = 1e-3  # smaller numbers are printed as 2.8e-04


class Digits:
    """How operands are printed, and whether all results printed so far agree with them."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.agrees = True

    def of(self, value: float) -> str:
        """Format an operand."""
        return printed(value, self.places)

    def each(self, values: Floats) -> list[str]:
        """Format the operands of a vector."""
        return [self.of(value) for value in values.tolist()]

    def result(self, value: float, calculated: Decimal | float, places: int = RESULT) -> str:
        """Format a result; `calculated` is what the printed operands give."""
        text = printed(value, places)
        self.agrees = self.agrees and _rounded_like(text, Decimal(calculated)) == text
        return text

    def rounded(self, calculated: Decimal) -> str:
        """Format an intermediate result that is calculated from printed operands and used as an operand itself."""
        if calculated == calculated.to_integral_value() or abs(calculated) < _SMALL:
            return printed(float(calculated), self.places)
        places = self.places if abs(calculated) < 100 else self.places - 1
        return str(_round(calculated, places))


def calculable(render: Callable[[Digits], Iterable[Line]]) -> list[Line]:
    """Return the lines with the fewest decimals at which all printed equations hold."""
    for places in range(RESULT, _MAX_PLACES + 1):
        digits = Digits(places)
        lines = list(render(digits))
        if digits.agrees:
            break
    return lines


def printed(value: float, places: int) -> str:
    """Format a number exactly if it has few decimals, else with `places`, one less from 100 on."""
    if np.isneginf(value):
        return "-∞"
    for decimals in range(_EXACT + 1):
        if abs(value - round(value, decimals)) <= 1e-12 * max(1.0, abs(value)):
            return f"{value:.{decimals}f}" if round(value, decimals) else "0"
    if abs(value) < _SMALL:
        return f"{value:.{max(1, places - 2)}e}"  # 0.000 would say nothing, and 0.0003 too little for a logarithm
    return f"{value:.{places if abs(value) < 100 else places - 1}f}"


def _rounded_like(text: str, calculated: Decimal) -> str:
    """Round a calculated number to the decimals of a text."""
    if not calculated.is_finite():
        return "-∞"
    if "e" in text:
        return f"{float(calculated):.{len(text.partition('.')[2].partition('e')[0])}e}"
    rounded = _round(calculated, len(text.partition(".")[2]))
    return str(rounded) if rounded else "0"


def _round(calculated: Decimal, places: int) -> Decimal:
    """Round to a number of decimals, halves away from zero as people do."""
    return calculated.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)


Term = tuple[str, Decimal]  # as printed, and its value as printed


def gapped(digits: Digits, true: Floats, term: Callable[[int], Term], at_front: int, at_back: int) -> list[Term]:
    """Return the terms of a sum; of many, those between the ends are one term, [126 more: 0.512]."""
    front, back = ends(len(true), at_front, at_back)
    terms = [term(index) for index in front]
    if back:
        rest = digits.of(float(true[len(front) : back[0]].sum()))
        terms.append((f"[{n_more(back[0] - len(front))}: {rest}]", Decimal(rest)))
    return terms + [term(index) for index in back]


def joined(terms: Sequence[Term]) -> Term:
    """Return a sum as one term."""
    return " + ".join(text for text, _value in terms), sum((value for _text, value in terms), Decimal())


def dot(digits: Digits, left: Floats, right: Floats, bias: float | None = None, *, with_products: bool = False) -> str:
    """Format a dot product: 30×14 + 36×32 + 42×50 = 3672. Of many terms, those between the ends are one sum."""
    a, b = digits.each(left), digits.each(right)

    def product(index: int) -> Term:
        return f"{factor(a[index])}×{factor(b[index])}", Decimal(a[index]) * Decimal(b[index])

    terms = gapped(digits, left * right, product, 1, 1)
    if bias is not None:
        shown = digits.of(bias)
        terms.append((_("{number} (bias)", number=factor(shown)), Decimal(shown)))
    text, value = joined(terms)
    total = digits.result(float(left @ right) + (bias or 0.0), value)
    if with_products and bias is None and 1 < len(left) == len(terms):
        products, value = joined([_operand(digits.rounded(each)) for _text, each in terms])
        digits.result(float(left @ right), value)
        text = f"{text} = {products}"
    return f"{text} = {total}"


def _operand(text: str) -> Term:
    return factor(text), Decimal(text)


def sum_of(digits: Digits, terms: Floats) -> str:
    """Format a sum: 1 + 2 + 3 = 6. Of many terms, those between the ends are one sum."""
    text, value = joined(gapped(digits, terms, lambda index: _operand(digits.of(float(terms[index]))), 2, 1))
    return f"{text} = {digits.result(float(terms.sum()), value)}"


def vector_sum(digits: Digits, terms: Sequence[Floats], total: Floats, width: int) -> list[str]:
    """Format vectors that are added element by element, and their sum, in columns that fit a width."""
    shown = [digits.each(term) for term in terms]
    front, back = ends(len(total), *_ENDS)
    results = digits.each(total)  # numbers that are not shown need not agree
    for i in (*front, *back):
        results[i] = digits.result(float(total[i]), sum((Decimal(row[i]) for row in shown), Decimal()))
    return aligned([*shown, results], width)


@dataclass(frozen=True)
class SoftmaxColumns:
    """A softmax as printed: a column each of scores, scores − the largest, exponentials and weights, and two sums."""

    columns: list[list[str]]
    others: tuple[str, str] | None  # exponentials and weights that are not listed
    exponential_sum: str
    weight_sum: str


def softmax_columns(
    digits: Digits, scores: Floats, weights: Floats, others: tuple[float, float] | None = None
) -> SoftmaxColumns:
    """Format a softmax; `others` are the sums of the exponentials and the weights that are not listed.

    Weights get as many decimals as they need to add up to 1 as printed; if five are not enough, the sum is "≈ 1".
    """
    shown = digits.each(scores)
    largest = max((Decimal(text) for text in shown if text != "-∞"), default=Decimal())
    below = [text if text == "-∞" else digits.rounded(Decimal(text) - largest) for text in shown]
    powers = ["0" if text == "-∞" else digits.rounded(Decimal(text).exp()) for text in below]
    more = [] if others is None else [digits.of(others[0])]
    total = sum(map(Decimal, powers + more), Decimal())
    true_weights = weights.tolist() + ([] if others is None else [others[1]])
    places = next((n for n in range(RESULT, _EXACT + 1) if _adds_up(true_weights, n)), RESULT)
    shares = [
        digits.result(weight, Decimal(power) / total if total else Decimal(), places)
        for weight, power in zip(true_weights, powers + more, strict=True)
    ]
    weight_sum = printed(float(weights.sum()) + (others[1] if others else 0.0), places)
    return SoftmaxColumns(
        [shown, below, powers, shares[: len(shown)]],
        None if others is None else (more[0], shares[-1]),
        digits.rounded(total),
        weight_sum if not total or _adds_up(true_weights, places) else f"≈ {weight_sum}",
    )


def _adds_up(weights: Sequence[float], places: int) -> bool:
    # Small weights have more decimals than the others, so the sum is 1 only up to a tenth of a last digit.
    added = sum((Decimal(printed(weight, places)) for weight in weights), Decimal())
    return abs(added - 1) < Decimal(1).scaleb(-places - 1)


def aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Format vectors of printed numbers one below the other, in columns that fit a width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[text.rjust(each) for text, each in zip(row, widths, strict=True)] for row in rows]
    lines = [bracketed(row, *_ENDS) for row in padded]
    if max(map(cell_len, lines)) <= width:
        return lines
    return [bracketed(row, 2, 1, is_long=True) for row in padded]
