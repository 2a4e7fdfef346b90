"""Documents from files, folders and tables."""

import gzip
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.reading.documents import document_files, read_documents

from text.makers import refuses

TEXT = "One  line \n\n\nAnother,\r\nwith two.\n \nThe last"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


def test_file_is_one_document_with_all_white_space(file: Path) -> None:
    assert list(read_documents([file])) == [(TEXT.replace("\r\n", "\n"),)]
    assert len(list(read_documents([file, file]))) == 2


def test_blank_lines_separate_paragraphs(file: Path) -> None:
    assert list(read_documents([file], "paragraph")) == [("One  line \n",), ("Another,\nwith two.\n",), ("The last",)]


def test_each_line_is_a_document(file: Path) -> None:
    lines = [row[0] for row in read_documents([file], "line")]
    assert lines == ["One  line ", "", "", "Another,", "with two.", " ", "The last"]


def test_each_table_row_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "poems.tsv"
    path.write_text("Li Bai\tMoon\tBright light.\nDu Fu\tRain\tGood rain.\n", encoding="utf-8")
    assert list(read_documents([path], column="3")) == [("Bright light.",), ("Good rain.",)]
    path = tmp_path / "poems.jsonl"
    path.write_text('{"text": "a\\nb"}\n', encoding="utf-8")
    assert list(read_documents([path])) == [("a\nb",)]


def test_very_long_file_is_split_into_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.text.reading.documents._MAX_CHARACTERS", 10)
    path = tmp_path / "text.txt"
    path.write_text("12345\n" * 5, encoding="utf-8")
    documents = [row[0] for row in read_documents([path])]
    assert documents == ["12345\n12345\n", "12345\n12345\n", "12345\n"]


def test_line_that_is_not_utf8_raises_or_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"good\n" + "schön\n".encode("latin1") + b"good again\n")
    with pytest.raises(DataError, match=r"text\.txt, line 2: byte 4 of the line \(0xF6\) is not UTF-8"):
        list(read_documents([path]))
    errors: list[DataError] = []
    assert list(read_documents([path], on_bad=errors.append)) == [("good\ngood again\n",)]
    assert len(errors) == 1


def test_unreadable_input_raises_at_once(tmp_path: Path, file: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_documents([tmp_path / "none.txt"])
    with pytest.raises(DataError, match="plain text has no columns"):
        read_documents([file], column="text")
    with pytest.raises(DataError, match="No file is given"):
        read_documents([])


def test_folder_is_read_as_its_text_files(tmp_path: Path, file: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.txt.gz").write_bytes(gzip.compress(b"packed\n"))
    (tmp_path / "none.txt").write_bytes(b"")
    assert list(read_documents([tmp_path])) == [("",), ("packed\n",), (TEXT.replace("\r\n", "\n"),)]
    with pytest.raises(DataError, match=r"none\.txt is empty"):
        list(read_documents([tmp_path / "none.txt"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a/z.TXT.gz", "a/1.txt", "a.txt.zst", "notes.md", ".hidden.txt", ".git/x.txt", "c/d/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    return tmp_path


def test_folder_files_are_sorted_by_path(folder: Path) -> None:
    names = [str(path.relative_to(folder)) for path in document_files([folder])]
    assert names == ["a/1.txt", "a/z.TXT.gz", "a.txt.zst", "b.txt", "c/d/e.txt"]


def test_files_keep_the_given_order(folder: Path) -> None:
    given = [folder / "notes.md", str(folder / "c"), folder / "b.txt"]
    assert document_files(given) == [folder / "notes.md", folder / "c" / "d" / "e.txt", folder / "b.txt"]


def test_missing_files(folder: Path) -> None:
    with refuses("*/bb.txt: there is no such file. Did you mean b.txt?"):
        document_files([folder / "bb.txt"])
    (folder / "empty").mkdir()
    with refuses("*/empty: there is no .txt file in this folder. Give a folder of .txt files, or name files."):
        document_files([folder / "empty"])
