"""Files by purpose and language, told by what they are called and written in."""

from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.init.data_files import find_split_files, language_of_text, languages_of_names, pick_columns


def touch(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        path.write_text("one\ttwo\n", "utf-8")
    return paths


def names(files: tuple[str, ...]) -> list[str]:
    return [Path(file).name for file in files]


def test_sets_beside_the_training_files_are_found(tmp_path: Path) -> None:
    given = touch(tmp_path, "train.lc.tok.en", "train.lc.tok.de")
    touch(
        tmp_path, "val.lc.tok.en", "val.lc.tok.de", "test_2016.lc.tok.en", "test_2016.lc.tok.de", "test_2017.lc.tok.en"
    )
    sets = find_split_files(given)
    assert names(sets.settings.valid) == ["val.lc.tok.en", "val.lc.tok.de"]
    assert names(sets.settings.test) == ["test_2016.lc.tok.en", "test_2016.lc.tok.de"]
    assert sets.languages == ("en", "de")
    assert sets.found_splits == ("valid", "test")


def test_a_set_that_is_given_is_not_looked_for(tmp_path: Path) -> None:
    given = touch(tmp_path, "train.tsv")
    touch(tmp_path, "dev.tsv", "mine.tsv")
    sets = find_split_files(given, valid=[tmp_path / "mine.tsv"])
    assert (names(sets.settings.valid), sets.found_splits) == (["mine.tsv"], ())
    assert names(find_split_files(given).settings.valid) == ["dev.tsv"]


def test_files_of_other_names_have_nothing_beside_them(tmp_path: Path) -> None:
    given = touch(tmp_path, "mail.en", "mail.de")
    touch(tmp_path, "val.en", "val.de", "test.en", "test.de")
    assert find_split_files(given).settings.valid == ()


@pytest.mark.parametrize(
    ("folder", "direction", "expected"),
    [
        ("corpus-de-en", ("", ""), ["train.de", "train.en"]),
        ("corpus", ("", ""), ["train.en", "train.de"]),
        ("corpus", ("de", "en"), ["train.de", "train.en"]),
    ],
)
def test_a_folder(tmp_path: Path, folder: str, direction: tuple[str, str], expected: list[str]) -> None:
    touch(tmp_path / folder, "train.en", "train.de", "val.en", "val.de")
    sets = find_split_files([tmp_path / folder], direction=direction)
    assert names(sets.settings.train) == expected
    assert len(sets.settings.valid) == 2


def test_a_folder_with_one_file_of_pairs(tmp_path: Path) -> None:
    touch(tmp_path, "en-zh.tsv", "README")
    assert names(find_split_files([tmp_path]).settings.train) == ["en-zh.tsv"]


def test_a_folder_that_leaves_a_doubt(tmp_path: Path) -> None:
    touch(tmp_path, "train.en", "train.de", "train.fr")
    with pytest.raises(DataError, match=r"not clear which files .*train.de, train.en, train.fr"):
        find_split_files([tmp_path])
    assert names(find_split_files([tmp_path], direction=("fr", "en")).settings.train) == ["train.fr", "train.en"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.en", "a.de"], ("en", "de")),
        (["a.en.gz", "a.zh_CN.gz"], ("en", "zh-CN")),
        (["a.en.txt", "a.de.txt"], ("en", "de")),
        (["a.src", "a.tgt"], ("", "")),
        (["news.en-zh.tsv"], ("en", "zh")),
        (["train.tsv"], ("", "")),
        (["a-to-z.tsv"], ("", "")),
    ],
)
def test_languages_of_names(files: list[str], expected: tuple[str, str]) -> None:
    assert languages_of_names([Path(file) for file in files]) == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [("两只猫 sleep。", "zh"), ("猫が二匹います", "ja"), ("고양이", "ko"), ("Two cats 猫 are sleeping", ""), ("", "")],
)
def test_language_of_text(text: str, language: str) -> None:
    assert language_of_text(text) == language


@pytest.mark.parametrize(
    ("columns", "direction", "expected"),
    [
        (["id", "source", "target"], ("", ""), ("source", "target")),
        (["src", "score", "TGT"], ("", ""), ("src", "TGT")),
        (["zh", "en"], ("", ""), ("zh", "en")),
        (["zh", "en"], ("en", "zh"), ("en", "zh")),
        (["Hi.", "嗨。"], ("", ""), None),
        (["en", "de", "fr"], ("", ""), None),
        (["id", "en", "de"], ("", ""), ("en", "de")),
        (["en", "id"], ("", ""), ("en", "id")),
        (["en", "zh-CN"], ("", ""), ("en", "zh-CN")),
        (["EN", "zh-CN"], ("zh-CN", "en"), ("zh-CN", "EN")),
    ],
)
def test_columns(columns: list[str], direction: tuple[str, str], expected: tuple[str, str] | None) -> None:
    assert pick_columns(columns, direction) == expected


def test_columns_that_cannot_be_known(tmp_path: Path) -> None:
    path = tmp_path / "three.tsv"
    path.write_text("id\ttext\tother\n1\ta\tb\n", "utf-8")
    with pytest.raises(DataError, match=r"there is: id, text, other\). Say so with --source-column"):
        find_split_files([path])
    assert find_split_files([path], columns=("text", "other")).settings.source_column == "text"


def test_a_table_without_header(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("Hi.,Hallo.\nBye.,Ciao.\n", "utf-8")
    with pytest.raises(DataError, match=r"If there is no header: --source-column 1 --target-column 2\."):
        find_split_files([path])
    assert find_split_files([path], columns=("1", "2")).settings.source_column == "1"


def test_a_file_given_twice(tmp_path: Path) -> None:
    given = touch(tmp_path, "m.en")
    with pytest.raises(DataError, match=r"m.en is given twice"):
        find_split_files([*given, tmp_path / "." / "m.en"])


def test_files_the_wrong_way_round(tmp_path: Path) -> None:
    english, german = touch(tmp_path, "v.en", "v.de")
    given = touch(tmp_path, "a.en", "a.de")
    exchange = r"go from de to en, but en → de is wanted. Exchange the two files."
    with pytest.raises(DataError, match=exchange):
        find_split_files(given, valid=[german, english])
    with pytest.raises(DataError, match=exchange):
        find_split_files(given[::-1], direction=("en", "de"))
    assert find_split_files(given, test=[english, german], direction=("en", "de-AT")).languages == ("en", "de")
    regions = touch(tmp_path, "a.zh-CN", "a.zh-TW")
    assert find_split_files(regions).languages == ("zh-CN", "zh-TW")
