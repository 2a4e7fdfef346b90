"""Remarks of `manyheads predict` on standard error: unseen words, suspect outputs, lines without text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.tasks import Translations

_N_WORDS = 5  # named in a remark
_N_LINES = 3  # named for each word or warning
_ENGLISH_WARNINGS = {
    "repetition": "repetition",
    "length": "unusual length",
    "short": "text left out",
    "missing": "code, markup or URLs lost",
    "glossary": "a required term lost",
}
_CHINESE_WARNINGS = {
    "repetition": "出现重复",
    "length": "过长",
    "short": "疑有漏译",
    "missing": "丢失代码、标记或网址",
    "glossary": "缺少指定的术语",
}


class Remarks:
    """Collects what is remarkable about lines and their predictions, and reports it in one line per kind."""

    def __init__(self) -> None:
        self.unseen: dict[str, tuple[str, list[int]]] = {}  # by the word in lower case: the word and its lines
        self.suspect: dict[str, list[int]] = {}  # by the warning of a prediction: its lines
        self.blank_lines: list[int] = []
        self.out_of_scope: list[int] = []  # lines that are unlike the training texts of a classifier
        self.low_confidence: list[int] = []  # lines whose translation is less probable than those of validation
        self.abstained: list[int] = []  # lines without an answer, since their confidence is lower than asked for
        self.n_rated = 0  # translations with a confidence

    def add(self, number: int, unseen_words: Sequence[str], warnings: Sequence[str] = ()) -> None:
        """Add the remarks on the line of this number."""
        for warning in warnings:
            self.suspect.setdefault(warning, []).append(number)
        for word in unseen_words:
            _, lines = self.unseen.setdefault(word.casefold(), (word, []))
            if len(lines) <= _N_LINES:
                lines.append(number)

    def rate(self, number: int, translations: "Translations") -> None:
        """Add the confidence of the translation of a line, if it is known."""
        self.n_rated += translations.confidence is not None
        if translations.abstained:
            self.abstained.append(number)
        elif translations.is_low_confidence:
            self.low_confidence.append(number)

    def show(self) -> None:
        """Write the remarks to standard error, and forget them."""
        if self.blank_lines:
            click.echo(_describe_blank(self.blank_lines), err=True)
        if self.unseen:
            click.echo(_describe_unseen(list(self.unseen.values())), err=True)
        if self.out_of_scope:
            click.echo(_describe_out_of_scope(self.out_of_scope), err=True)
        if self.suspect:
            click.echo(_describe_suspect(self.suspect), err=True)
        if self.low_confidence:
            click.echo(_describe_low_confidence(self.low_confidence, self.n_rated), err=True)
        if self.abstained:
            click.echo(_describe_abstained(self.abstained, self.n_rated), err=True)
        self.unseen.clear()
        self.suspect.clear()
        self.blank_lines.clear()
        self.out_of_scope.clear()
        self.low_confidence.clear()
        self.abstained.clear()
        self.n_rated = 0


def _describe_blank(lines: Sequence[int]) -> str:
    n_lines = len(lines)
    subject = f"{n_lines:,} lines have no text" if n_lines > 1 else "1 line has no text"
    answer = "their output lines are empty" if n_lines > 1 else "its output line is empty"
    return pick(
        f"Warning: {subject} ({_lines_in_english(lines)}): {answer}.",
        f"警告：有 {n_lines:,} 行没有文字（{_lines_in_chinese(lines)}），对应的输出行为空。",
    )


def _describe_out_of_scope(lines: Sequence[int]) -> str:
    n_lines = len(lines)
    subject = f"{n_lines:,} lines look" if n_lines > 1 else "1 line looks"
    return pick(
        f"Warning: {subject} out of scope ({_lines_in_english(lines)}): probably no label fits.",
        f"警告：有 {n_lines:,} 行看来超出模型的范围（{_lines_in_chinese(lines)}），可能没有合适的标签。",
    )


def _describe_low_confidence(lines: Sequence[int], n_rated: int) -> str:
    from manyheads.tasks.seq2seq.translation_confidence import LOW_CONFIDENCE

    n_lines, share = len(lines), f"{LOW_CONFIDENCE:.0%}".replace("%", " %")
    verb = "has" if n_rated == 1 else "have" if n_lines > 1 else "has"
    return pick(
        f"Warning: {n_lines:,} of {n_rated:,} translations {verb} a low confidence ({_lines_in_english(lines)}): as "
        f"improbable as the lowest {share} of the validation set.",
        f"警告：{n_rated:,} 条译文中有 {n_lines:,} 条置信度低（{_lines_in_chinese(lines)}），"
        f"其概率与验证集中最低的 {share} 相当。",
    )


def _describe_abstained(lines: Sequence[int], n_rated: int) -> str:
    n_lines = len(lines)
    answer = "their output lines are empty" if n_lines > 1 else "its output line is empty"
    return pick(
        f"Warning: {n_lines:,} of {n_rated:,} translations have a confidence below --abstain "
        f"({_lines_in_english(lines)}): {answer}.",
        f"警告：{n_rated:,} 条译文中有 {n_lines:,} 条置信度低于 --abstain（{_lines_in_chinese(lines)}），"
        "对应的输出行为空。",
    )


def _describe_unseen(words: Sequence[tuple[str, list[int]]]) -> str:
    n_words, shown = len(words), words[:_N_WORDS]
    rest = n_words - len(shown)
    english = ", ".join(f"{word} ({_lines_in_english(lines)})" for word, lines in shown)
    chinese = "、".join(f"{word}（{_lines_in_chinese(lines)}）" for word, lines in shown)
    subject = "1 word" if n_words == 1 else f"{n_words:,} words"
    return pick(
        f"Warning: {subject} did not occur in training: {english}{f' and {rest:,} more' if rest else ''}.",
        f"警告：有 {n_words:,} 个词未在训练文本中出现：{chinese}{f'，另有 {rest:,} 个' if rest else ''}。",
    )


def _describe_suspect(suspect: Mapping[str, Sequence[int]]) -> str:
    english = "; ".join(
        f"{_ENGLISH_WARNINGS[warning]} in {_lines_in_english(lines)}" for warning, lines in suspect.items()
    )
    chinese = "；".join(f"{_lines_in_chinese(lines)}{_CHINESE_WARNINGS[warning]}" for warning, lines in suspect.items())
    return pick(
        f"Warning: suspect outputs: {english}. The model may not know such input; check these lines.",
        f"警告：输出可疑：{chinese}。模型可能不熟悉这类输入，请核对这些行。",
    )


def _lines_in_english(lines: Sequence[int]) -> str:
    numbers = ", ".join(map(str, lines[:_N_LINES])) + (", …" if len(lines) > _N_LINES else "")
    return f"line {numbers}" if len(lines) == 1 else f"lines {numbers}"


def _lines_in_chinese(lines: Sequence[int]) -> str:
    return f"第 {'、'.join(map(str, lines[:_N_LINES]))} 行" + ("等" if len(lines) > _N_LINES else "")
