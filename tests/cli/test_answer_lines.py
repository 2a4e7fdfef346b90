"""`manyheads predict --format html`: fragments line by line. Documents are refused."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.answer.answer import Answer
from manyheads.answer.markup_translation import translate_markup
from manyheads.answer.remarks import Remarks
from manyheads.bundle import Bundle
from manyheads.cli.rendering.answer_lines import show_remarks
from manyheads.language import using
from manyheads.tasks import Translation, Translations

from cli.conftest import Run

LINES = ["The <b>red</b> dog sleeps.", "", "<p>A cat.<p>Two &amp; more"]


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


@pytest.mark.parametrize("options", [["--align"], ["--n-best", "2"], ["--prompt", "x"]])
def test_other_outputs_are_refused(manyheads: Run, bundle_folder: Path, options: list[str]) -> None:
    done = manyheads("predict", bundle_folder, "--format", "html", *options, stdin="x")
    assert done.returncode == 2
    assert "--format html gives one translation" in done.stderr


@pytest.mark.parametrize("words", [["page.html"], ["page.html", "--format", "html"], ["zh.po"], ["a.txt", "b.xliff"]])
def test_a_document_is_not_read_as_lines(manyheads: Run, bundle_folder: Path, words: list[str]) -> None:
    done = manyheads("predict", bundle_folder, *words)
    assert done.returncode == 2
    name = words[1] if words[0] == "a.txt" else words[0]
    message = " ".join(done.stderr.split())
    assert f"{name} is a document, not lines of text." in message
    assert f"manyheads translate-file {bundle_folder} {name} -o FILE" in message


def test_lines_of_a_document_on_request(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("123\n```\n")
    done = manyheads("predict", bundle_folder, "page.html", "--format", "text")
    assert (done.returncode, done.stdout) == (0, "123\n```\n")


def answer(unseen_words: Sequence[str] = (), warnings: Sequence[str] = (), confidence: float | None = None) -> Answer:
    translations = Translations([Translation("", -1.0, -1.0, finished=True)], warnings, confidence=confidence)
    return Answer("x", translations, unseen_words)


def remark_on(remarks: Remarks) -> None:
    for number in range(1, 1001):
        remarks.add(number, answer(["Cat" if number == 1 else "cat"]))
    remarks.add(1001, answer(["a", "b", "c", "d", "e", "f"]))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            "Warning: 7 words did not occur in training: Cat (lines 1, 2, 3, …), a (line 1001), b (line 1001), "
            "c (line 1001), d (line 1001) and 2 more.\n",
        ),
        (
            "zh",
            "警告：有 7 个词未在训练文本中出现：Cat（第 1、2、3 行等）、a（第 1001 行）、b（第 1001 行）、"
            "c（第 1001 行）、d（第 1001 行），另有 2 个。\n",
        ),
    ],
)
def test_unseen_words_are_one_short_line(language: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    remarks = Remarks()
    remark_on(remarks)
    with using(language):
        show_remarks(remarks)
        assert capsys.readouterr() == ("", expected)
        show_remarks(remarks)  # they were shown
        remarks.add(1, answer())
        show_remarks(remarks)
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            "Warning: suspect outputs: repetition in lines 2, 3, 4, …; unusual length in line 4. "
            "The model may not know such input; check these lines.\n",
        ),
        ("zh", "警告：输出可疑：第 2、3、4 行等出现重复；第 4 行过长。模型可能不熟悉这类输入，请核对这些行。\n"),
    ],
)
def test_suspect_outputs_are_one_line(language: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    remarks = Remarks()
    for number in range(1, 7):
        remarks.add(number, answer([], {1: [], 4: ["repetition", "length"]}.get(number, ["repetition"])))
    with using(language):
        show_remarks(remarks)
        assert capsys.readouterr() == ("", expected)
        show_remarks(remarks)
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            "Warning: 5 of 10 translations have a low confidence (lines 1, 2, 3, …): as improbable as the lowest 5 % "
            "of the validation set.\n",
        ),
        ("zh", "警告：10 条译文中有 5 条置信度低（第 1、2、3 行等），其概率与验证集中最低的 5 % 相当。\n"),
    ],
)
def test_translations_of_low_confidence_are_counted(
    language: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    remarks = Remarks()
    for number, confidence in enumerate([0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.5, 0.9, 1.0, 0.06, None], start=1):
        remarks.add(number, answer(confidence=confidence))
    with using(language):
        show_remarks(remarks)
        assert capsys.readouterr() == ("", expected)
        show_remarks(remarks)
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "text left out in line 3; code, markup or URLs lost in lines 3, 5."),
        ("zh", "第 3 行疑有漏译；第 3、5 行丢失代码、标记或网址。"),
    ],
)
def test_losses_are_part_of_the_line(language: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    remarks = Remarks()
    remarks.add(3, answer([], ["short", "missing"]))
    remarks.add(5, answer([], ["missing"]))
    with using(language):
        show_remarks(remarks)
        assert expected in capsys.readouterr().err
