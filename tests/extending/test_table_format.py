"""A format of tables from outside the package: one file, without registration."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.init.recognition import recognize
from manyheads.text.reading import formats
from manyheads.text.reading.formats import FORMATS, format_of, is_table, table_suffixes
from manyheads.text.reading.readers import columns_of, read_pairs

TMX = '''
"""TMX: translation memories. The columns are the languages of the first translation unit."""

from xml.etree import ElementTree

from manyheads.text.reading.table_format import TableFormat

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class TmxFormat(TableFormat):
    suffixes = (".tmx",)
    has_lines = False  # errors speak of rows

    def rows(self, path, spec):
        for number, record in enumerate(self.records(path), start=1):
            yield number, tuple(record[column] for column in spec.column_names)

    def columns(self, path):
        return list(next(self.records(path)))

    def records(self, path, on_bad=None):
        for _event, unit in ElementTree.iterparse(path):
            if unit.tag == "tu":
                yield {variant.get(LANGUAGE): variant.findtext("seg") for variant in unit.iter("tuv")}
                unit.clear()


FORMAT = TmxFormat()
'''

MEMORY = """<tmx version="1.4"><body>
<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="de"><seg>Ein Hund.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A cat.</seg></tuv><tuv xml:lang="de"><seg>Eine Katze.</seg></tuv></tu>
</body></tmx>
"""


@pytest.fixture
def _tmx_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "formats"
    folder.mkdir()
    (folder / "tmx_format.py").write_text(TMX)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(folder)])
    monkeypatch.setattr(formats, "FORMATS", formats._find_formats())
    yield
    sys.modules.pop("manyheads.text.reading.formats.tmx_format", None)


@pytest.mark.usefixtures("_tmx_format")
def test_a_format_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(MEMORY)
    assert is_table(path)
    assert columns_of(path) == ["en", "de"]
    pairs = read_pairs([path], source_column="en", target_column="de")
    assert list(pairs) == [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]
    assert table_suffixes() == ".csv, .json, .jsonl, .parquet, .tsv, .xlsx or .tmx"
    with pytest.raises(
        DataError, match=r"a single file must end in \.csv, \.json, \.jsonl, \.parquet, \.tsv, \.xlsx or \.tmx"
    ):
        read_pairs([path.rename(path.with_suffix(".xml"))])


@pytest.mark.usefixtures("_tmx_format")
def test_init_recognizes_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(MEMORY)
    settings = recognize([path]).settings
    assert (settings.source_column, settings.target_column) == ("en", "de")


def test_every_file_of_the_folder_is_a_format_with_its_own_suffixes() -> None:
    files = {file.stem for folder in formats.__path__ for file in Path(folder).glob("*.py")} - {"__init__"}
    assert {type(table).__module__.rpartition(".")[2] for table in FORMATS} == files
    suffixes = [suffix for table in FORMATS for suffix in table.suffixes]
    assert len({*suffixes}) == len(suffixes)
    assert all(format_of(Path(f"data{suffix.upper()}")) is not None for suffix in suffixes)
