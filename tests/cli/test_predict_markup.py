"""`manyheads predict --format html`: fragments line by line, documents as a whole."""

import json
from pathlib import Path

import pytest

from manyheads.answer.markup_translation import translate_markup
from manyheads.bundle import Bundle
from manyheads.cli.predict_markup import is_document

from cli.conftest import Run

LINES = ["The <b>red</b> dog sleeps.", "", "<p>A cat.<p>Two &amp; more"]
PAGE = '<!DOCTYPE html>\r\n<p id="a>b">The <b>red</b> dog.\r\n\r\n<pre> x\n</pre>'


def test_one_line_for_each_fragment(manyheads: Run, bundle_folder: Path, untrained: Bundle) -> None:
    done = manyheads("predict", bundle_folder, "--format", "html", stdin="\n".join(LINES) + "\n")
    assert done.returncode == 0
    assert "1 line has no text (line 2)" in done.stderr
    assert done.stdout.split("\n")[:-1] == [one.answer for one in translate_markup(untrained, LINES)]


def test_json_lists_segments(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--format", "html", "--json", stdin=LINES[2])
    payload = json.loads(done.stdout)
    assert [one["source"] for one in payload["segments"]] == ["A cat.", "Two & more"]
    assert payload["source"] == LINES[2]
    assert payload["answer"].count("<p>") == 2
    assert {"line", "warnings", "missing", "confidence"} <= set(payload)


def test_a_document_is_translated_as_a_whole(
    manyheads: Run, bundle_folder: Path, untrained: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_bytes(PAGE.encode())
    done = manyheads("predict", bundle_folder, "page.html", "--format", "html", "-o", "out.html")
    assert (done.returncode, done.stdout) == (0, "")
    written = (tmp_path / "out.html").read_bytes().decode()
    assert written == translate_markup(untrained, [PAGE])[0].answer
    assert written.startswith('<!DOCTYPE html>\r\n<p id="a>b">')
    assert written.endswith("\r\n\r\n<pre> x\n</pre>")


@pytest.mark.parametrize("options", [["--align"], ["--n-best", "2"], ["--prompt", "x"]])
def test_other_outputs_are_refused(manyheads: Run, bundle_folder: Path, options: list[str]) -> None:
    done = manyheads("predict", bundle_folder, "--format", "html", *options, stdin="x")
    assert done.returncode == 2
    assert "--format html gives one translation" in done.stderr


def test_missing_and_undecodable_documents(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    done = manyheads("predict", bundle_folder, "none.html", "--format", "html")
    assert (done.returncode, "none.html" in done.stderr) == (1, True)
    (tmp_path / "bad.html").write_bytes(b"<p>\xff\xfe\xff</p>")
    done = manyheads("predict", bundle_folder, "bad.html", "--format", "html")
    assert (done.returncode, "UTF-8" in done.stderr) == (1, True)


def test_documents_by_suffix() -> None:
    assert all(map(is_document, ("a.html", "B.HTM", "x/y.xhtml")))
    assert not any(map(is_document, ("-", "a.txt", "html")))
