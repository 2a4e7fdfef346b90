"""A format of tables from outside the package: one file, without registration."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.proposals.recognition import recognize
from manyheads.text.reading import formats
from manyheads.text.reading.formats import FORMATS, format_of, is_table, table_suffixes
from manyheads.text.reading.readers import columns_of, read_pairs

INI = '''
"""INI: each section is a row, and its keys are the columns."""

from configparser import ConfigParser

from manyheads.text.reading.table_format import TableFormat


class IniFormat(TableFormat):
    suffixes = (".ini",)
    has_lines = False  # errors speak of rows

    def rows(self, path, spec):
        for number, record in enumerate(self.records(path), start=1):
            yield number, tuple(record[column] for column in spec.column_names)

    def columns(self, path):
        return list(next(self.records(path)))

    def records(self, path, on_bad=None):
        parser = ConfigParser(interpolation=None)
        parser.read(path, "utf-8")
        yield from (dict(parser[section]) for section in parser.sections())


FORMAT = IniFormat()
'''

ROWS = """[1]
en = A dog.
de = Ein Hund.
[2]
en = A cat.
de = Eine Katze.
"""


@pytest.fixture
def _ini_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "formats"
    folder.mkdir()
    (folder / "ini_format.py").write_text(INI)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(folder)])
    monkeypatch.setattr(formats, "FORMATS", formats._find_formats())
    yield
    sys.modules.pop("manyheads.text.reading.formats.ini_format", None)


@pytest.mark.usefixtures("_ini_format")
def test_a_format_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.ini"
    path.write_text(ROWS)
    assert is_table(path)
    assert columns_of(path) == ["en", "de"]
    pairs = read_pairs([path], source_column="en", target_column="de")
    assert list(pairs) == [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]
    assert table_suffixes().endswith(" or .ini")
    with pytest.raises(DataError, match=r"a single file must end in \.csv, .* or \.ini"):
        read_pairs([path.rename(path.with_suffix(".xml"))])


@pytest.mark.usefixtures("_ini_format")
def test_init_recognizes_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.ini"
    path.write_text(ROWS)
    settings = recognize([path]).settings
    assert (settings.source_column, settings.target_column) == ("en", "de")


def test_every_file_of_the_folder_is_a_format_with_its_own_suffixes() -> None:
    files = {file.stem for folder in formats.__path__ for file in Path(folder).glob("*.py")} - {"__init__"}
    assert {type(table).__module__.rpartition(".")[2] for table in FORMATS} == files
    suffixes = [suffix for table in FORMATS for suffix in table.suffixes]
    assert len({*suffixes}) == len(suffixes)
    assert all(format_of(Path(f"data{suffix.upper()}")) is not None for suffix in suffixes)
