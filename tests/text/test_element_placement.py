"""Tags around aligned words."""

import pytest

from manyheads.text.markup.element_placement import Inline, escape_html, place_elements
from manyheads.text.markup.html_segments import split_markup


def placed(html: str, translation: str, links: str) -> str:
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    return split_markup(html).join([translation], [pairs])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("html", "translation", "links", "expected"),
    [
        ("the <b>red</b> car", "la voiture rouge", "0-0 1-2 2-1", "la voiture <b>rouge</b>"),
        ("<i>the <b>red</b></i> car", "la voiture rouge", "0-0 1-2 2-1", "<i>la voiture <b>rouge</b></i>"),
        ("<b>not</b> here", "ne pas ici", "0-0 0-1 1-2", "<b>ne pas</b> ici"),
        # Most of the aligned words, without those of others between them.
        ("<b>a b c</b> d e f", "a b x y z c", "0-0 1-1 2-5 3-2 4-3 5-4", "<b>a b</b> x y z c"),
        ("<b>a b</b> c", "a x b c", "0-0 1-2 2-3", "<b>a x b</b> c"),  # an unaligned word is bridged
        # A Chinese character without a link belongs to the word before it; punctuation is not linked with words.
        ("the <b>red</b> cat", "那红色猫", "0-0 1-1 2-3", "那<b>红色</b>猫"),
        ("a <b>cat</b>.", "一猫咪。", "0-0 1-1 2-2 2-3", "一<b>猫咪</b>。"),
        # Words without links: those that are left between the neighbors, or nothing.
        ("a <b>b</b> c", "x y z", "0-0 2-2", "x <b>y</b> z"),
        ("a <b>b</b> c", "x z", "0-0 2-1", "x <b></b>z"),
        ("a <b>b</b> c", "", "", "<b></b>"),
        ("<b>a</b> <i>b</i>", "x", "0-0 1-0", "<b>x</b><i></i>"),  # siblings do not overlap
        # Void tags go with their neighbors.
        ("one <img> two three", "trois un deux", "0-1 1-2 2-0", "trois un <img> deux"),
        ("Text<sup><a>1</a></sup> here", "ici texte", "0-1 1-0", "ici texte<sup><a>1</a></sup>"),
        ("one<br>two", "un deux", "0-0 1-1", "un<br>deux"),
        ("use <code>x</code> now", "现在用", "0-2 1-0", "现在用<code>x</code>"),
        ("a <b>b</b> c", "x < y & z", "0-0 1-2 2-4", "x &lt; <b>y</b> &amp; z"),
        ("a <b>b</b>", "x y", "0-0 7-1 1-9", "x <b>y</b>"),  # links of words that do not exist
    ],
)
def test_placement(html: str, translation: str, links: str, expected: str) -> None:
    assert placed(html, translation, links) == expected


def test_text_without_tags_is_escaped() -> None:
    text = 'x < "y" & \u00a0z'
    assert place_elements("a", [], text, []) == escape_html(text) == 'x &lt; "y" &amp; &nbsp;z'


def test_symbol_is_one_word() -> None:
    inlines = [Inline(4, 7, "<code>x</code>", is_atom=True, symbol="⟦1⟧")]
    assert place_elements("use ⟦1⟧ now", inlines, "⟦1⟧现在用", []) == "<code>x</code>现在用"
