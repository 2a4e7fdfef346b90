"""Scorecards in a terminal: scores and figures in one table, and every other section by its type."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from manyheads.cli.rendering.output import quoted
from manyheads.messages import _
from manyheads.metrics import (
    NO_LABEL,
    Baseline,
    Card,
    Comparison,
    Confusion,
    Difference,
    ExampleRow,
    Examples,
    Figure,
    Figures,
    Generations,
    LabelTable,
    Note,
    Score,
    Section,
    ThresholdChoice,
    display_name,
    format_change,
    format_score,
    lower_is_better,
    score_notes,
)

_MAX_ROWS = 15  # labels, or kinds of confusion
_MAX_MATRIX = 12  # labels of a printed confusion matrix
_LONGEST_TEXT = 200  # characters shown of a text with a label
_UNLIMITED_WIDTH = 10_000
_SIGNIFICANT = 0.05


def show_cards(cards: Mapping[str, Card], console: Console) -> None:
    """Print the scorecards of test sets: details first, the scores last, next to the prompt."""
    for name, card in cards.items():
        for section in card.sections():
            _show_details(name, section, console)
    console.print(_("Scores"), style="bold")
    show_scores({name: card.scores for name, card in cards.items()}, console, _figures_of(cards))
    show_notes(cards, console)
    show_baselines(cards, console)
    for name, card in cards.items():
        for section in card.sections():
            if isinstance(section, Comparison):
                _show_comparison(name, section, console)


def show_threshold(name: str, choice: ThresholdChoice, bundle: str, console: Console) -> None:
    """Print the threshold for a wanted precision, what it costs in coverage, and how to use it."""
    title = _("Threshold for a precision of {wanted:g} %: {set_name}", wanted=choice.wanted, set_name=set_title(name))
    console.print(Text(f"\n{title}", style="bold").append(f"  n = {choice.n_texts:,}", style="dim not bold"))
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    names = (_("threshold"), _("precision"), str(choice.coverage_of), _("answers"))
    for column in names:
        table.add_column(column, justify="right")
    rows = sorted({*choice.rows, *([choice.chosen] if choice.chosen else [])}, key=lambda row: row.threshold)
    for row in rows:
        precision, style = f"{row.precision:.1f}", None
        if row == choice.chosen and choice.precision:
            precision, style = _format(choice.precision), "bold"
        table.add_row(f"{row.threshold:g}", precision, f"{row.coverage:.1f} %", f"{row.n_answers:,}", style=style)
    console.print(table)
    if choice.chosen:
        # Not wrapped, so that a command can be copied.
        option = f"--threshold {choice.chosen.threshold:g}"
        for words in (f"predict {quoted(bundle)}", f"evaluate {quoted(bundle)} DATA"):
            console.print(f"  manyheads {words} {option}", markup=False, soft_wrap=True)
    for note in choice.notes():
        _print_note(str(note), console)


def show_scores(
    scores: Mapping[str, Sequence[Score]], console: Console, figures: Mapping[str, Sequence[Figure]] | None = None
) -> None:
    """Print a table with a row for each score or figure and a column for each test set, and the signatures."""
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column("")
    for name, row in scores.items():
        title = Text(set_title(name)).append(_size(row), style="dim not bold")
        if row and row[0].used_for:
            title.append(_(" optimistic"), style="yellow not bold")
        table.add_column(title, no_wrap=True)
    for name in dict.fromkeys(score.name for row in scores.values() for score in row):
        cells = [next((_format(score) for score in row if score.name == name), "–") for row in scores.values()]
        table.add_row(score_title(name), *(Text(cell, style="bold") for cell in cells))
    if figures:
        table.add_row()
        for figure_name in dict.fromkeys(figure.name for row in figures.values() for figure in row):
            columns = [figures.get(name, ()) for name in scores]
            cells = [
                next((_format_figure(figure) for figure in row if figure.name == figure_name), "–") for row in columns
            ]
            table.add_row(str(figure_name), *cells)
    console.print(table)
    if any(lower_is_better(score.name) for row in scores.values() for score in row):
        console.print(_("  ↓ lower is better"), style="dim")
    for signature in dict.fromkeys(f"{score.name} {score.signature}" for row in scores.values() for score in row):
        # Not wrapped, so that a signature can be copied.
        console.print(f"  {signature}", style="dim", markup=False, soft_wrap=True)
    for name, row in scores.items():
        for note in score_notes(row[0].n, row[0].used_for) if row else ():
            _print_note(_note_of(name, str(note)) if len(scores) > 1 else str(note), console)


def show_notes(cards: Mapping[str, Card], console: Console) -> None:
    """Print the notes of all cards."""
    for name, card in cards.items():
        for section in card.sections():
            if isinstance(section, Note):
                note = str(section.text)
                _print_note(_note_of(name, note) if len(cards) > 1 else note, console)


def _note_of(name: str, note: str) -> str:
    return _("{set_name}: {note}", set_name=set_title(name), note=note)


def show_baselines(cards: Mapping[str, Card], console: Console) -> None:
    """Print how much better each model is than its linear baseline, on the same texts."""
    for name, card in cards.items():
        for section in card.sections():
            if isinstance(section, Baseline):
                console.print(_baseline_line(name, section))


def _baseline_line(name: str, section: Baseline) -> Text:
    change = section.change
    before, value = (format_score(change.name, figure) for figure in (change.before, change.value))
    compared = _(
        "{set_name}: {baseline} {before}, this model {value}: ",
        set_name=set_title(name),
        baseline=section.name,
        before=before,
        value=value,
    )
    line = Text(f"  {compared}")
    line.append(f"{change.difference:+.1f} {section.interval}".rstrip(), style="bold")
    is_clear = change.low * change.high > 0 and not section.is_optimistic
    style = "yellow" if not is_clear else "green" if change.cost < 0 else "red"
    return line.append(f"  {section.verdict}", style=style)


def format_interval(score: Score) -> str:
    """Return a score with its name, its interval and its number of texts."""
    n_texts = "" if score.n is None else _(", {n:,} valid rows", n=score.n)
    return f"{display_name(score.name)} {_format(score)}{n_texts}"


def _print_note(text: str, console: Console) -> None:
    """Print an indented note; where lines are wrapped, all of its lines are indented."""
    if console.soft_wrap:
        console.print(f"  {text}", style="yellow", markup=False)
    else:
        console.print(Padding(Text(text), (0, 0, 0, 2), expand=False), style="yellow")


def show_random_examples(cards: Mapping[str, Card], n_examples: int, console: Console) -> None:
    """Print some examples of each card that were drawn at random; a wrong answer with the expected one."""
    for card in cards.values():
        for section in card.sections():
            if isinstance(section, Examples) and section.are_random:
                for row in section.rows[:n_examples]:
                    console.print(f"  {row.text}", markup=False)
                    console.print(f"  → {row.answer}", markup=False, style="bold")
                    if row.answer != row.expected:
                        label = _("expected:")
                        console.print(f"    {label} {row.expected}", markup=False, style="dim")


def has_random_examples(cards: Mapping[str, Card]) -> bool:
    """Return whether `show_random_examples` has anything to print."""
    sections = (section for card in cards.values() for section in card.sections())
    return any(isinstance(section, Examples) and section.are_random for section in sections)


def set_title(name: str) -> str:
    """Return the displayed name of a test set."""
    return str(display_name(name))


def score_title(name: str) -> str:
    """Return the displayed name of a score, with ↓ where lower is better."""
    return f"{display_name(name)} ↓" if lower_is_better(name) else str(display_name(name))


def _figures_of(cards: Mapping[str, Card]) -> dict[str, list[Figure]]:
    return {
        name: [figure for section in card.sections() if isinstance(section, Figures) for figure in section.figures]
        for name, card in cards.items()
    }


def _size(scores: Sequence[Score]) -> str:
    """Return the number of texts that the scores of a set were computed from, if it is known."""
    return f"  n = {scores[0].n:,}" if scores and scores[0].n is not None else ""


def _format(score: Score) -> str:
    value, low, high = (format_score(score.name, x) for x in (score.value, score.low, score.high))
    return f"{value} [{low}, {high}]"


def _format_figure(figure: Figure) -> str:
    value = f"{figure.value:,.2f}" if isinstance(figure.value, float) else f"{figure.value:,}"
    return f"{value} ({100 * figure.value / figure.total:.1f} %)" if figure.total and figure.value else value


def _show_details(name: str, section: Section, console: Console) -> None:
    if isinstance(section, Examples):
        _show_examples(name, section, console)
    elif isinstance(section, Generations):
        title = _("{set_name}: generated samples", set_name=set_title(name))
        console.print(title, style="bold", markup=False)
        for sample in section.samples:
            console.print(Text("  ").append(sample.prompt, style="dim").append(sample.text, style="bold"))
        console.print()
    elif isinstance(section, Confusion):
        _show_confusion(section, console)
    elif isinstance(section, LabelTable):
        _show_labels(section, console)


def _show_examples(name: str, section: Examples, console: Console) -> None:
    title = _("{set_name}: {title} ({n_rows})", set_name=set_title(name), title=section.title, n_rows=len(section.rows))
    console.print(title, style="bold", markup=False)
    for row in section.rows:
        console.print(_example_grid(row))
    console.print()


def _example_grid(row: ExampleRow) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", min_width=7)
    grid.add_column()
    is_correct = row.answer == row.expected
    text = " ".join(row.text.split())
    answer = Text(row.answer, style="bold")
    if row.probability is not None:
        text = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
        answer.append(f"  {100 * row.probability:.1f} %", style="dim not bold")
    grid.add_row(Text(f"{row.number:,}", style="dim"), Text(text))
    grid.add_row("→", answer)
    grid.add_row("✓" if is_correct else "=", Text("" if is_correct else row.expected, style="dim"))
    return grid


def _show_labels(section: LabelTable, console: Console) -> None:
    rows = section.rows
    shown = sorted(rows, key=lambda row: row.f1)[:_MAX_ROWS] if len(rows) > _MAX_ROWS else rows
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column(_("label"))
    for title in (_("precision"), _("recall"), "F1", _("support")):
        table.add_column(title, justify="right")
    for row in shown:
        figures = [f"{figure:.1f}" for figure in (row.precision, row.recall, row.f1)]
        table.add_row(Text(_label_name(row.label)), *figures, f"{row.support:,}")
    console.print(Text(_("Labels"), style="bold"))
    console.print(table)
    if len(shown) < len(rows):
        line = _(
            "  The {n_shown} labels with the lowest F1 of {n_rows}; --json lists all.",
            n_shown=len(shown),
            n_rows=len(rows),
        )
        console.print(line, style="dim", markup=False)
    console.print()


def _show_confusion(confusion: Confusion, console: Console) -> None:
    """Print the matrix if it fits into the terminal, otherwise the most frequent confusions."""
    if not any(map(any, confusion.counts)):
        return
    if len(confusion.labels) > _MAX_MATRIX:
        legend = _("most frequent, correct → predicted")
        table = _frequent_confusions(confusion)
    else:
        legend = _("rows: correct, columns: predicted")
        table = _matrix_for(confusion, console)
    console.print(Text(_("Confusion"), style="bold").append(f"  {legend}", style="dim not bold"))
    console.print(table)
    if NO_LABEL in confusion.labels:
        console.print(_("  {sign}: none", sign=NO_LABEL), style="dim")
    console.print()


def _matrix_for(confusion: Confusion, console: Console) -> Table:
    """Return the matrix; its columns are numbered if their names do not fit."""
    names = [_label_name(label) for label in confusion.labels]
    table = _matrix(names, names, confusion)
    options = console.options.update(width=_UNLIMITED_WIDTH)
    if Measurement.get(console, options, table).maximum <= console.width:
        return table
    numbers = [str(number) for number in range(1, len(names) + 1)]
    numbered = [f"{number} {name}" for number, name in zip(numbers, names, strict=True)]
    return _matrix(numbered, numbers, confusion)


def _matrix(rows: Sequence[str], columns: Sequence[str], confusion: Confusion) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column("", no_wrap=True)
    for name in columns:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for row, (name, counts) in enumerate(zip(rows, confusion.counts, strict=True)):
        cells = [
            Text(f"{count:,}" if count else "·", style="dim" if not count else "green" if column == row else "red")
            for column, count in enumerate(counts)
        ]
        table.add_row(Text(name), *cells)
    return table


def _frequent_confusions(confusion: Confusion) -> Table:
    confusions = [
        (count, count / sum(counts), confusion.labels[row], confusion.labels[column])
        for row, counts in enumerate(confusion.counts)
        for column, count in enumerate(counts)
        if count and row != column
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", min_width=7)
    for count, share, gold, predicted in sorted(confusions, key=lambda confused: -confused[0])[:_MAX_ROWS]:
        pair = Text(f"{_label_name(gold)} → ").append(_label_name(predicted), style="bold")
        table.add_row(f"{count:,}", pair, Text(f"{100 * share:.1f} %", style="dim"))
    return table


def _label_name(label: str) -> str:
    """Return the displayed label; spans of a single kind have none."""
    return label or _("span")


def _show_comparison(name: str, section: Comparison, console: Console) -> None:
    title = _("{set_name}: compared with {other}", set_name=set_title(name), other=section.other)
    console.print(f"\n{title}", style="bold", markup=False)
    for difference in section.differences:
        for line in difference_lines(difference):
            console.print(line)


def difference_lines(found: Difference) -> tuple[Text, Text]:
    """Return a difference with its interval, and whether it is significant."""
    verdict, style = _("no clear difference"), "yellow"
    if max(found.p_bootstrap, found.p_randomization) < _SIGNIFICANT:
        better, worse = (_("better"), "green"), (_("worse"), "red")
        verdict, style = better if found.difference > 0 else worse
    line = Text(_("  {name}  {value:.1f} against {other:.1f}: ", name=found.name, value=found.value, other=found.other))
    line.append(" ".join(format_change(found.difference, found.low, found.high)).strip(), style="bold")
    p_values = _(
        "p = {bootstrap} bootstrap, {randomization} randomization",
        bootstrap=_format_p(found.p_bootstrap),
        randomization=_format_p(found.p_randomization),
    )
    return line, Text(f"    {verdict}", style=style).append(f"  {p_values}", style="dim")


def _format_p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
