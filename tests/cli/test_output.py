"""Output files of commands."""

from pathlib import Path

import pytest

from manyheads.cli.rendering.output import open_output
from manyheads.errors import DataError


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "x"
    with pytest.raises(DataError) as caught, open_output(path):
        pass
    assert str(caught.value) == f"{path}: the folder {path.parent} does not exist."


def test_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    with open_output(tmp_path / "x") as stream:
        stream.write("text")
        assert not (tmp_path / "x").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
