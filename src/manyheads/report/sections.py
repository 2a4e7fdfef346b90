"""The parts of the page below the curves: data, samples over time, scorecards, recipe."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from manyheads.metrics import format_score
from manyheads.report.history import History, Sample, Validation, as_samples, number
from manyheads.report.label_sections import confusion_figure, label_table
from manyheads.report.markup import both, compared, duration, figure, sentence, text, titled
from manyheads.report.page_text import PageText, display_name

_ROWS = 12  # validations of one sentence that are shown
_SENTENCES = 5
_EXAMPLES = 20
_UNBOUNDED = ("nats", "bits", "perplexity")  # figures that are no shares of a hundred


def section(name: str, english: str, chinese: str, body: str, note: str = "") -> str:
    """A section of the page under a heading; nothing if there is nothing in it."""
    heading = f'<h2 id="{name}">{both(english, chinese)}</h2>'
    return f'<section aria-labelledby="{name}">{heading}{note}{body}</section>' if body else ""


def funnel(prepared: Mapping[str, Any]) -> str:
    """From the pairs that were read, over those left out, to those that are trained on."""
    kept = n_rows(prepared)
    given = prepared.get("dropped")
    reasons = {name: number(count) for name, count in given.items()} if isinstance(given, Mapping) else {}
    reasons = {name: count for name, count in reasons.items() if count > 0}
    read = kept + sum(reasons.values())
    if not read > 0:
        return ""
    rows = [_bar(both("read", "读入"), read, read, 0, "read")]
    left = read
    for name, count in reasons.items():
        left -= count
        rows.append(_bar(both(*map(text, display_name(name))), count, read, left, "out"))
    rows.append(_bar(both("kept", "保留"), kept, read, 0, "kept"))
    return f'<table class="funnel"><tbody>{"".join(rows)}</tbody></table>'


def n_rows(prepared: Mapping[str, Any]) -> float:
    """How many rows are trained on; older logs know pairs only."""
    return number(prepared.get("n_rows", prepared.get("n_pairs")))


def _bar(name: str, count: float, whole: float, before: float, kind: str) -> str:
    share = f"{100 * count / whole:.1f} %" if count / whole >= 0.001 else "&lt;0.1 %"
    sign = "−" if kind == "out" else ""
    bar = f'<div class="{kind}" style="margin-left:{100 * before / whole:.3f}%;width:{100 * count / whole:.3f}%"></div>'
    return (
        f'<tr><th scope="row">{name}</th><td class="bar" aria-hidden="true">{bar}</td>'
        f'<td class="number">{sign}{count:,.0f}</td><td class="number faint">{share}</td></tr>'
    )


def samples_over_time(validations: Sequence[Validation], words: PageText) -> str:
    """How the answers to a few valid texts changed from one validation to the next."""
    tracked: dict[tuple[str, str], list[tuple[Validation, str]]] = {}
    for validation in validations:
        for source, translation, reference in validation.samples:
            tracked.setdefault((source, reference), []).append((validation, translation))
    if tracked:
        return "".join(_tracked(*key, told, words) for key, told in list(tracked.items())[:_SENTENCES])
    seen = [(one, one.sample) for one in validations if one.sample]
    return "".join(
        f'<article class="sample">{sentence(source, "source")}<table><tbody>{_told(one, translation, reference)}'
        f"</tbody></table>{_expected(reference, words)}</article>"
        for one, (source, translation, reference) in reversed(seen[-_ROWS:])
    )


def _tracked(source: str, reference: str, told: Sequence[tuple[Validation, str]], words: PageText) -> str:
    changed = [one for i, one in enumerate(told) if i == 0 or one[1] != told[i - 1][1]]
    if len(changed) > _ROWS:  # the first, the last, and some between
        changed = [changed[round(i * (len(changed) - 1) / (_ROWS - 1))] for i in range(_ROWS)]
    rows = "".join(_told(validation, translation, reference) for validation, translation in changed)
    return (
        f'<article class="sample">{sentence(source, "source")}<table><tbody>{rows}</tbody></table>'
        f"{_expected(reference, words)}</article>"
    )


def _told(validation: Validation, translation: str, reference: str) -> str:
    step = f"{validation.step:,.0f}"
    return f'<tr><th scope="row">{step}</th><td>{compared(translation, reference)}</td></tr>'


def _expected(reference: str, words: PageText) -> str:
    label = f'<span class="label">{both(*words.reference)}</span>'
    return f'<div class="expected">{label}{sentence(reference, "reference")}</div>'


def cards_of(finished: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The scorecard of each test set, of whichever version the log is."""
    cards = finished.get("cards")
    if isinstance(cards, Mapping):
        return {str(name): card for name, card in cards.items() if isinstance(card, Mapping)}
    scores = finished.get("scores")
    return {str(name): {"scores": row} for name, row in scores.items()} if isinstance(scores, Mapping) else {}


def scores_of(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The figures of a scorecard that have a name and a value."""
    rows = card.get("scores")
    rows = rows if isinstance(rows, list | tuple) else []
    return [
        row for row in rows if isinstance(row, Mapping) and "name" in row and math.isfinite(number(row.get("value")))
    ]


def interval(score: Mapping[str, Any]) -> str:
    """The interval of a figure, if it has one."""
    name, low, high = str(score["name"]), number(score.get("low")), number(score.get("high"))
    return f"[{format_score(name, low)}, {format_score(name, high)}]" if math.isfinite(low + high) else ""


def scorecards(finished: Mapping[str, Any], words: PageText) -> str:
    """Every test set with its figures, what was counted, and examples."""
    parts = [_card(name, card, words) for name, card in cards_of(finished).items()]
    if "cards" not in finished:  # what older logs tell of all sets together
        rest = {name: value for name, value in finished.items() if name.startswith("n_")}
        parts.append(_facts(rest) + _examples("samples", as_samples(finished.get("samples")), words))
    return "".join(parts)


def _card(name: str, card: Mapping[str, Any], words: PageText) -> str:
    rows = "".join(_score_row(score) for score in scores_of(card))
    table = f'<table class="scores"><tbody>{rows}</tbody></table>' if rows else ""
    labels = label_table(card) + confusion_figure(card)
    examples = "".join(_examples(key, as_samples(value), words) for key, value in card.items())
    heading = f"<h3>{both(*map(text, display_name(name)))}</h3>"
    return f'<article class="card">{heading}{table}{_facts(card)}{labels}{examples}</article>'


def _score_row(score: Mapping[str, Any]) -> str:
    value, low, high = (number(score.get(key)) for key in ("value", "low", "high"))
    picture = ""
    if math.isfinite(low + high) and not str(score["name"]).startswith(_UNBOUNDED):
        left, width, at = (max(0.0, min(100.0, x)) for x in (low, high - low, value))
        picture = (
            f'<svg class="interval" height="12" aria-hidden="true"><line x1="0" x2="100%" y1="6" y2="6"/>'
            f'<rect x="{left:.2f}%" width="{width:.2f}%" y="2" height="8"/>'
            f'<circle cx="{at:.2f}%" cy="6" r="3.5"/></svg>'
        )
    return (
        f'<tr><th scope="row">{titled(score["name"])}</th>'
        f'<td class="number"><b>{format_score(str(score["name"]), value)}</b></td>'
        f'<td class="number faint">{interval(score)}</td><td class="picture">{picture}</td></tr>'
    )


def _facts(card: Mapping[str, Any]) -> str:
    items = "".join(
        f"<div><dt>{both(*map(text, display_name(name)))}</dt><dd>{_fact(value)}</dd></div>"
        for name, value in _flat(card)
    )
    return f'<dl class="facts">{items}</dl>' if items else ""


def _flat(card: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in card.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        elif isinstance(value, str | int | float):
            yield str(name), value


def _fact(value: object) -> str:
    if isinstance(value, float):
        return figure(value, 3)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text(value)


def _examples(name: str, examples: Sequence[Sample], words: PageText) -> str:
    if not examples:
        return ""
    shown = "".join(
        f"<li>{sentence(source, 'source')}{compared(translation, reference)}"
        f"{_expected(reference, words) if translation != reference else ''}</li>"
        for source, translation, reference in examples[:_EXAMPLES]
    )
    english, chinese = map(text, display_name(name))
    count = min(len(examples), _EXAMPLES)
    summary = both(f"{words.answers[0]}: {english} ({count})", f"{words.answers[1]}：{chinese}（{count}）")
    return f'<details class="examples"><summary>{summary}</summary><ol>{shown}</ol></details>'


def signatures(finished: Mapping[str, Any]) -> str:
    """What makes the figures checkable, each once."""
    told = [
        (str(score["name"]), str(score["signature"]))
        for card in cards_of(finished).values()
        for score in scores_of(card)
        if score.get("signature")
    ]
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(one)}</dd></div>" for name, one in dict.fromkeys(told))
    return f'<dl class="signatures">{rows}</dl>' if rows else ""


def summary(history: History) -> str:
    """The run in a line of figures: model, text, time."""
    prepared = history.prepared
    facts = []
    rows, vocab_size = n_rows(prepared), number(prepared.get("vocab_size"))
    if math.isfinite(rows):
        english, chinese = map(text, display_name(str(prepared.get("noun", "sentence pairs"))))
        facts.append(both(f"{rows:,.0f} {english}", f"{rows:,.0f} {chinese}"))
    if math.isfinite(vocab_size):
        facts.append(both(f"{vocab_size:,.0f} tokens", f"词表 {vocab_size:,.0f}"))
    if prepared.get("device"):
        facts.append(both(f"on {text(prepared['device'])}", f"设备 {text(prepared['device'])}"))
    if len(history.steps):
        english, chinese = duration(60 * history.minutes)
        facts.append(both(f"{english} of training", f"训练 {chinese}"))
        tokens = history.steps.tokens[-1]
        seen = f"{tokens / 1e6:,.1f} M" if tokens >= 1e6 else f"{tokens:,.0f}"
        facts.append(both(f"{seen} tokens seen", f"已读 {seen} 词元"))
    return " · ".join(facts)
