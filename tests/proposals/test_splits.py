"""Recognition of splits, languages and columns by names and scripts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.proposals.recognition import RecognizedData, recognize
from manyheads.tasks.seq2seq.seq2seq_commands import pick_columns
from manyheads.tasks.task_init import Request
from manyheads.text.language_codes import language_of_text, languages_of_names


def touch(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        path.write_text("one\ttwo\n", "utf-8")
    return paths


def recognize_pairs(
    given: Sequence[Path],
    valid: Sequence[Path] = (),
    test: Sequence[Path] = (),
    direction: tuple[str, str] = ("", ""),
    columns: tuple[str, str] = ("", ""),
) -> RecognizedData:
    named = dict(zip(("source", "target"), columns, strict=True)) if any(columns) else {}
    return recognize(given, valid, test, Request(task="translate", columns=named, direction=direction))


def names(files: tuple[str, ...]) -> list[str]:
    return [Path(file).name for file in files]


def test_valid_and_test_files_beside_the_training_files_are_found(tmp_path: Path) -> None:
    given = touch(tmp_path, "train.lc.tok.en", "train.lc.tok.de")
    touch(
        tmp_path, "val.lc.tok.en", "val.lc.tok.de", "test_2016.lc.tok.en", "test_2016.lc.tok.de", "test_2017.lc.tok.en"
    )
    sets = recognize_pairs(given)
    assert names(sets.settings.valid) == ["val.lc.tok.en", "val.lc.tok.de"]
    assert names(sets.settings.test) == ["test_2016.lc.tok.en", "test_2016.lc.tok.de"]
    assert sets.languages == ("en", "de")
    assert sets.found_splits == ("valid", "test")


def test_split_on_the_command_line_is_not_searched_for(tmp_path: Path) -> None:
    given = touch(tmp_path, "train.tsv")
    touch(tmp_path, "dev.tsv", "mine.tsv")
    sets = recognize_pairs(given, valid=[tmp_path / "mine.tsv"])
    assert (names(sets.settings.valid), sets.found_splits) == (["mine.tsv"], ())
    assert names(recognize_pairs(given).settings.valid) == ["dev.tsv"]


def test_files_not_named_train_have_no_siblings(tmp_path: Path) -> None:
    given = touch(tmp_path, "mail.en", "mail.de")
    touch(tmp_path, "val.en", "val.de", "test.en", "test.de")
    assert recognize_pairs(given).settings.valid == ()


@pytest.mark.parametrize(
    ("folder", "direction", "expected"),
    [
        ("corpus-de-en", ("", ""), ["train.de", "train.en"]),
        ("corpus", ("", ""), ["train.en", "train.de"]),
        ("corpus", ("de", "en"), ["train.de", "train.en"]),
    ],
)
def test_folder_of_parallel_files(tmp_path: Path, folder: str, direction: tuple[str, str], expected: list[str]) -> None:
    touch(tmp_path / folder, "train.en", "train.de", "val.en", "val.de")
    sets = recognize_pairs([tmp_path / folder], direction=direction)
    assert names(sets.settings.train) == expected
    assert len(sets.settings.valid) == 2


def test_folder_with_one_table(tmp_path: Path) -> None:
    touch(tmp_path, "en-zh.tsv", "README")
    assert names(recognize_pairs([tmp_path]).settings.train) == ["en-zh.tsv"]


def test_ambiguous_folder_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "train.en", "train.de", "train.fr")
    with pytest.raises(DataError, match=r"not clear which files .*train.de, train.en, train.fr"):
        recognize_pairs([tmp_path])
    assert names(recognize_pairs([tmp_path], direction=("fr", "en")).settings.train) == ["train.fr", "train.en"]


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
def test_pick_columns(columns: list[str], direction: tuple[str, str], expected: tuple[str, str] | None) -> None:
    assert pick_columns(columns, direction) == expected


def test_ambiguous_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "three.tsv"
    path.write_text("id\ttext\tother\n1\ta\tb\n", "utf-8")
    with pytest.raises(DataError, match=r"columns: id, text, other\). Name them with --source-column"):
        recognize_pairs([path])
    assert recognize_pairs([path], columns=("text", "other")).settings.source_column == "text"


def test_table_without_header(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("Hi.,Hallo.\nBye.,Ciao.\n", "utf-8")
    with pytest.raises(DataError, match=r"If there is no header: --source-column 1 --target-column 2\."):
        recognize_pairs([path])
    assert recognize_pairs([path], columns=("1", "2")).settings.source_column == "1"


def test_file_given_twice_is_refused(tmp_path: Path) -> None:
    given = touch(tmp_path, "m.en")
    with pytest.raises(DataError, match=r"m.en is given twice"):
        recognize_pairs([*given, tmp_path / "." / "m.en"])


def test_files_in_the_opposite_direction_are_refused(tmp_path: Path) -> None:
    english, german = touch(tmp_path, "v.en", "v.de")
    given = touch(tmp_path, "a.en", "a.de")
    exchange = r"go from de to en, but the requested direction is en → de. Exchange the two files."
    with pytest.raises(DataError, match=exchange):
        recognize_pairs(given, valid=[german, english])
    with pytest.raises(DataError, match=exchange):
        recognize_pairs(given[::-1], direction=("en", "de"))
    assert recognize_pairs(given, test=[english, german], direction=("en", "de-AT")).languages == ("en", "de")
    regions = touch(tmp_path, "a.zh-CN", "a.zh-TW")
    assert recognize_pairs(regions).languages == ("zh-CN", "zh-TW")
