"""Operands get as many digits as their printed result needs, and no more."""

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pytest
from rich.text import Text

from manyheads.walks.checked_digits import (
    Digits,
    aligned,
    calculable,
    dot,
    printed,
    softmax_columns,
    sum_of,
    vector_sum,
)


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (0.0, 3, "0"),
        (-0.0, 3, "0"),
        (14.0, 3, "14"),
        (0.1 + 0.2, 3, "0.3"),  # not 0.30000000000000004
        (0.0625, 3, "0.0625"),  # rounded to three decimals it would be a tie
        (0.84147098, 3, "0.841"),
        (0.84147098, 5, "0.84147"),
        (8105.9977787, 3, "8106.00"),
        (0.000284903, 3, "2.8e-04"),
        (0.000284903, 5, "2.849e-04"),
        (-np.inf, 3, "-∞"),
    ],
)
def test_printed(value: float, places: int, shown: str) -> None:
    assert printed(value, places) == shown


def test_digits_grow_until_the_result_agrees() -> None:
    a, b = np.array([0.6204, 0.2324]), np.array([0.6254, 0.6104])
    true = float(a @ b)  # 0.52985…, but 0.620×0.625 + 0.232×0.610 = 0.529
    assert f"{0.620 * 0.625 + 0.232 * 0.610:.3f}" != f"{true:.3f}"
    (line,) = calculable(lambda digits: [Text(dot(digits, a, b))])
    assert line.plain == "0.6204×0.6254 + 0.2324×0.6104 = 0.530"


def test_result_that_does_not_follow_is_noticed() -> None:
    digits = Digits(3)
    assert digits.result(0.531, Decimal("0.388") + Decimal("0.142")) == "0.531"
    assert not digits.agrees
    digits = Digits(3)
    assert digits.result(0.53, Decimal("0.388") + Decimal("0.142")) == "0.53"
    assert digits.agrees


def test_halves_are_rounded_as_people_do() -> None:
    digits = Digits(3)
    digits.result(2.24147, Decimal("2.2415"))  # 2.242 on paper, so more digits are needed
    assert not digits.agrees


def test_whole_numbers_stay_whole() -> None:
    a, b = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    assert dot(Digits(3), a, b, with_products=True) == "1×3 + (-2)×4 = 3 + (-8) = -5"
    assert dot(Digits(3), a, b, 0.5) == "1×3 + (-2)×4 + 0.5 (bias) = -4.5"


def test_long_sums_show_their_ends() -> None:
    many = np.arange(1.0, 21.0)
    assert sum_of(Digits(3), many) == "1 + 2 + [17 more: 187] + 20 = 210"
    assert dot(Digits(3), many, many) == "1×1 + [18 more: 2469] + 20×20 = 2870"


def test_weights_add_up_to_one_as_printed() -> None:
    weights = np.array([0.1424, 0.2334, 0.6242])  # 0.142 + 0.233 + 0.624 = 0.999
    shown = softmax_columns(Digits(6), np.log(weights), weights)
    assert sum(map(Decimal, shown.columns[3])) == 1
    assert shown.weight_sum == "1"
    assert shown.columns[3] == ["0.1424", "0.2334", "0.6242"]


def test_sum_of_weights_that_cannot_add_up_is_approximate() -> None:
    shown = softmax_columns(Digits(3), np.zeros(3), np.full(3, 1 / 3))
    assert shown.columns[3] == ["0.333"] * 3
    assert shown.weight_sum == "≈ 1"


def test_masked_and_empty_rows() -> None:
    shown = softmax_columns(Digits(3), np.array([-np.inf, 0.5]), np.array([0.0, 1.0]))
    assert [column[0] for column in shown.columns] == ["-∞", "-∞", "0", "0"]
    empty = softmax_columns(Digits(3), np.full(2, -np.inf), np.zeros(2))
    assert (empty.exponential_sum, empty.weight_sum) == ("0", "0")


def test_others_are_in_the_sums() -> None:
    shown = softmax_columns(Digits(4), np.array([0.0]), np.array([0.5]), (1.0, 0.5))
    assert (shown.others, shown.exponential_sum, shown.weight_sum) == (("1", "0.5"), "2", "1")


def test_vectors_fit_the_width() -> None:
    x = np.arange(8) + 0.123456
    whole, cut = (vector_sum(Digits(4), [x, x], 2 * x, width) for width in (90, 40))
    assert all("…" not in line for line in whole)
    assert cut[0] == "[ 0.1235  1.1235  … 5 more …  7.1235 ]"
    assert len({len(line) for line in whole}) == 1
    assert aligned([["1", "22"], ["333", "4"]], 80) == ["[   1  22 ]", "[ 333   4 ]"]


def test_lines_that_never_agree_are_still_returned() -> None:
    def render(digits: Digits) -> Iterator[Text]:
        yield Text(digits.result(1.0, Decimal(2)))

    assert [line.plain for line in calculable(render)] == ["1"]
