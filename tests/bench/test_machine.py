"""The texts that measure the speed of a bundle."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.bench import read_texts
from manyheads.bundle import Bundle
from manyheads.errors import DataError


def test_blank_lines_are_skipped(untrained: Bundle, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\n \n\ntwo\n", "utf-8")
    assert read_texts(untrained, tmp_path / "a.en") == ["one", "two"]


def test_default_texts_are_the_validation_set(untrained: Bundle) -> None:
    texts = read_texts(untrained)
    assert len(texts) > 10
    assert all(untrained.task.fits(text) for text in texts)


def test_file_without_text_is_refused(untrained: Bundle, tmp_path: Path) -> None:
    (tmp_path / "blank.en").write_text("\n \n", "utf-8")
    with pytest.raises(DataError, match=r"blank\.en has no text\. Pass texts with --lines FILE\.$"):
        read_texts(untrained, tmp_path / "blank.en")
    with pytest.raises(DataError, match=r"missing\.en"):
        read_texts(untrained, tmp_path / "missing.en")


def test_missing_validation_set_is_reported(untrained: Bundle) -> None:
    recipe = {**untrained.recipe, "data": {"train": ["gone.en", "gone.zh"], "valid": ["gone2.en", "gone2.zh"]}}
    with pytest.raises(DataError, match="validation set cannot be read: pass texts with --lines FILE"):
        read_texts(replace(untrained, recipe=recipe))
