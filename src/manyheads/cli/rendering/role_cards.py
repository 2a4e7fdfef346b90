"""`manyheads heads show` and `timeline`: role cards and timelines as tables or JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyheads.bundle import Bundle, load
from manyheads.cli.rendering.output import open_output
from manyheads.cli.rendering.progress import make_console
from manyheads.lens.pictures.role_pictures import draw_heads, draw_timeline
from manyheads.lens.roles.role_assignment import UNKNOWN, HeadReport, RoleCard, as_displayed, make_report
from manyheads.lens.roles.role_names import role_color, role_name
from manyheads.lens.roles.similarity import Similarity, compare_heads
from manyheads.lens.roles.timeline import iterate_timeline
from manyheads.lens.traces.encoded_examples import encode_examples, require_known_script
from manyheads.lens.traces.examples import read_examples, read_gold, sample_examples, with_targets
from manyheads.messages import _, _n
from manyheads.tasks.lens_examples import Example

_N_NAMED = 16
_N_UNKNOWN = 8
_WIDTH = 100  # of the table in a log or a pipe


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """The options of `heads show`."""

    gold: tuple[Path, ...]
    text: tuple[Path, ...]
    lowercase: bool
    sample: int
    svg: Path | None
    show_all: bool
    as_json: bool


def show_roles(path: Path, options: CardOptions) -> None:
    """Show the role cards of a bundle."""
    console = make_console(plain=False)
    bundle = load(path)
    with console.status("[dim]" + _("observing the heads …") if not options.as_json else ""):
        encoded_sample = encode_examples(bundle.task, _examples(bundle, options))
        if options.gold:
            require_known_script(encoded_sample, bundle.task.tokenizer, ", ".join(map(str, options.gold)))
        report = make_report(bundle.task.model, encoded_sample)
        similarities = compare_heads(bundle.task.model, encoded_sample.examples)
    if options.svg:
        _write(options.svg, draw_heads(report, similarities))
    if options.as_json:
        _print_json(path, options, report, similarities)
        return
    _show_report(report, console, show_all=options.show_all)
    if options.svg:
        console.print(_("  Picture: {path}", path=options.svg), markup=False)


def show_timeline(run: Path, n_texts: int, svg: Path | None, *, as_json: bool) -> None:
    """Show when the role of each head appeared in a run."""
    console = make_console(plain=False)
    entries = list(iterate_timeline(run, count=n_texts))
    if svg:
        _write(svg, draw_timeline(entries))
    if as_json:
        for entry in entries:
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
        return
    console.print(_("When roles appear"), style="bold")
    for head, role in entries[-1].roles.items():
        step = _since([entry.roles[head] for entry in entries], [entry.step for entry in entries])
        since = _("since step {step:,}", step=step)
        console.print(f"  {head:<18}{role_name(role)}, {since}", markup=False)
    n_snapshots, file = len(entries), run / "heads.jsonl"
    console.print(
        _(
            "  {n_snapshots} snapshots, {n_texts} texts; all statistics are in {file}.",
            n_snapshots=n_snapshots,
            n_texts=entries[-1].n_texts,
            file=file,
        ),
        markup=False,
    )


def _since(roles: Sequence[str], steps: Sequence[int]) -> int:
    """Return the step from which the last role was kept."""
    number = len(roles) - 1
    while number > 0 and roles[number - 1] == roles[-1]:
        number -= 1
    return steps[number]


def _examples(bundle: Bundle, options: CardOptions) -> list[Example]:
    examples: list[Example] = []
    if options.text:
        examples += read_examples(bundle.task, options.text, options.sample)
    if options.gold:
        examples += read_gold(bundle.task, options.gold, options.sample, lower=options.lowercase)
    if not options.text and not options.gold:
        examples = sample_examples(bundle, options.sample)
    return with_targets(bundle, examples)


def _write(path: Path, picture: str) -> None:
    with open_output(path) as stream:
        stream.write(picture)


def _print_json(path: Path, options: CardOptions, report: HeadReport, similarities: Sequence[Similarity]) -> None:
    payload: dict[str, Any] = {
        "bundle": str(path),
        "gold": [str(file) for file in options.gold],
        "text": [str(file) for file in options.text],
        **report.to_json(),
        "similarity": [
            {
                "kind": similarity.kind,
                "heads": similarity.heads,
                "n_texts": similarity.n_texts,
                "distances": [[round(float(cell), 4) for cell in row] for row in similarity.distances],
            }
            for similarity in similarities
        ],
    }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=1))


def _show_report(report: HeadReport, console: Console, *, show_all: bool) -> None:
    named = sorted((card for card in report.cards if card.roles), key=lambda card: -card.roles[0].excess)
    unknown = sorted(
        (card for card in report.cards if not card.roles), key=lambda card: card.statistics["confidence"].value
    )
    shown = [*named, *unknown]
    if not show_all and len(report.cards) > _N_NAMED + _N_UNKNOWN:
        shown = [*named[:_N_NAMED], *unknown[:_N_UNKNOWN]]
    console.print(_("Heads"), style="bold")
    if not console.is_terminal:
        console.width = _WIDTH
    console.print(_card_table(shown))
    legend = _("base: best baseline, or neighbors · random: best head of untrained models · conf.: confidence")
    console.print(f"  {legend}", style="dim", markup=False)
    if len(shown) < len(report.cards):
        note = _(
            "  The clearest and the least confident unknown heads of {n_cards}; --all lists every head.",
            n_cards=len(report.cards),
        )
        console.print(note, style="dim", markup=False)
    _show_basis(report, console)


def _card_table(cards: Sequence[RoleCard]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column(_("head"), no_wrap=True)
    table.add_column(_("role"), no_wrap=True)
    for heading in (
        _("value"),
        "95 %",
        _("base"),
        _("random"),
        _("conf."),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(_("reach"), no_wrap=True)
    for card in cards:
        for row in _rows(card):
            table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def _show_basis(report: HeadReport, console: Console) -> None:
    n_named, n_heads, n_seeds = sum(bool(card.roles) for card in report.cards), len(report.cards), len(report.seeds)
    texts = _n("1 text", "{n:,} texts", report.n_texts)
    if report.n_skipped:
        texts = _("{texts}, {n_skipped} skipped as empty or too long", texts=texts, n_skipped=report.n_skipped)
    console.print(
        _(
            "  {n_named} of {n_heads} heads have a role; {texts}; {n_seeds} untrained models.",
            n_named=n_named,
            n_heads=n_heads,
            texts=texts,
            n_seeds=n_seeds,
        ),
        style="dim",
        markup=False,
    )
    for role, heads in report.controls.items():
        console.print(
            _(
                "  An untrained model also meets {role} ({head}), so no head gets this role.",
                role=role_name(role),
                head=heads[0],
            ),
            style="yellow",
            markup=False,
        )


def _rows(card: RoleCard) -> list[list[str | Text]]:
    """Return a table row for each role of a head; for an unknown head a row without statistics."""
    confidence = f"{card.statistics['confidence'].value:.2f}"
    reach = {"local": _("local"), "global": _("global")}.get(card.reach) or _("medium")
    if not card.roles:
        return [[card.head, Text(role_name(UNKNOWN), style="dim"), "", "", "", "", confidence, reach]]
    rows: list[list[str | Text]] = []
    for role in card.roles:
        prefix, statistic = as_displayed(role.statistic, card.statistics[role.statistic])
        rows.append(
            [
                "" if rows else card.head,
                Text(role_name(role.name), style=role_color(role.name)),
                f"{prefix}{statistic.value:.2f}",
                f"{statistic.low:.2f}–{statistic.high:.2f}",
                f"{statistic.baseline:.2f}",
                f"{statistic.control:.2f}",
                "" if rows else confidence,
                "" if rows else reach,
            ]
        )
    return rows
