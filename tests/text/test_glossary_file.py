"""Glossary files."""

import gzip
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.terms.glossary_file import read_glossary


def test_terms_comments_and_equal_lines(tmp_path: Path) -> None:
    text = "\ufeff# animals\ncat\t猫\r\n\n  ice   cream \t 冰淇淋\ncat\t猫\n"
    (tmp_path / "terms.tsv").write_text(text, "utf-8", newline="")
    assert read_glossary(tmp_path / "terms.tsv") == {"cat": "猫", "ice cream": "冰淇淋"}
    (tmp_path / "terms.tsv.gz").write_bytes(gzip.compress("cat\t猫\n".encode()))
    assert read_glossary(str(tmp_path / "terms.tsv.gz")) == {"cat": "猫"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("cat\t猫\ndog\n".encode(), "line 2: 'dog' is not a source term, a tab and a target term"),
        (b"cat\t\n", "line 1: 'cat\\t' is not a source term"),
        (b"\tcat\n", "is not a source term"),
        (b"a\tb\tc\n", "is not a source term"),
        ("cat\t猫\n# x\ncat\t狗\n".encode(), "line 3: 'cat' has another target term in line 1"),
        (b"# nothing\n\n", "has no terms"),
        (b"cat\t\xff\n", "line 1"),
        (b"", "empty"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "terms.tsv").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_glossary(tmp_path / "terms.tsv")
    assert message in str(error.value)
    assert "terms.tsv" in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_glossary(tmp_path / "none.tsv")
