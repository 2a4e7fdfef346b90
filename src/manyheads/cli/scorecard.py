"""What scores look like in a terminal: the table, what went wrong, two systems compared, examples."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyheads.cli.card_parts import show_confusion, show_counts, show_mistakes, show_rows, show_sentences
from manyheads.metrics import (
    Difference,
    Example,
    GenerationSample,
    LabelCard,
    LanguageCard,
    Score,
    SpanCard,
    TranslationCard,
    format_score,
    lower_is_better,
)
from manyheads.report.page_text import display_name
from manyheads.tasks import Card

_SET_NAMES = {"test": "held-out test", "compositional": "unseen combinations", "valid": "valid"}
_CLEAR = 0.05


def show_scores(scores: Mapping[str, Sequence[Score]], console: Console) -> None:
    """The scorecard: a row a score, a column a test set, and the signatures that make the figures checkable."""
    table = _start_table(scores)
    _add_scores(table, scores)
    console.print(table)
    _show_signatures(scores, console)


def show_cards(cards: Mapping[str, TranslationCard], console: Console) -> None:
    """The long scorecard: scores, and below them what went wrong how often."""
    scores = {name: card.scores for name, card in cards.items()}
    table = _start_table(cards)
    _add_scores(table, scores)
    table.add_row()
    for label, cells in _counts(list(cards.values())).items():
        table.add_row(label, *cells)
    console.print(table)
    _show_signatures(scores, console)
    show_failures(list(cards.values()), console)


def show_card(name: str, card: Card, console: Console) -> None:
    """One scorecard, whatever the task: what went wrong first, the figures last, where the eye is."""
    if isinstance(card, TranslationCard):
        show_cards({name: card}, console)
        return
    if isinstance(card, LabelCard):
        _show_labels(name, card, console)
    elif isinstance(card, SpanCard):
        _show_spans(name, card, console)
    elif isinstance(card, LanguageCard):
        _show_language(name, card, console)
    console.print("Score · 得分", style="bold")
    show_scores({name: card.scores}, console)


def _show_labels(name: str, card: LabelCard, console: Console) -> None:
    if card.worst:
        title = f"{set_title(name)}: the most confident mistakes · 最自信的错误 ({len(card.worst)})"
        show_mistakes(title, card.worst, console)
    if card.confusion:
        show_confusion(card.confusion, console)
    show_rows(card.rows, console)
    abstained = {"left open · 未作答": card.n_abstained} if card.n_abstained else {}
    show_counts({"texts · 文本数": card.n_texts, **abstained}, console)
    _warn_of_unknown_labels(card.n_unknown, "texts", console)


def _show_spans(name: str, card: SpanCard, console: Console) -> None:
    if card.worst:
        title = f"{set_title(name)}: sentences with the most wrong spans · 错误最多的句子 ({len(card.worst)})"
        show_sentences(title, card.worst, console)
    show_confusion(card.confusion, console)
    show_rows(card.rows, console)
    counts = {
        "sentences · 句数": card.n_texts,
        "spans · 片段数": card.n_spans,
        "predicted · 预测片段数": card.n_predicted,
    }
    show_counts(counts, console)
    _warn_of_unknown_labels(card.n_unknown, "spans", console)


def _warn_of_unknown_labels(count: int, what: str, console: Console) -> None:
    if count:
        told = "has a label" if count == 1 else "have labels"
        line = f"  {count:,} of the {what} {told} never seen in training: no answer could be right."
        console.print(line, style="yellow")


def _show_language(name: str, card: LanguageCard, console: Console) -> None:
    if card.samples:
        console.print(f"{set_title(name)}: samples · 生成样例", style="bold", markup=False)
        show_generations(card.samples, console)
    counts = {
        "tokens · 子词数": card.n_tokens,
        "characters · 字符数": card.n_characters,
        "words · 词数": card.n_words,
        "bytes · 字节数": card.n_bytes,
    }
    show_counts(counts, console)


def show_generations(samples: Sequence[GenerationSample], console: Console) -> None:
    """Beginnings, and how the model went on."""
    for sample in samples:
        console.print(Text("  ").append(sample.prompt, style="dim").append(sample.text, style="bold"))
    console.print()


def show_failures(cards: Sequence[TranslationCard], console: Console) -> None:
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
        if max(one.p_bootstrap, one.p_randomization) < _CLEAR:
            verdict, style = ("better · 更好", "green") if one.difference > 0 else ("worse · 更差", "red")
        line = Text(f"  {one.name}  {one.value:.1f} against {one.other:.1f}: ")
        console.print(line.append(f"{one.difference:+.2f} [{one.low:+.2f}, {one.high:+.2f}]", style="bold"))
        told = f"  p = {_rounded(one.p_bootstrap)} bootstrap, {_rounded(one.p_randomization)} randomization"
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
        cells = [_figure(one) if one else "–" for one in found]
        table.add_row(score_title(name), *(Text(cell, style="bold") for cell in cells))


def _figure(score: Score) -> str:
    value, low, high = (format_score(score.name, x) for x in (score.value, score.low, score.high))
    return f"{value} [{low}, {high}]"


def score_title(name: str) -> str:
    """What a score is called on screen, and which way is better where that is not upwards."""
    english, chinese = display_name(name)
    title = english if english == chinese else f"{english} · {chinese}"
    return f"{title} (lower is better · 越低越好)" if lower_is_better(name) else title


def _show_signatures(scores: Mapping[str, Sequence[Score]], console: Console) -> None:
    for signature in dict.fromkeys(f"{score.name} {score.signature}" for row in scores.values() for score in row):
        console.print(f"  {signature}", style="dim", markup=False, soft_wrap=True)  # to be copied whole


def _counts(cards: Sequence[TranslationCard]) -> dict[str, list[str]]:
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
