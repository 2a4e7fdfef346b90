"""TMX and XLIFF as rows: languages are columns, codes are left out, and memory stays bounded."""

import tracemalloc
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.proposals.recognition import recognize
from manyheads.tasks.task_init import Request
from manyheads.text.reading.readers import columns_of, read_pairs

UNIT = (
    '<tu><prop>x</prop><tuv xml:lang="EN-us"><seg>A <bpt i="1">&lt;b></bpt>dog<ept i="1">&lt;/b></ept> {n}.</seg></tuv>'
    '<tuv xml:lang="de"><note>n</note><seg>Ein\nHund {n}.</seg></tuv>{more}</tu>\n'
)
FRENCH = '<tuv lang="fr"><seg>Un chien.</seg></tuv>'
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'


def memory(path: Path, n_units: int, more: str = "") -> Path:
    units = (UNIT.replace("{n}", str(n)).replace("{more}", more) for n in range(n_units))
    path.write_text(HEAD + "".join(units) + "</body></tmx>", "utf-8")
    return path


def test_a_memory_of_two_languages(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", 2)
    assert columns_of(path) == ["en-US", "de"]
    expected = [("A dog 0.", "Ein Hund 0."), ("A dog 1.", "Ein Hund 1.")]
    assert list(read_pairs([path])) == expected
    assert list(read_pairs([path], source_column="en", target_column="DE")) == expected  # the only English
    found = recognize([path])
    assert (found.settings.source_column, found.settings.target_column) == ("en-US", "de")
    assert found.languages == ("en-US", "de")


def test_languages_choose_the_columns_of_a_memory_with_several(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", 2, FRENCH)
    with pytest.raises(
        DataError, match=r"languages are en-US, de, fr\. Choose two with --source-language and --target"
    ):
        recognize([path])
    with pytest.raises(DataError, match="Choose two with source_column and target_column"):
        list(read_pairs([path]))
    found = recognize([path], request=Request(direction=("fr", "en")))
    assert (found.settings.source_column, found.settings.target_column) == ("fr", "en-US")
    with pytest.raises(DataError, match='"es"'):
        list(read_pairs([path], source_column="en", target_column="es"))


def test_units_without_one_of_the_languages_are_no_rows(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", 3, FRENCH)
    path.write_text(path.read_text("utf-8").replace(FRENCH, "", 1), "utf-8")
    assert len(list(read_pairs([path], source_column="en", target_column="fr"))) == 2
    empty = tmp_path / "e.tmx"
    empty.write_text("<tmx><body/></tmx>")
    with pytest.raises(DataError, match="has no texts in any language"):
        columns_of(empty)


XLIFF_1 = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>A <g id="1">dog</g><ph id="2">code</ph>.</source><target>Ein Hund.</target>
<alt-trans><source>x</source><target>y</target></alt-trans></trans-unit>
<trans-unit id="2"><source>A cat.</source></trans-unit>
<trans-unit id="3"><source>A cow.</source><target state="new">A cow.</target></trans-unit></body></file></xliff>"""
XLIFF_2 = """<xliff version="2.1" srcLang="en" trgLang="de"><file id="f"><unit id="1">
<segment state="final"><source>A <pc id="1">dog</pc>.</source><target>Ein Hund.</target></segment>
<segment state="initial"><source>A cat.</source><target>A cat.</target></segment></unit></file></xliff>"""


@pytest.mark.parametrize("text", [XLIFF_1, XLIFF_2])
def test_finished_translations_of_xliff(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(text)
    assert list(read_pairs([path])) == [("A dog.", "Ein Hund.")]
    assert recognize([path]).languages == ("en", "de")


def test_bad_files_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    for text, message in (
        ('<!DOCTYPE t [<!ENTITY a "b">]><tmx>&a;</tmx>', "declares entities"),
        ("<tmx><body><tu></body></tmx>", "damaged in line 1"),
        ("<tmx>" + "<a>" * 300, "nested more than 256"),
        ("", "is empty"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            columns_of(path)
        assert str(caught.value).startswith(str(path))


def test_memory_does_not_depend_on_the_size_of_a_file(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", 20_000)
    tracemalloc.start()
    n_rows = sum(1 for _row in read_pairs([path], source_column="en", target_column="de"))
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_rows == 20_000
    assert path.stat().st_size > 3_500_000
    assert peak < 1_500_000
