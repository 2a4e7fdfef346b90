"""Faulty sequences of tags: repaired, counted and reported together."""

from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.language import using
from manyheads.tasks import Tag, TagSettings


def conll(path: Path, *sentences: str) -> list[str]:
    path.write_text("\n\n".join(sentence.replace(" ", "\n").replace("/", " ") for sentence in sentences) + "\n")
    return [str(path)]


GOOD = "Ada/B-PER lives/O in/O New/B-LOC York/I-LOC"
BAD = "in/O New/I-LOC York/I-LOC"


def test_faults_are_repaired_and_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = conll(tmp_path / "test.conll", *[GOOD] * 9, *[BAD] * 7)
    messages: list[str] = []
    monkeypatch.setattr("manyheads.tasks.tag.tag_task.logger.warning", messages.append)
    for _ in range(2):
        rows = list(Tag.read(files, {}, TagSettings()))
    assert rows[-1] == ("in New York", "O B-LOC I-LOC")
    (message,) = messages
    assert message.startswith(f"{files[0]}: the tags of 7 of 16 sentences are not valid and were repaired")
    assert "lines 55 to 57: tag 2 of 3, I-LOC after O, is not valid in IOB2; lines 59 to 61" in message
    assert message.endswith("; and 2 more.")


def test_faults_are_as_short_in_chinese(tmp_path: Path) -> None:
    files = conll(tmp_path / "a.conll", GOOD, *["a/B-X b/O"] * 4)
    with using("zh"), pytest.raises(DataError) as caught:
        list(Tag.read(files, {}, TagSettings(scheme="IOB1")))
    assert str(caught.value).count(str(tmp_path)) == 1
    assert "请改正" not in str(caught.value)


def test_mostly_faulty_tags_are_refused_with_all_faults(tmp_path: Path) -> None:
    files = conll(tmp_path / "a.conll", GOOD, *["a/B-X b/O"] * 4)
    expected = r"the tags of 5 of 5 sentences are not valid: .*; and 1 more\. Choose the column"
    with pytest.raises(DataError, match=expected) as caught:
        list(Tag.read(files, {}, TagSettings(scheme="IOB1")))
    assert str(caught.value).count("is not valid in IOB1") == 5


def test_scheme_of_the_settings_is_used(tmp_path: Path) -> None:
    files = conll(tmp_path / "a.conll", "a/X b/X c/Y", "d/X")
    for scheme, tags in (("words", "B-X B-X B-Y"), ("IO", "B-X I-X B-Y"), ("auto", "B-X B-X B-Y")):
        assert next(iter(Tag.read(files, {}, TagSettings(scheme=scheme)))) == ("a b c", tags)  # type: ignore[arg-type]
