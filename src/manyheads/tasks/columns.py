"""The columns of a table: whether they hold labels, texts, tags or numbers, by their names and values."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeVar

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.formats import format_of
from manyheads.text.reading.offset_spans import parse_spans
from manyheads.text.reading.readers import columns_of, read_rows
from manyheads.text.reading.tag_schemes import OUTSIDE, is_tag
from manyheads.text.suggestions import shortened

_ROWS = 60_000  # rows read: many, since files are often sorted by label
_CHARACTERS = 50_000_000
_CELL = 8  # characters that an empty cell counts as: it needs memory, too
_LONGEST_LABEL = 80  # characters
_MAX_LABELS = 1000
_MAX_UNNAMED_LABELS = 300  # in a column that is not named for labels
_ROWS_OF_A_LABEL = 10  # on average, in such a column
_NEARLY_ALL = 0.95
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")

_LABEL_NAMES = (
    "label labels category categories class classes sentiment intent intents topic topics emotion emotions genre "
    "genres polarity stance target 标签 类别 分类 情感 意图 主题"
)
_TEXT_NAMES = (
    "text sentence review content comment utterance query body message document tweet post headline description "
    "article story poem paragraph question title 文本 内容 评论 句子 正文 文章 标题"
)
_LABELS, _TEXTS = frozenset(_LABEL_NAMES.split(" ")), frozenset(_TEXT_NAMES.split(" "))
_NEITHER = ("id", "index", "idx", "split", "fold", "lang", "language", "date", "time", "url", "编号")
# (purpose, names of the source column, names of the target column)
_PAIRS = (
    (
        "summary",
        ("article", "document", "text", "dialogue", "content", "body", "正文", "原文"),
        ("summary", "highlights", "abstract", "摘要"),
    ),
    ("dialogue", ("prompt", "instruction", "context", "dialogue"), ("response", "completion", "output", "reply")),
    ("dialogue", ("question", "query", "问题", "问"), ("answer", "response", "reply", "回答", "答案", "答")),
    ("translation", ("input", "text", "原文"), ("output", "target", "译文")),
)

_R = TypeVar("_R", dict[str, object], tuple[str, ...])


@dataclass(frozen=True)
class Column:
    """The values of one column; the items of a list are joined by spaces."""

    name: str  # as in a recipe: from the header, or its number
    values: Sequence[str]
    are_lists: bool = False
    are_numbers: bool = False  # numbers in JSON or Parquet, not text
    are_spans: bool = False  # lists of spans by character offsets, as labeling tools write them
    are_single: bool = False  # lists of one item each

    @property
    def normalized_name(self) -> str:
        """The name without spaces around it, in lower case."""
        return self.name.strip().lower()

    @cached_property
    def counts(self) -> "Counter[str]":
        """How often each value, or each item of a list, occurs; blank values are not counted."""
        if self.are_lists:
            return Counter(item for value in self.values for item in value.split())
        return Counter(value.strip() for value in self.values if value.strip())

    @property
    def mean_length(self) -> float:
        """Mean length of a value in characters."""
        return sum(map(len, self.values)) / max(1, len(self.values))

    @property
    def is_called_label(self) -> bool:
        """Whether the name is usual for labels."""
        return self.normalized_name in _LABELS

    @property
    def is_surely_label(self) -> bool:
        """Whether the name is used for labels only."""
        return self.normalized_name in ("label", "labels", "sentiment", "标签", "情感")

    @property
    def is_called_text(self) -> bool:
        """Whether the name is usual for texts, with or without a number."""
        return self.normalized_name.rstrip("_0123456789") in _TEXTS or self.normalized_name.endswith(("_text", "_body"))

    @property
    def is_metadata(self) -> bool:
        """Whether the name is usual for metadata, such as an id or a date."""
        return self.normalized_name in _NEITHER

    @cached_property
    def repeats(self) -> bool:
        """Whether the column has few different values, each short, as labels do."""
        n_values = len(self.counts)
        if n_values < 2 or n_values > _MAX_LABELS or max(map(len, self.counts)) > _LONGEST_LABEL:
            return False
        if self.is_called_label:
            return 2 * n_values <= self.counts.total()
        most = min(_MAX_UNNAMED_LABELS, self.counts.total() / _ROWS_OF_A_LABEL)
        return not self.is_metadata and n_values <= most

    @cached_property
    def are_texts(self) -> bool:
        """Whether most values are different and are not numbers."""
        n_numbers = sum(count for value, count in self.counts.items() if _NUMBER.fullmatch(value))
        total = self.counts.total()
        if self.is_metadata or self.are_numbers or self.are_lists:
            return False
        return 2 * len(self.counts) > total > 2 * n_numbers

    @property
    def is_numbers(self) -> bool:
        """Whether every value, or every item of a list, is a number."""
        return _all_numbers(self.counts)

    @cached_property
    def are_tags(self) -> bool:
        """Whether nearly every value is a sequence of tags, and some tags are of spans."""
        rows = [value.split() for value in self.values]
        n_tagged = sum(bool(row) and all(map(is_tag, row)) for row in rows)
        has_spans = any("-" in tag for row in rows for tag in row if tag != OUTSIDE)
        return bool(rows) and has_spans and n_tagged >= _NEARLY_ALL * len(rows)

    def has_as_many_words(self, other: "Column") -> bool:
        """Whether nearly every value has the same number of words as the other column's."""
        rows = list(zip(self.values, other.values, strict=True))
        return sum(len(text.split()) == len(other_text.split()) for text, other_text in rows) >= _NEARLY_ALL * len(rows)

    @cached_property
    def separator(self) -> str:
        """The separator between several labels of a row; "" if each row has one label."""
        if self.are_lists:
            return "" if self.are_single else "|"
        for candidate in ("|", ";", ","):
            n_several = sum(count for value, count in self.counts.items() if candidate in value)
            parts = {part.strip() for value in self.counts for part in value.split(candidate)}
            if 20 * n_several > self.counts.total() and len(parts) < len(self.counts):
                return candidate
        return ""

    @property
    def summary(self) -> str:
        """The number of different values, with examples: 2 values (good, bad)."""
        return _("{n_values:,} values ({examples})", n_values=len(self.counts), examples=self._examples)

    @property
    def _examples(self) -> str:
        examples = [value for value, _count in self.counts.most_common(3)]
        return shortened(", ".join(examples), 60) + (", …" if len(self.counts) > len(examples) else "")

    @property
    def short_summary(self) -> str:
        """The number of different values, for an error message."""
        n_values = len(self.counts)
        if n_values == self.counts.total():
            summary = _("all different") if n_values else _("blank")
            return f"{self.name}: {summary}"
        return _("{name}: {n_values:,} values", name=self.name, n_values=n_values)


def columns_in(path: Path) -> list[Column]:
    """The columns of a table with the values of its first rows."""
    names, table = columns_of(path), format_of(path)
    if table is None or table.may_lack_header:
        return _table_columns(path)
    rows = list(_first(table.records(path, _ignore)))
    return [_column(name, [row.get(name) for row in rows]) for name in names]


@dataclass(frozen=True)
class NamedPair:
    """The source and target column of pairs, recognized by their names."""

    source: str
    target: str
    purpose: str


def named_pair(columns: Sequence[Column]) -> NamedPair | None:
    """Columns such as article and summary, or question and answer; a dialogue may be a list of turns."""
    texts = {column.normalized_name: column.name for column in columns if column.are_texts}
    turns = {column.normalized_name: column.name for column in columns if column.are_lists and not column.is_numbers}
    for purpose, sources, targets in _PAIRS:
        readable = texts | turns if purpose == "dialogue" else texts
        source = next((readable[word] for word in sources if word in readable), None)
        target = next((texts[word] for word in targets if word in texts), None)
        if source is not None and target is not None and source != target:
            return NamedPair(source, target, purpose)
    return None


def _table_columns(path: Path) -> list[Column]:
    header = columns_of(path)
    numbers = [str(number) for number in range(1, len(header) + 1)]
    rows = list(_first(read_rows([path], numbers, numbers, on_bad=_ignore)))
    if len(rows) == 1 and all(_has_known_name([name]) for name in header):
        raise DataError(_("{path} has a header, but no rows. Give a file with rows.", path=path))
    named = [Column(name.strip(), values) for name, values in zip(header, zip(*rows[1:], strict=True), strict=False)]
    if len(named) == len(header) == len({*header}) and _is_header(named):
        return [Column(name, column.values) for name, column in zip(header, named, strict=True)]
    return [Column(number, values) for number, values in zip(numbers, zip(*rows, strict=True), strict=True)]


def _is_header(columns: Sequence[Column]) -> bool:
    """Whether the first line names the columns: a name is known, or differs in kind from the values below it."""
    if any(column.name in column.counts for column in columns):
        return False
    return _has_known_name([column.name for column in columns]) or any(
        (column.repeats and column.name not in column.counts)
        or (column.is_numbers and not _NUMBER.fullmatch(column.name))
        for column in columns
    )


def _has_known_name(names: Iterable[str]) -> bool:
    pairs = {word for _purpose, *sides in _PAIRS for side in sides for word in side}
    known = {*_LABELS, *_TEXTS, *_NEITHER, *pairs, "source", "src", "tags", "words", "tokens"}
    return any(name.strip().lower() in known for name in names)


def _all_numbers(values: Iterable[str]) -> bool:
    values = list(values)
    return bool(values) and all(map(_NUMBER.fullmatch, values))


def _column(name: str, values: Sequence[object]) -> Column:
    lists = [value for value in values if isinstance(value, list)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    texts = [_as_text(value) for value in values]
    spans = [parse_spans(value) for value in lists]
    return Column(
        name,
        texts,
        bool(lists),
        bool(numbers) and len(numbers) + values.count(None) == len(values),
        any(spans) and None not in spans,
        bool(lists) and all(len(value) == 1 for value in lists),
    )


def _as_text(value: object) -> str:
    if isinstance(value, list):
        text = " ".join(re.sub(r"\s", "_", str(item)) or "_" for item in value)
    else:
        text = "" if value is None else str(value)
    # JSON may contain halves of surrogate pairs, which cannot be printed.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _first(rows: Iterator[_R]) -> Iterator[_R]:
    """The first rows, up to a number of rows and characters."""
    n_characters = 0
    for row in islice(rows, _ROWS):
        yield row
        values = row.values() if isinstance(row, dict) else row
        n_characters += sum(len(value) if isinstance(value, str) else 0 for value in values) + _CELL * len(values)
        if n_characters > _CHARACTERS:
            return


def _ignore(error: DataError) -> None:
    """Lines that are not UTF-8 are reported when the data is read for training."""
