"""Parts of the scorecards of labels and spans in a terminal: a row for each label, confusion, what went wrong."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from manyheads.metrics import NOTHING, Confusion, LabelRow, Mistake, WorstSentence

_MOST_ROWS = 15
_WIDER_THAN_ANY = 10_000  # a terminal that cuts nothing off
_MOST_LABELS = 12  # of a matrix that is printed; of larger ones, the commonest confusions are
_LONGEST = 200  # characters shown of a text


def show_rows(rows: Sequence[LabelRow], console: Console) -> None:
    """How well each label is found; of many, the worst."""
    kept = sorted(rows, key=lambda row: row.f1)[:_MOST_ROWS] if len(rows) > _MOST_ROWS else rows
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column("label · 标签")
    for title in ("precision · 精确率", "recall · 召回率", "F1", "support · 样本数"):
        table.add_column(title, justify="right")
    for row in kept:
        figures = [f"{figure:.1f}" for figure in (row.precision, row.recall, row.f1)]
        table.add_row(Text(_named(row.label)), *figures, f"{row.support:,}")
    console.print(Text("Labels · 各标签", style="bold"))
    console.print(table)
    if len(kept) < len(rows):
        told = f"  The {len(kept)} worst of {len(rows)} labels by F1; --json has all · 仅列出 F1 最低的标签"
        console.print(told, style="dim", markup=False)
    console.print()


def show_confusion(confusion: Confusion, console: Console) -> None:
    """The matrix, if it is small enough for the terminal; otherwise what is confused most often."""
    names = [_named(label) for label in confusion.labels]
    if not any(map(any, confusion.counts)):
        return
    if len(names) > _MOST_LABELS:
        how, table = "the commonest, correct → predicted · 最常见的，正确标签 → 预测标签", _commonest(confusion)
    else:
        how = "rows: correct, columns: predicted · 行：正确标签，列：预测标签"
        table = _matrix(names, names, confusion)
        if Measurement.get(console, console.options.update(width=_WIDER_THAN_ANY), table).maximum > console.width:
            numbers = [str(number) for number in range(1, len(names) + 1)]
            numbered = [f"{number} {name}" for number, name in zip(numbers, names, strict=True)]
            table = _matrix(numbered, numbers, confusion)
    console.print(Text("Confusion · 混淆", style="bold").append(f"  {how}", style="dim not bold"))
    console.print(table)
    if NOTHING in confusion.labels:
        console.print(f"  {NOTHING}: none · 无", style="dim")
    console.print()


def _matrix(rows: Sequence[str], columns: Sequence[str], confusion: Confusion) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column("", no_wrap=True)
    for name in columns:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for place, (name, counts) in enumerate(zip(rows, confusion.counts, strict=True)):
        cells = [
            Text(f"{count:,}" if count else "·", style="dim" if not count else "green" if column == place else "red")
            for column, count in enumerate(counts)
        ]
        table.add_row(Text(name), *cells)
    return table


def _commonest(confusion: Confusion) -> Table:
    found = [
        (count, count / sum(counts), confusion.labels[row], confusion.labels[column])
        for row, counts in enumerate(confusion.counts)
        for column, count in enumerate(counts)
        if count and row != column
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", min_width=7)
    for count, share, gold, predicted in sorted(found, key=lambda one: -one[0])[:_MOST_ROWS]:
        told = Text(f"{_named(gold)} → ").append(_named(predicted), style="bold")
        table.add_row(f"{count:,}", told, Text(f"{100 * share:.1f} %", style="dim"))
    return table


def show_counts(counts: Mapping[str, int], console: Console) -> None:
    """What was counted, in a line."""
    console.print("  " + ", ".join(f"{name} {count:,}" for name, count in counts.items()), style="dim", markup=False)


def show_mistakes(title: str, mistakes: Sequence[Mistake], console: Console) -> None:
    """Texts by their number in the test set, what was predicted and how surely, and what is right."""
    console.print(title, style="bold", markup=False)
    for mistake in mistakes:
        answer = Text(_joined(mistake.predicted), style="bold").append(f"  {100 * mistake.probability:.1f} %", "dim")
        _show_example(mistake.number, mistake.text, answer, _joined(mistake.gold), console)
    console.print()


def show_sentences(title: str, sentences: Sequence[WorstSentence], console: Console) -> None:
    """Sentences by their number in the test set, the spans that were predicted, and those that are right."""
    console.print(title, style="bold", markup=False)
    for one in sentences:
        predicted, gold = (
            " · ".join([*([label] if label else []), *spans]) or NOTHING
            for label, spans in ((one.predicted_label, one.predicted), (one.gold_label, one.gold))
        )
        _show_example(one.number, one.text, Text(predicted, style="bold"), gold, console)
    console.print()


def _show_example(number: int, text: str, answer: Text, gold: str, console: Console) -> None:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", min_width=7)
    grid.add_column()
    line = " ".join(text.split())
    grid.add_row(Text(f"{number:,}", style="dim"), Text(line if len(line) <= _LONGEST else line[:_LONGEST] + "…"))
    grid.add_row("→", answer)
    grid.add_row("=", Text(gold, style="dim"))
    console.print(grid)


def _joined(labels: Sequence[str]) -> str:
    return ", ".join(map(_named, labels)) or NOTHING


def _named(label: str) -> str:
    """A label as it can be shown: spans of one kind need none."""
    return label or "span · 片段"
