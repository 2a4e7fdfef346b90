"""What a bundle is asked when its speed is measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.bench import read_texts
from manyheads.bundle import Bundle
from manyheads.errors import DataError


def test_lines_of_a_file_but_not_blank_ones(untrained: Bundle, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\n \n\ntwo\n", "utf-8")
    assert read_texts(untrained, tmp_path / "a.en") == ["one", "two"]


def test_the_valid_set_of_the_recipe(untrained: Bundle) -> None:
    texts = read_texts(untrained)
    assert len(texts) > 10
    assert all(untrained.task.fits(text) for text in texts)


def test_nothing_to_answer_is_told(untrained: Bundle, tmp_path: Path) -> None:
    (tmp_path / "blank.en").write_text("\n \n", "utf-8")
    with pytest.raises(DataError, match=r"blank\.en has no text to answer\. Give some with --lines FILE\.$"):
        read_texts(untrained, tmp_path / "blank.en")
    with pytest.raises(DataError, match=r"missing\.en"):
        read_texts(untrained, tmp_path / "missing.en")


def test_a_valid_set_that_is_gone_is_told(untrained: Bundle) -> None:
    recipe = {**untrained.recipe, "data": {"train": ["gone.en", "gone.zh"], "valid": ["gone2.en", "gone2.zh"]}}
    with pytest.raises(DataError, match="own valid set cannot be read: give texts with --lines FILE"):
        read_texts(replace(untrained, recipe=recipe))
