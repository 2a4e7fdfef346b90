"""The whole page: values from the recipe and the log, rendered by the templates of this package."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from manyheads.bounded_files import BoundsError, parse_toml
from manyheads.messages import Message, PluralMessage
from manyheads.metrics import (
    Confusion,
    Examples,
    LabelTable,
    Note,
    Section,
    count_rows,
    display_name,
    format_score,
    loss_name,
    read_sections,
    rows_name,
    score_notes,
)
from manyheads.report.confusion_matrix import confusion_svg
from manyheads.report.curves import curves_json
from manyheads.report.history import History, Sample, Validation, read_number

_RELOAD = 20  # seconds, while the run is in progress
_MAX_SAMPLES = 5  # texts whose answers are shown over time
_MAX_CHANGES = 12  # answers shown of one text
_MAX_EXAMPLES = 20
_MAX_LABELS = 40
_UNBOUNDED = ("nats", "bits", "perplexity")  # scores that are not percentages

_MIN_SPACES = 1 / 15  # per character; languages written with spaces have more
_LONGEST = 600  # characters of an answer that are compared


def render_page(name: str, recipe: str, history: History, now: float) -> str:
    """Return the page of a run with this name, made at a time in seconds since 1970."""
    table = _parse_recipe(recipe)
    is_over = history.state in ("finished", "interrupted")
    n_steps = _n_steps(table)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            reload=None if is_over else _RELOAD,
            made=f"{now:.0f}",
            title=f"{_short_progress(history, n_steps)} · {name}",
            style=Markup(_asset("base.css") + _asset("page.css")),
            script=Markup(_asset("page.js")),
            data=Markup(curves_json(history)),
            name=name,
            languages=_languages(table),
            n_parameters=_finite(history.prepared.get("n_parameters")),
            status=_status(history, n_steps),
            progress=min(100.0, 100 * history.step / n_steps) if n_steps and history.state != "finished" else None,
            summary=list(_summary(history)),
            headlines=_headlines(history),
            curves=_curves(history),
            metric=display_name(history.validations[-1].metric) if history.validations else None,
            funnel=_funnel(history.prepared),
            valid_rows=_valid_rows(history.prepared),
            samples=_samples_over_time(history.validations),
            cards=[_card(set_name, record) for set_name, record in _records(history.finished).items()],
            signatures=_signatures(history.finished),
            recipe=recipe.strip(),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("manyheads.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["parts"] = compare_texts
    environment.filters["figure"] = format_number
    environment.globals["Message"] = Message
    return environment


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _curves(history: History) -> list[tuple[str, Message, bool]]:
    """Return the name and title of each curve, and whether it is drawn large; the titles say what is averaged."""
    unit, terms = history.prepared.get("loss_unit"), history.prepared.get("loss_terms")
    weights = {str(name): read_number(weight) for name, weight in terms.items()} if isinstance(terms, Mapping) else {}
    loss = loss_name(str(unit or "tok"), weights)
    curves = [
        ("loss", Message("Training loss, {loss}", loss=loss), True),
        ("score", Message("Validation"), True),
        ("rate", Message("Learning rate"), False),
        ("norm", Message("Gradient norm"), False),
        ("speed", _speed_name(str(unit or "tok")), False),
    ]
    return [curve for curve in curves if curve[0] != "score" or history.validations]


def _speed_name(unit: str) -> Message:
    return {
        "tok": Message("Tokens per second"),
        "texts": Message("Texts per second"),
        "words": Message("Words per second"),
        "masked": Message("Masked tokens per second"),
    }.get(unit) or Message("{unit} per second", unit=unit)


def _parse_recipe(recipe: str) -> dict[str, Any]:
    try:
        return parse_toml(recipe.encode())
    except BoundsError:
        return {}


def _setting(table: Mapping[str, Any], section: str, key: str) -> object:
    value = table.get(section)
    return value.get(key) if isinstance(value, Mapping) else None


def _n_steps(table: Mapping[str, Any]) -> int:
    return int(_finite(_setting(table, "train", "steps")) or 0)


def _finite(value: object) -> float | None:
    return read_number(value) if math.isfinite(read_number(value)) else None


def _short_progress(history: History, n_steps: int) -> str:
    """Return the progress, short enough for the title of a browser tab."""
    if history.state in ("finished", "interrupted"):
        return {"finished": "✓", "interrupted": "‖"}[history.state]
    return f"{100 * history.step // max(1, n_steps, history.step)} %"


def _languages(table: Mapping[str, Any]) -> tuple[str, str] | None:
    source, target = (str(_setting(table, "task", f"{side}_language") or "") for side in ("source", "target"))
    if not (source and target):
        source, _, target = str(_setting(table, "data", "builtin") or "").partition("-")
    return (source, target) if source and target else None


def _status(history: History, n_steps: int) -> Message:
    step, total = f"{history.step:,}", f"{max(n_steps, history.step):,}"
    if history.state == "finished":
        return Message("Finished after step {step}", step=step)
    if history.state == "interrupted":
        return Message("Interrupted at step {step} of {total}; can be resumed", step=step, total=total)
    if history.state == "stage":
        return Message("In progress: {stage}", stage=history.stage)
    if history.state == "starting":
        return Message("Starting")
    left = format_duration(history.seconds_left(n_steps))
    return Message("Training, step {step} of {total}, {left} left", step=step, total=total, left=left)


def _summary(history: History) -> Iterator[Message]:
    """Yield the size of data and vocabulary, the device, the training time."""
    prepared = history.prepared
    n_rows, vocab_size = _finite(prepared.get("n_rows")), _finite(prepared.get("vocab_size"))
    if n_rows is not None:
        yield count_rows(str(prepared.get("noun", "sentence pairs")), int(n_rows))
    if vocab_size is not None:
        yield Message("{vocab_size:,} tokens", vocab_size=int(vocab_size))
    if prepared.get("device"):
        yield Message("on {device}", device=prepared["device"])
    if n_threads := _finite(prepared.get("n_threads")):
        yield PluralMessage("1 thread", "{n} threads", int(n_threads))
    if len(history.steps):
        yield Message("{time} of training", time=format_duration(60 * history.minutes))
        n_tokens = history.steps.tokens[-1]
        count = f"{n_tokens / 1e6:,.1f} M" if n_tokens >= 1e6 else f"{n_tokens:,.0f}"
        yield _read_name(str(prepared.get("loss_unit") or "tok"), count)
    if history.decoding_choice:
        yield history.decoding_choice


def _read_name(unit: str, count: str) -> Message:
    return {
        "tok": Message("{count} tokens read", count=count),
        "texts": Message("{count} texts read", count=count),
        "words": Message("{count} words read", count=count),
        "masked": Message("{count} masked tokens read", count=count),
    }.get(unit) or Message("{count} {unit} read", count=count, unit=unit)


@dataclass(frozen=True)
class _ScoreView:
    """A score as the page shows it."""

    name: Message
    value: str
    interval: str  # with the number of texts; "" if there is none
    bar: tuple[float, float, float] | None  # left, width and value of a percentage, from 0 to 100


def _score_views(record: Mapping[str, Any]) -> list[_ScoreView]:
    return [_score_view(score) for score in _scores(record)]


def _score_view(score: Mapping[str, Any]) -> _ScoreView:
    name = str(score["name"])
    value, low, high = (read_number(score.get(key)) for key in ("value", "low", "high"))
    has_interval = math.isfinite(low + high)
    bar = None
    if has_interval and not name.startswith(_UNBOUNDED):
        left, width, center = (max(0.0, min(100.0, x)) for x in (low, high - low, value))
        bar = (left, width, center)
    interval = f"[{format_score(name, low)}, {format_score(name, high)}]" if has_interval else ""
    n = _finite(score.get("n"))
    interval += f" n = {n:,.0f}" if has_interval and n is not None else ""
    return _ScoreView(display_name(name), format_score(name, value), interval, bar)


def _records(finished: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the record of the scorecard of each test set."""
    cards = finished.get("cards")
    if not isinstance(cards, Mapping):
        return {}
    return {str(name): card for name, card in cards.items() if isinstance(card, Mapping)}


def _scores(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scores of a card that have a name and a value."""
    rows = record.get("scores")
    rows = rows if isinstance(rows, list | tuple) else []
    return [row for row in rows if isinstance(row, Mapping) and "name" in row and _finite(row.get("value")) is not None]


def _headlines(history: History) -> list[tuple[Message, list[_ScoreView]]]:
    """Return the scores of the test sets or, before the end, the best validation."""
    groups = [
        (_headline_title(name, record), _score_views(record)) for name, record in _records(history.finished).items()
    ]
    best = history.best
    if not groups and best:
        title = Message("validation, best so far: step {step:,.0f}", step=best.step)
        groups = [(title, [_score_view({"name": best.metric, "value": best.score})])]
    return [group for group in groups if group[1]]


def _headline_title(name: str, record: Mapping[str, Any]) -> Message:
    """Return the name of a test set, marked if the run used it for something else, too."""
    title = display_name(name)
    if any(score.get("used_for") for score in _scores(record)):
        return Message("{set_name}: optimistic, see below", set_name=title)
    return title


@dataclass(frozen=True)
class _Bar:
    """One bar of the funnel, in percent of the rows read."""

    kind: str  # read, out or kept
    name: Message
    count: float
    left: float
    width: float


def _funnel(prepared: Mapping[str, Any]) -> list[_Bar]:
    """Return bars from the rows read, over those dropped, to those kept for training."""
    kept, reasons = read_number(prepared.get("n_rows")), _reasons(prepared.get("dropped"))
    total = kept + sum(reasons.values())
    if not total > 0:
        return []
    bars = [_Bar("read", Message("read"), total, 0.0, 100.0)]
    left = total
    for name, count in reasons.items():
        left -= count
        bars.append(_Bar("out", display_name(name), count, 100 * left / total, 100 * count / total))
    return [*bars, _Bar("kept", Message("kept"), kept, 0.0, 100 * kept / total)]


def _valid_rows(prepared: Mapping[str, Any]) -> Message | None:
    """Return how many rows are validated on, if some are not."""
    kept, reasons = read_number(prepared.get("n_valid")), _reasons(prepared.get("valid_dropped"))
    if not (math.isfinite(kept) and reasons):
        return None
    return rows_name(str(prepared.get("noun")), int(kept), {name: int(count) for name, count in reasons.items()})


def _reasons(dropped: object) -> dict[str, float]:
    """Return the number of rows for each reason of which there are some."""
    counts = {str(name): read_number(count) for name, count in dropped.items()} if isinstance(dropped, Mapping) else {}
    return {name: count for name, count in counts.items() if 0 < count < math.inf}


@dataclass(frozen=True)
class _Tracked:
    """A text of the validation set and its answers over time."""

    text: str
    answers: Sequence[tuple[float, str]]  # step, answer
    expected: str


def _samples_over_time(validations: Sequence[Validation]) -> list[_Tracked]:
    """Return how the answers to some texts changed, or, if none was tracked, the newest samples."""
    tracked: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for validation in validations:
        for text, answer, expected in validation.samples:
            tracked.setdefault((text, expected), []).append((validation.step, answer))
    if tracked:
        return [
            _Tracked(text, _changes(answers), expected)
            for (text, expected), answers in list(tracked.items())[:_MAX_SAMPLES]
        ]
    newest: list[tuple[float, Sample]] = [(found.step, found.sample) for found in validations if found.sample]
    return [
        _Tracked(text, [(step, answer)], expected)
        for step, (text, answer, expected) in newest[: -_MAX_CHANGES - 1 : -1]
    ]


def _changes(answers: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the answers that differ from the one before: the first, the last and some between."""
    changed = [answer for i, answer in enumerate(answers) if i == 0 or answer[1] != answers[i - 1][1]]
    if len(changed) > _MAX_CHANGES:
        changed = [changed[round(i * (len(changed) - 1) / (_MAX_CHANGES - 1))] for i in range(_MAX_CHANGES)]
    return changed


def _card(name: str, record: Mapping[str, Any]) -> dict[str, object]:
    sections = [(type(section).__name__, _trim(section)) for section in [*_notes(record), *read_sections(record)]]
    return {"title": display_name(name), "scores": _score_views(record), "sections": sections}


def _notes(record: Mapping[str, Any]) -> list[Note]:
    """Return what the reader should know about the scores of a card: few texts, a set that was used otherwise."""
    first = next(iter(_scores(record)), {})
    n, used_for = _finite(first.get("n")), first.get("used_for")
    used_for = list(map(str, used_for)) if isinstance(used_for, list | tuple) else []
    return list(map(Note, score_notes(None if n is None else int(n), used_for)))


def _trim(section: Section) -> object:
    """Return what the template shows of a section: at most so many rows, the confusion matrix as a picture."""
    if isinstance(section, LabelTable):
        rows = sorted(section.rows, key=lambda row: row.f1)
        return {"rows": rows[:_MAX_LABELS], "n_labels": len(rows)}
    if isinstance(section, Examples):
        return Examples(section.title, section.rows[:_MAX_EXAMPLES])
    if isinstance(section, Confusion):
        return Markup(confusion_svg(section, is_bilingual=True))  # labels are escaped there
    return section


def _signatures(finished: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        (str(score["name"]), str(score["signature"]))
        for record in _records(finished).values()
        for score in _scores(record)
        if score.get("signature")
    ]
    return list(dict.fromkeys(pairs))


def format_duration(seconds: float) -> Message:
    """Return a duration; a dash if it is not known."""
    if not math.isfinite(seconds):
        return Message("{sign}", sign="–")
    if seconds < 90:
        return Message("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return Message("{minutes} min", minutes=minutes)
    hours, minutes = divmod(minutes, 60)
    return Message("{hours} h {minutes:02d} min", hours=hours, minutes=minutes)


def format_number(value: float) -> str:
    """Return a number with thousands separators; fractions with three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def compare_texts(answer: str, expected: str) -> list[tuple[str, bool]]:
    """Split an answer into parts, each with whether the expected answer lacks it."""
    ours, theirs = (_split(text[:_LONGEST]) for text in (answer, expected))
    parts: list[tuple[str, bool]] = []
    position = 0
    matcher = SequenceMatcher(None, [part.strip() for part in ours], [part.strip() for part in theirs], autojunk=False)
    for block in matcher.get_matching_blocks():
        other = "".join(ours[position : block.a])
        marked = other.rstrip()
        parts += [(marked, True), (other[len(marked) :], False)]
        parts.append(("".join(ours[block.a : block.a + block.size]), False))
        position = block.a + block.size
    parts.append((answer[_LONGEST:], False))
    return [part for part in parts if part[0]]


def _split(text: str) -> list[str]:
    """Return words, each with the space after it; characters of a language written without spaces."""
    if not text.isascii() and text.strip().count(" ") < len(text) * _MIN_SPACES:
        return list(text)
    return [word + " " for word in text.split(" ")[:-1]] + text.split(" ")[-1:]
