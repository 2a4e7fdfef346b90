"""HTML as tokens: nothing is lost, nothing is an error, and hostile input takes linear time."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.text.markup.markup_scanner import MarkupToken, scan_markup

PIECES = [
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "<?",
    "<b",
    "<b>",
    "</b>",
    "<a href=",
    '"',
    "'",
    "=",
    " ",
    "x",
]
PIECES += ["&amp;", "&#", "<script>", "</script>", "<title>", "</title>", "\0", "\n", "é", "中", "<br/>"]


def tokens(html: str) -> list[tuple[str, str]]:
    return [(token.kind, token.raw) for token in scan_markup(html)]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_nothing_is_lost(html: str) -> None:
    assert "".join(raw for _, raw in tokens(html)) == html


class _Reference(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(("start", tag))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("end", tag))


WELL_FORMED = st.lists(
    st.sampled_from(
        [
            "<p>",
            "</p>",
            '<a href="x>y" title=\'"\'>',
            "</a>",
            "<br>",
            "<B class=x>",
            "</B>",
            "text",
            " & ",
            "<!-- <i> -->",
        ]
    ),
    max_size=20,
).map("".join)


@given(WELL_FORMED)
def test_tags_are_those_of_the_standard_library(html: str) -> None:
    reference = _Reference()
    reference.feed(html)
    reference.close()
    assert [(token.kind, token.name) for token in scan_markup(html) if token.name] == reference.found


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a < b <3", [("text", "a < b <3")]),
        ("if x<y then</p>", [("text", "if x<y then"), ("end", "</p>")]),
        ('<a href="a>b">t', [("start", '<a href="a>b">'), ("text", "t")]),
        ('<a href="x>t</a>', [("start", '<a href="x>'), ("text", "t"), ("end", "</a>")]),
        ("<p don't>x", [("start", "<p don't>"), ("text", "x")]),
        ("<b", [("text", "<b")]),
        (
            "<!-- <b> --><!-->x<!---->",
            [("other", "<!-- <b> -->"), ("other", "<!-->"), ("text", "x"), ("other", "<!---->")],
        ),
        ("x<!-- never <b>", [("text", "x"), ("other", "<!-- never <b>")]),
        ("<!DOCTYPE html><?xml ?></>", [("other", "<!DOCTYPE html>"), ("other", "<?xml ?>"), ("other", "</>")]),
        ("<SCRIPT>a<b></b></SCRIPT >", [("start", "<SCRIPT>"), ("other", "a<b></b>"), ("end", "</SCRIPT >")]),
        ("<style>never", [("start", "<style>"), ("other", "never")]),
        ("<title>a<b>c</title>", [("start", "<title>"), ("text", "a<b>c"), ("end", "</title>")]),
    ],
)
def test_tokens(html: str, expected: list[tuple[str, str]]) -> None:
    assert tokens(html) == expected


def test_attributes() -> None:
    (token,) = scan_markup("<Span Class=\"notranslate x\" translate=no data-x='a b' hidden class=y>")
    assert token.name == "span"
    assert token.attributes == {"class": "notranslate x", "translate": "no", "data-x": "a b", "hidden": ""}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("<br/>", True), ("<br />", True), ('<a b="x"/>', True), ("<a href=http://x/>", False), ("<b>", False)],
)
def test_self_closing(raw: str, expected: bool) -> None:
    (token,) = scan_markup(raw)
    assert token.is_self_closing is expected


@pytest.mark.parametrize(
    "unit",
    [
        "<!--",
        "<a ",
        "<!",
        "</a ",
        '<a b="',
        "&#",
        "<",
        '<b="x>"',
        "<title>",
        "</",
        "<?",
        '<a ="<a "=',
        "<a =",
        "<a b='\">",
    ],
)
@pytest.mark.parametrize("end", ["", ">"])
def test_hostile_input_takes_linear_time(unit: str, end: str) -> None:
    """Of 300 KB; html.parser takes minutes for some of them, and a quadratic scanner would, too."""
    html = unit * (300_000 // len(unit)) + end
    assert sum(len(token.raw) for token in scan_markup(html)) == len(html)


def test_token_without_name_has_no_attributes() -> None:
    assert MarkupToken("text", "a b=c").name == ""
