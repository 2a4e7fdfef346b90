"""`manyheads translate-file`: documents in, documents out."""

from pathlib import Path

import pytest

from manyheads.bundle import Bundle

from cli.conftest import Run


def test_a_page_is_written_and_the_rest_is_reported(
    manyheads: Run, bundle_folder: Path, untrained: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_bytes(b'<html lang="en">\r\n<p>The dog sleeps.<pre> x\n</pre>')
    done = manyheads("translate-file", bundle_folder, "page.html", "-o", "out.html")
    assert (done.returncode, done.stdout) == (0, "")
    assert "out.html: 1 text was translated." in done.stderr
    (text,) = untrained.predict(["The dog sleeps."])
    assert (tmp_path / "out.html").read_bytes().decode() == f'<html lang="zh">\r\n<p>{text}<pre> x\n</pre>'


def test_all_translates_what_has_a_translation(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text('msgid "The dog sleeps."\nmsgstr "x"\n')
    for words, message in (((), "a.new.po: 0 texts were translated."), (("--all",), "1 text was translated.")):
        done = manyheads("translate-file", bundle_folder, "a.po", "-o", "a.new.po", *words)
        assert done.returncode == 0
        assert message in done.stderr
    assert 'msgstr "x"' not in (tmp_path / "a.new.po").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.html", "-o", "out.html"], "none.html: there is no such file"),
        (["a.txt", "-o", "out.txt"], "a.txt: documents end in .epub"),
        (["a.html", "-o", "a.html"], "a.html is the file being read"),
        (["a.html", "-o", "."], ". is a folder"),
        (["a.html", "-o", "none/out.html"], "the folder none does not exist"),
        (["bad.docx", "-o", "out.docx"], "bad.docx: It is not a zip archive"),
        (["bad.xlf", "-o", "out.xlf"], "bad.xlf: Its XML declares entities"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(
    manyheads: Run, bundle_folder: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "a.html").write_text("<p>a")
    (tmp_path / "bad.docx").write_text("x")
    (tmp_path / "bad.xlf").write_text('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>')
    before = sorted(path.name for path in tmp_path.iterdir())
    done = manyheads("translate-file", bundle_folder, *words)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
