"""Pictures of an experiment: everything drawn is inside, and beside what it belongs to."""

import re
from dataclasses import replace

import pytest

from manyheads.lab.effect_plots import _axis, _spread, draw_plot
from manyheads.lab.lab_texts import LabText
from manyheads.lab.question import Measure
from manyheads.lab.result_store import Results
from manyheads.lab.sweep import SweepDone, sweep

from lab.questions_for_tests import ARITHMETIC, run_here

MEASURE = Measure("value", LabText({"en": "value", "zh": "值"}))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    *_, last = sweep(ARITHMETIC, tmp_path_factory.mktemp("lab"), n_processes=1, run=run_here)
    assert isinstance(last, SweepDone)
    return last.results


def ends(values: list[float], measure: Measure = MEASURE) -> tuple[float, float]:
    axis = _axis(values, measure, 0.0, 100.0)
    return axis.low, axis.high


def test_an_axis_leaves_a_margin_and_begins_at_zero_where_it_is_near() -> None:
    assert ends([10.0, 20.0]) == pytest.approx((9.4, 20.6))
    assert ends([1.0, 20.0]) == pytest.approx((0.0, 21.14))
    assert ends([-10.0, 20.0]) == pytest.approx((-11.8, 21.8))
    assert ends([5.0, 5.0]) == pytest.approx((4.5, 5.5))  # a single value is in the middle
    assert ends([0.0, 0.0]) == pytest.approx((-1.0, 1.0))


def test_an_axis_of_percentages_and_of_factors() -> None:
    percentage = replace(MEASURE, is_percentage=True)
    assert ends([0.3, 0.6], percentage) == (0.0, 1.0)
    assert ends([0.90, 0.95], percentage) == pytest.approx((0.897, 0.953))  # close values are drawn apart
    assert ends([2.0, 20.0], replace(MEASURE, is_logarithmic=True)) == pytest.approx((2 / 1.3, 26.0))


@pytest.mark.parametrize("number", [0, 1])
def test_everything_is_inside_of_the_picture(results: Results, number: int) -> None:
    for picture in draw_plot(ARITHMETIC.plots[number], ARITHMETIC, results).by_language().values():
        for part in picture.split("</svg>")[:-1]:
            size = re.search(r'viewBox="0 0 (\d+) (\d+)"', part)
            assert size is not None
            width, height = map(int, size.groups())
            across = re.findall(r' (?:x|x1|x2|cx)="([\d.-]+)"', part)
            down = re.findall(r' (?:y|y1|y2|cy)="([\d.-]+)"', part)
            assert all(0 <= float(one) <= width for one in across)
            assert all(0 <= float(one) <= height for one in down)


def test_a_narrow_picture_has_a_legend_whose_lines_are_beside_their_labels(results: Results) -> None:
    broad, narrow, _ = draw_plot(ARITHMETIC.plots[1], ARITHMETIC, results)["en"].split("</svg>")
    legend = re.findall(
        r'<line class="line" [^>]*y1="([\d.]+)"[^>]*/><[a-z]+ class="marker[^>]*/>'
        r'<text [^>]*y="([\d.]+)"[^>]*>(.*?)</text>',
        narrow,
    )
    assert [label for _, _, label in legend] == ["low", "high", "also low"]
    assert all(0 < float(label_y) - float(line_y) < 7 for line_y, label_y, _ in legend)
    assert '<line class="line"' not in broad  # its labels are at the ends of the lines


def test_labels_at_the_ends_of_lines_do_not_cover_each_other() -> None:
    placed = _spread([(100.0, 5.0, "b"), (99.0, 5.0, "a"), (250.0, 5.0, "c")])
    assert placed == [(99.0, 5.0, "a"), (116.0, 5.0, "b"), (250.0, 5.0, "c")]
    low = _spread([(250.0, 5.0, "a"), (250.0, 5.0, "b")])
    assert [y for y, _, _ in low] == [237.0, 254.0]  # the axis ends at 254
    assert _spread([]) == []
