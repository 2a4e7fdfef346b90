from pathlib import Path

import pytest

from manyheads.text.folders import document_files

from text.files import refuses


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a/z.TXT.gz", "a/1.txt", "a.txt.zst", "notes.md", ".hidden.txt", ".git/x.txt", "c/d/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    return tmp_path


def test_the_texts_of_a_folder_in_order(folder: Path) -> None:
    names = [str(path.relative_to(folder)) for path in document_files([folder])]
    assert names == ["a/1.txt", "a/z.TXT.gz", "a.txt.zst", "b.txt", "c/d/e.txt"]


def test_files_stay_where_they_are_given(folder: Path) -> None:
    given = [folder / "notes.md", str(folder / "c"), folder / "b.txt"]
    assert document_files(given) == [folder / "notes.md", folder / "c" / "d" / "e.txt", folder / "b.txt"]


def test_what_is_not_there(folder: Path) -> None:
    with refuses("*/bb.txt: there is no such file. Did you mean b.txt?"):
        document_files([folder / "bb.txt"])
    (folder / "empty").mkdir()
    with refuses("*/empty: there is no .txt file in this folder. Give a folder of .txt files, or name files."):
        document_files([folder / "empty"])
