"""What scores look like in a terminal: the table, what went wrong, two systems compared, examples."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyheads.metrics import Difference, Example, Score, Scorecard
from manyheads.tasks import Card

_SET_NAMES = {"test": "held-out test", "compositional": "unseen combinations", "valid": "valid"}
_LOWER_IS_BETTER = {"TER": "TER (lower is better · 越低越好)"}
_CLEAR = 0.05


def show_scores(scores: Mapping[str, Sequence[Score]], console: Console) -> None:
    """The scorecard: a row a score, a column a test set, and the signatures that make the figures checkable."""
    table = _start_table(scores)
    _add_scores(table, scores)
    console.print(table)
    _show_signatures(scores, console)


def show_cards(cards: Mapping[str, Scorecard], console: Console) -> None:
    """The long scorecard: scores, and below them what went wrong how often."""
    scores = {name: card.scores for name, card in cards.items()}
    table = _start_table(cards)
    _add_scores(table, scores)
    table.add_row()
    for label, cells in _facts(list(cards.values())).items():
        table.add_row(label, *cells)
    console.print(table)
    _show_signatures(scores, console)
    show_losses(list(cards.values()), console)


def show_card(name: str, card: Card, console: Console) -> None:
    """One scorecard, whatever the task."""
    show_scores({name: card.scores}, console)


def show_losses(cards: Sequence[Scorecard], console: Console) -> None:
    """What the scores had to swallow, if anything."""
    for count, one, more, fate in (
        (
            sum(card.n_cut_off for card in cards),
            "translation was",
            "translations were",
            "cut off at the maximum length",
        ),
        (sum(card.n_too_long for card in cards), "source is", "sources are", "too long for the model: failures"),
        (
            sum(card.n_empty_references for card in cards),
            "reference is",
            "references are",
            "empty: any answer is wrong",
        ),
    ):
        if count:
            console.print(f"  {count:,} {one if count == 1 else more} {fate}.", style="yellow")


def show_samples(samples: Sequence[Example], console: Console) -> None:
    """Translations of sentences never seen in training; a wrong one with what was expected."""
    for sample in samples:
        console.print(f"  {sample.source}", markup=False)
        console.print(f"  → {sample.translation}", markup=False, style="bold")
        if sample.translation != sample.reference:
            console.print(f"    expected: {sample.reference}", markup=False, style="dim")


def show_examples(examples: Sequence[Example], console: Console) -> None:
    """Sentences by their number in the test set: the source, what came out, and what should have."""
    for example in examples:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(justify="right", min_width=7)
        grid.add_column()
        is_right = example.translation == example.reference
        grid.add_row(Text(f"{example.number:,}", style="dim"), Text(example.source))
        grid.add_row("→", Text(example.translation, style="bold"))
        grid.add_row("✓" if is_right else "=", Text("" if is_right else example.reference, style="dim"))
        console.print(grid)


def show_differences(differences: Sequence[Difference], console: Console) -> None:
    """How far ahead of another system, between which bounds, and whether that may be luck."""
    for one in differences:
        verdict, style = "no clear difference · 差异不显著", "yellow"
        if max(one.p_bootstrap, one.p_randomisation) < _CLEAR:
            verdict, style = ("better · 更好", "green") if one.difference > 0 else ("worse · 更差", "red")
        line = Text(f"  {one.name}  {one.value:.1f} against {one.other:.1f}: ")
        console.print(line.append(f"{one.difference:+.2f} [{one.low:+.2f}, {one.high:+.2f}]", style="bold"))
        told = f"  p = {_rounded(one.p_bootstrap)} bootstrap, {_rounded(one.p_randomisation)} randomisation"
        console.print(Text(f"    {verdict}", style=style).append(told, style="dim"))


def _rounded(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def set_title(name: str) -> str:
    """What a test set is called on screen."""
    return _SET_NAMES.get(name, name)


def _start_table(sets: Mapping[str, object]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True)
    table.add_column("")
    for name in sets:
        table.add_column(Text(set_title(name)))
    return table


def _add_scores(table: Table, scores: Mapping[str, Sequence[Score]]) -> None:
    for name in dict.fromkeys(score.name for row in scores.values() for score in row):
        found = [next((score for score in row if score.name == name), None) for row in scores.values()]
        cells = [f"{one.value:.1f} [{one.low:.1f}, {one.high:.1f}]" if one else "–" for one in found]
        table.add_row(_LOWER_IS_BETTER.get(name, name), *(Text(cell, style="bold") for cell in cells))


def _show_signatures(scores: Mapping[str, Sequence[Score]], console: Console) -> None:
    for signature in dict.fromkeys(f"{score.name} {score.signature}" for row in scores.values() for score in row):
        console.print(f"  {signature}", style="dim", markup=False, soft_wrap=True)  # to be copied whole


def _facts(cards: Sequence[Scorecard]) -> dict[str, list[str]]:
    def shares(counts: Sequence[int]) -> list[str]:
        return [
            f"{count:,}" + (f" ({100 * count / card.n_sentences:.1f} %)" if count else "")
            for count, card in zip(counts, cards, strict=True)
        ]

    return {
        "sentences · 句数": [f"{card.n_sentences:,}" for card in cards],
        "length to reference · 长度比": [f"{card.length_ratio:.2f}" for card in cards],
        "copies of the source · 照抄原文": shares([card.n_copies for card in cards]),
        "  where it is wrong · 其中有误": shares([card.n_wrong_copies for card in cards]),
        "repetitions · 重复": shares([card.n_repetitions for card in cards]),
        "empty · 空译文": shares([card.n_empty for card in cards]),
        "cut off · 被截断": shares([card.n_cut_off for card in cards]),
        "source too long · 原文过长": shares([card.n_too_long for card in cards]),
        "empty reference · 空参考译文": shares([card.n_empty_references for card in cards]),
    }
