"""The picture of a confusion matrix, with few and with many labels."""

import re
from xml.etree import ElementTree

import pytest

from manyheads import language
from manyheads.metrics import NO_LABEL, Confusion
from manyheads.report.confusion_matrix import confusion_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(confusion: Confusion) -> ElementTree.Element:
    return ElementTree.fromstring(confusion_svg(confusion))


def cells(picture: ElementTree.Element) -> dict[str, tuple[str, float, str]]:
    """Return kind, shade and text of each cell, by its title."""
    by_title = {}
    for group in picture.iter(f"{SVG}g"):
        if group.attrib.get("class") == "soft":  # the legend
            continue
        title, box, label = group
        by_title[str(title.text)] = (box.attrib["class"], float(box.attrib["fill-opacity"]), str(label.text))
    return by_title


def chain(n: int, name: str = "label") -> Confusion:
    labels = [f"{name} {number}" for number in range(n)]
    counts = [[0] * n for _ in labels]
    for row in range(n):
        counts[row][row] = 90
        counts[row][(row + 1) % n] += 10
    return Confusion(labels, counts)


def test_counts_shares_and_colors() -> None:
    drawn_cells = cells(drawn(Confusion(["cat", "dog"], [[90, 10], [0, 1234]])))
    assert drawn_cells == {
        "cat → cat: 90 (90.0 %)": ("right", pytest.approx(0.95, abs=0.01), "90"),
        "cat → dog: 10 (10.0 %)": ("wrong", pytest.approx(0.32, abs=0.01), "10"),
        "dog → dog: 1,234 (100.0 %)": ("right", 1.0, "1,234"),
    }


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_all_elements_are_inside_the_picture(n: int) -> None:
    picture = drawn(chain(n))
    width, height = (float(size) for size in picture.attrib["viewBox"].split()[2:])
    for box in picture.iter(f"{SVG}rect"):
        if "x" in box.attrib:
            assert 0 <= float(box.attrib["x"]) <= width - float(box.attrib["width"])
            assert 0 <= float(box.attrib["y"]) <= height - float(box.attrib["height"])
    for text in picture.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 <= float(text.attrib["y"]) <= height
        assert float(text.attrib["font-size"]) >= 8


def test_most_confused_labels_are_drawn() -> None:
    confusion = chain(60)
    confusion.counts[50][3] = 500  # type: ignore[index]
    for quiet in range(10, 30):
        confusion.counts[quiet][(quiet + 1) % 60] = 0  # type: ignore[index]
    picture = drawn(confusion)
    assert "40 of 60 labels" in "".join(picture.itertext())
    assert "label 50 → label 3: 500 (83.3 %)" in cells(picture)  # of the whole row
    assert "label 3 → label 3: 90 (90.0 %)" in cells(picture)
    assert "label 20 → label 20: 90 (100.0 %)" not in cells(picture)


def test_captions_are_in_the_language_in_use_or_in_both() -> None:
    confusion = Confusion(["PER", NO_LABEL], [[3, 1], [2, 0]])
    with language.using("zh"):
        chinese = "".join(drawn(confusion).itertext())
    english = "".join(drawn(confusion).itertext())
    assert "预测标签" in chinese and "正确标签" in chinese and "predicted" not in chinese
    assert "predicted" in english and f"{NO_LABEL} none" in english and "预测" not in english
    both = confusion_svg(confusion, is_bilingual=True)
    assert 'class="caption en"' in both and 'class="caption zh"' in both
    assert "none" not in "".join(drawn(chain(2)).itertext())


def test_labels_are_escaped_and_truncated() -> None:
    attack = "</text><script>alert(1)</script>"
    picture = drawn(Confusion([attack, "x" * 500], [[1, 2], [3, 4]]))
    assert not list(picture.iter(f"{SVG}script"))
    labels = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    assert attack in labels
    assert max(map(len, labels)) < 80


def test_picture_is_self_contained_and_supports_dark_mode() -> None:
    picture = confusion_svg(chain(3))
    assert set(re.findall(r"https?://[^\"'\s]*", picture)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=|@import|url\(", picture)
    assert "prefers-color-scheme: dark" in picture
