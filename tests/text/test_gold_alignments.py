"""Gold alignments in three formats, numbered from 0 or 1, in either direction."""

from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.reading.gold_alignments import AlignedPair, read_alignments


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "gold.en", tmp_path / "gold.de"]
    files[0].write_text("the cat sleeps\nit snows\n", encoding="utf-8")
    files[1].write_text("die Katze schläft jetzt\nes schneit\n", encoding="utf-8")
    return files


def links(path: Path, text: str) -> Path:
    file = path / "links"
    file.write_text(text, encoding="utf-8")
    return file


WANTED = AlignedPair(
    ("the", "cat", "sleeps"),
    ("die", "Katze", "schläft", "jetzt"),
    frozenset({(0, 0), (1, 1), (2, 2)}),
    frozenset({(0, 0), (1, 1), (2, 2), (2, 3)}),
)


@pytest.mark.parametrize(
    "text",
    [
        "1-1 2-2 3-3 3p4\n1-1 2-2\n",  # TALP
        "0-0 1-1 2-2 2?3\n0-0 1-1\n",  # Pharaoh with possible links
        "1 1 1 S\n1 2 2 S\n1 3 3\n1 3 4 P\n2 1 1\n2 2 2 S\n",  # NAACL
        "1-1 2-2 3-3 4p3\n1-1 2-2\n",  # target first
    ],
)
def test_all_formats_give_the_same_links(tmp_path: Path, texts: list[Path], text: str) -> None:
    first, second = read_alignments(texts, links(tmp_path, text))
    assert first == WANTED
    assert second.sure == second.possible == {(0, 0), (1, 1)}


def test_both_texts_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "both"
    file.write_text("科学家 猜想 ||| scientists conjecture\n", encoding="utf-8")
    (pair,) = read_alignments([file], links(tmp_path, "1-1 2-2\n"))
    assert (pair.source, pair.target) == (("科学家", "猜想"), ("scientists", "conjecture"))
    assert pair.sure == {(0, 0), (1, 1)}


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("1-1\n", "has 1 lines of links, but there are 2 pairs"),
        ("1-1\n9-9\n", "line 2: the link 9-9 is out of range"),
        ("1-1\n1~1\n", 'line 2: "1~1" is not a link'),
        pytest.param("1-1\n" + "9" * 5000 + "-1\n", 'line 2: "9{200}…" is not a link', id="long number"),
        pytest.param("1 1 1\n1 1 " + "9" * 5000, 'line 2: "1 1 9{196}…" is not a link', id="long number by line"),
        ("1 1 1 S\n7 1 1 S\n", 'line 2: "7 1 1 S" is not a link of one of the 2 pairs'),
    ],
)
def test_invalid_links(tmp_path: Path, texts: list[Path], text: str, errors: str) -> None:
    with pytest.raises(DataError, match=errors):
        read_alignments(texts, links(tmp_path, text))


def test_texts_without_words_raise(tmp_path: Path, texts: list[Path]) -> None:
    with pytest.raises(DataError, match=r"line 1: there is no \|\|\| between source and target"):
        read_alignments(texts[:1], links(tmp_path, "1-1\n1-1\n"))
    texts[0].write_text("the cat sleeps\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: a text without words"):
        read_alignments(texts, links(tmp_path, "1-1\n1-1\n"))
