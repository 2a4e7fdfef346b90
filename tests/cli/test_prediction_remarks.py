"""The remarks of `manyheads predict`: one line per kind, however long the input is."""

from collections.abc import Sequence

import pytest

from manyheads.answer.answer import Answer
from manyheads.answer.remarks import Remarks
from manyheads.cli.prediction_remarks import show_remarks
from manyheads.language import using
from manyheads.tasks import Translation, Translations


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
