from xml.etree import ElementTree

import pytest

from manyheads.charts import Axis, drawing, element, label_width, line, polyline, text, title


def test_axes_have_round_ticks_within_their_range() -> None:
    assert Axis(0.0, 1.0, 0, 100).ticks() == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(0.02, 150.0, 0, 100, True).ticks() == pytest.approx([0.1, 1.0, 10.0, 100.0])
    axis = Axis(10.0, 20.0, 200.0, 100.0)
    assert (axis(10.0), axis(20.0), axis(15.0), axis(99.0)) == (200.0, 100.0, 150.0, 100.0)
    assert axis.even_ticks(3) == [10.0, 15.0, 20.0]
    assert Axis(5.0, 5.0, 0.0, 100.0)(5.0) == 50.0


def test_texts_and_attributes_are_escaped() -> None:
    assert text(1, 2.25, "a < b & c", class_="end") == '<text x="1" y="2.2" class="end">a &lt; b &amp; c</text>'
    assert title("<b>") == "<title>&lt;b&gt;</title>"
    assert element("rect", x=1, rx=None, fill='"', fill_opacity=0.5) == '<rect x="1" fill="&quot;" fill-opacity="0.5"/>'
    assert line("grid", 0.0, 10.04, 1, 2) == '<line class="grid" x1="0" x2="10" y1="1" y2="2"/>'
    assert polyline("score", [(0, 1.26), (2, 3)]) == '<polyline class="score" points="0.0,1.3 2.0,3.0"/>'


def test_a_drawing_is_well_formed_and_has_its_own_colors() -> None:
    svg = drawing("pruning", 640, 360.4, [line("grid", 0, 1, 2, 3)], label="a < b", style=".pruning text { }")
    root = ElementTree.fromstring(svg)
    assert root.attrib["viewBox"] == "0 0 640 360"
    assert root.attrib["aria-label"] == "a < b"
    assert "prefers-color-scheme: dark" in svg and ".pruning text { }" in svg


def test_chinese_characters_are_wider_than_letters() -> None:
    assert label_width("ab头", narrow=1.0, wide=2.5) == 4.5
