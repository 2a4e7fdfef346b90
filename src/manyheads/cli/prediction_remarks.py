"""Remarks of `manyheads predict` on standard error: unseen words, suspect outputs, lines without text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from manyheads.language import pick
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.tasks import Translations

_N_WORDS = 5  # named in a remark
_N_LINES = 3  # named for each word or warning
MAX_UNSEEN = 100_000  # words that are counted
_LINE_KINDS = ("blank_lines", "out_of_scope", "low_confidence", "abstained")
_COUNTS = ("n_rated", "n_cut_off", "n_errors")
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


@dataclass
class LineNumbers:
    """The number of some lines, and the first of them: as much as a remark names."""

    n_lines: int = 0
    first: list[int] = field(default_factory=list)

    def append(self, number: int) -> None:
        """Add a line."""
        self.n_lines += 1
        if len(self.first) <= _N_LINES:
            self.first.append(number)

    def extend(self, later: "LineNumbers") -> None:
        """Add lines that follow these."""
        self.n_lines += later.n_lines
        self.first = (self.first + later.first)[: _N_LINES + 1]


class Remarks:
    """Collects what is remarkable about lines and their predictions, and reports it in one line per kind.

    It takes little memory however many lines there are.
    """

    def __init__(self) -> None:
        self.unseen: dict[str, tuple[str, list[int]]] = {}  # by the word in lower case: the word and its first lines
        self.suspect: dict[str, LineNumbers] = {}  # by the warning of a prediction: its lines
        self.blank_lines = LineNumbers()
        self.out_of_scope = LineNumbers()  # lines that are unlike the training texts of a classifier
        self.low_confidence = LineNumbers()  # lines whose translation is less probable than those of validation
        self.abstained = LineNumbers()  # lines without an answer, since their confidence is lower than asked for
        self.n_rated = 0  # translations with a confidence
        self.n_cut_off = 0  # translations that reached the maximum length
        self.n_errors = 0  # lines that the model cannot read
        self.errors: list[str] = []  # that are not shown yet

    def add(self, number: int, unseen_words: Sequence[str], warnings: Sequence[str] = ()) -> None:
        """Add the remarks on the line of this number."""
        for warning in warnings:
            self.suspect.setdefault(warning, LineNumbers()).append(number)
        for word in unseen_words:
            self._add_unseen(word, [number])

    def _add_unseen(self, word: str, numbers: list[int]) -> None:
        key = word.casefold()
        if key in self.unseen:
            lines = self.unseen[key][1]
            lines += numbers[: _N_LINES + 1 - len(lines)]
        elif len(self.unseen) < MAX_UNSEEN:
            self.unseen[key] = (word, numbers)

    def rate(self, number: int, translations: "Translations") -> None:
        """Add the confidence of the translation of a line, if it is known."""
        self.n_rated += translations.confidence is not None
        if translations.abstained:
            self.abstained.append(number)
        elif translations.is_low_confidence:
            self.low_confidence.append(number)

    def add_error(self, message: str) -> None:
        """Add the error of a line that the model cannot read."""
        self.n_errors += 1
        self.errors.append(message)

    def show_errors(self, n_most: int | None = None) -> None:
        """Write the errors of lines to standard error, at most `n_most` of them, and forget them."""
        for message in self.errors[:n_most]:
            click.echo(f"Error: {message} Its output line stays empty.", err=True)
        n_more = len(self.errors[n_most:]) if n_most is not None else 0
        if n_more:
            click.echo(_("Error: {n_more:,} more lines are too long.", n_more=n_more), err=True)
        self.errors.clear()

    def show(self) -> None:
        """Write the remarks to standard error, and forget them."""
        if self.blank_lines.n_lines:
            click.echo(_describe_blank(self.blank_lines), err=True)
        if self.unseen:
            click.echo(_describe_unseen(list(self.unseen.values())), err=True)
        if self.out_of_scope.n_lines:
            click.echo(_describe_out_of_scope(self.out_of_scope), err=True)
        if self.suspect:
            click.echo(_describe_suspect(self.suspect), err=True)
        if self.low_confidence.n_lines:
            click.echo(_describe_low_confidence(self.low_confidence, self.n_rated), err=True)
        if self.abstained.n_lines:
            click.echo(_describe_abstained(self.abstained, self.n_rated), err=True)
        self.unseen.clear()
        self.suspect.clear()
        self.blank_lines, self.out_of_scope = LineNumbers(), LineNumbers()
        self.low_confidence, self.abstained = LineNumbers(), LineNumbers()
        self.n_rated = 0

    def show_cut_off(self) -> None:
        """Write how many translations were cut off to standard error."""
        if self.n_cut_off:
            click.echo(
                _("{n_cut_off} of the translations were cut off at the maximum length.", n_cut_off=self.n_cut_off),
                err=True,
            )

    def table(self) -> dict[str, Any]:
        """Return all remarks as JSON values."""
        return {
            "unseen": list(self.unseen.values()),
            "suspect": {name: asdict(lines) for name, lines in self.suspect.items()},
            **{name: asdict(getattr(self, name)) for name in _LINE_KINDS},
            **{name: getattr(self, name) for name in _COUNTS},
            "errors": self.errors,
        }

    def extend(self, table: Mapping[str, Any]) -> None:
        """Add the remarks on later lines, which `table` returned."""
        for word, lines in table["unseen"]:
            self._add_unseen(word, list(lines))
        for name, lines in table["suspect"].items():
            self.suspect.setdefault(name, LineNumbers()).extend(LineNumbers(**lines))
        for name in _LINE_KINDS:
            getattr(self, name).extend(LineNumbers(**table[name]))
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + table[name])
        self.errors += table["errors"]


def _describe_blank(lines: LineNumbers) -> str:
    n_lines = lines.n_lines
    subject = f"{n_lines:,} lines have no text" if n_lines > 1 else "1 line has no text"
    answer = "their output lines are empty" if n_lines > 1 else "its output line is empty"
    return pick(
        f"Warning: {subject} ({_lines_in_english(lines)}): {answer}.",
        f"警告：有 {n_lines:,} 行没有文字（{_lines_in_chinese(lines)}），对应的输出行为空。",
    )


def _describe_out_of_scope(lines: LineNumbers) -> str:
    n_lines = lines.n_lines
    subject = f"{n_lines:,} lines look" if n_lines > 1 else "1 line looks"
    return pick(
        f"Warning: {subject} out of scope ({_lines_in_english(lines)}): probably no label fits.",
        f"警告：有 {n_lines:,} 行看来超出模型的范围（{_lines_in_chinese(lines)}），可能没有合适的标签。",
    )


def _describe_low_confidence(lines: LineNumbers, n_rated: int) -> str:
    from manyheads.tasks.seq2seq.translation_search import LOW_CONFIDENCE

    n_lines, share = lines.n_lines, f"{LOW_CONFIDENCE:.0%}".replace("%", " %")
    verb = "has" if n_rated == 1 else "have" if n_lines > 1 else "has"
    return pick(
        f"Warning: {n_lines:,} of {n_rated:,} translations {verb} a low confidence ({_lines_in_english(lines)}): as "
        f"improbable as the lowest {share} of the validation set.",
        f"警告：{n_rated:,} 条译文中有 {n_lines:,} 条置信度低（{_lines_in_chinese(lines)}），"
        f"其概率与验证集中最低的 {share} 相当。",
    )


def _describe_abstained(lines: LineNumbers, n_rated: int) -> str:
    n_lines = lines.n_lines
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
    named = [(word, LineNumbers(len(lines), lines)) for word, lines in shown]
    english = ", ".join(f"{word} ({_lines_in_english(lines)})" for word, lines in named)
    chinese = "、".join(f"{word}（{_lines_in_chinese(lines)}）" for word, lines in named)
    subject = "1 word" if n_words == 1 else f"{n_words:,} words"
    is_counted = n_words < MAX_UNSEEN
    subject = subject if is_counted else f"at least {subject}"
    count = f"有 {n_words:,} 个词" if is_counted else f"至少有 {n_words:,} 个词"
    return pick(
        f"Warning: {subject} did not occur in training: {english}{f' and {rest:,} more' if rest else ''}.",
        f"警告：{count}未在训练文本中出现：{chinese}{f'，另有 {rest:,} 个' if rest else ''}。",
    )


def _describe_suspect(suspect: Mapping[str, LineNumbers]) -> str:
    english = "; ".join(
        f"{_ENGLISH_WARNINGS[warning]} in {_lines_in_english(lines)}" for warning, lines in suspect.items()
    )
    chinese = "；".join(f"{_lines_in_chinese(lines)}{_CHINESE_WARNINGS[warning]}" for warning, lines in suspect.items())
    return pick(
        f"Warning: suspect outputs: {english}. The model may not know such input; check these lines.",
        f"警告：输出可疑：{chinese}。模型可能不熟悉这类输入，请核对这些行。",
    )


def _lines_in_english(lines: LineNumbers) -> str:
    numbers = ", ".join(map(str, lines.first[:_N_LINES])) + (", …" if lines.n_lines > _N_LINES else "")
    return f"line {numbers}" if lines.n_lines == 1 else f"lines {numbers}"


def _lines_in_chinese(lines: LineNumbers) -> str:
    numbers = "、".join(map(str, lines.first[:_N_LINES]))
    return f"第 {numbers} 行" + ("等" if lines.n_lines > _N_LINES else "")
