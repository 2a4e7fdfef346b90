"""Role cards in a terminal: a table of the best and the worst heads, or all of it as JSON; timelines of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from manyheads.bundle import Bundle
    from manyheads.lens.roles import HeadReport, RoleCard
    from manyheads.lens.similarity import Similarity
    from manyheads.tasks.lens_examples import Example

_BEST = 16
_WORST = 8
_WIDTH = 100


@dataclass(frozen=True)
class CardOptions:
    """What was asked for."""

    gold: tuple[Path, ...] = ()
    text: tuple[Path, ...] = ()
    sample: int | None = None
    lowercase: bool = False
    svg: Path | None = None
    as_json: bool = False
    show_all: bool = False


def show_heads(path: Path, options: CardOptions) -> None:
    """The cards of a bundle."""
    from manyheads.bundle import load
    from manyheads.cli.progress import make_console
    from manyheads.lens.encoded_examples import encode_examples, require_known_script
    from manyheads.lens.roles import make_report
    from manyheads.lens.similarity import compare_heads

    console = make_console(plain=False)
    bundle = load(path)
    with console.status("[dim]watching the heads …" if not options.as_json else ""):
        encoded_sample = encode_examples(bundle.task, _examples(bundle, options))
        if options.gold:
            require_known_script(encoded_sample, bundle.task.tokenizer, ", ".join(map(str, options.gold)))
        report = make_report(bundle.task.model, encoded_sample)
        similarities = compare_heads(bundle.task.model, encoded_sample.examples)
    if options.svg:
        from manyheads.lens.pictures import draw_heads

        _write(options.svg, draw_heads(report, similarities))
    if options.as_json:
        _print_json(path, options, report, similarities)
        return
    _show_report(report, console, show_all=options.show_all)
    if options.svg:
        console.print(f"  Drawn to {options.svg} · 图已写入", markup=False)


def show_timeline(run: Path, options: CardOptions) -> None:
    """When each role appeared in a run."""
    from manyheads.cli.progress import make_console
    from manyheads.errors import LensError
    from manyheads.lens.pictures import draw_timeline
    from manyheads.lens.role_names import role_names
    from manyheads.lens.timeline import SAMPLE, iterate_timeline

    if options.gold or options.text:
        raise LensError("--timeline watches a run on its own held-out text: leave out --gold and --text.")
    console = make_console(plain=False)
    entries = []
    first: dict[tuple[str, str], int] = {}
    for entry in iterate_timeline(run, count=options.sample or SAMPLE):
        entries.append(entry)
        for head, role in entry.roles.items():
            first.setdefault((head, role), entry.step)
    if options.svg:
        _write(options.svg, draw_timeline(entries))
    if options.as_json:
        import json
        from dataclasses import asdict

        for entry in entries:
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
        return
    console.print("When roles appear · 各角色何时出现", style="bold")
    for head, role in entries[-1].roles.items():
        since = _since([entry.roles[head] for entry in entries], [entry.step for entry in entries])
        english, chinese = role_names(role)
        console.print(f"  {head:<18}{english} · {chinese}, since step · 自步 {since:,}", markup=False)
    console.print(
        f"  {len(entries)} snapshots, {entries[-1].n_texts} texts; every statistic is in {run / 'heads.jsonl'}."
    )


def _since(roles: Sequence[str], steps: Sequence[int]) -> int:
    """The step from which on the last role was never lost again."""
    number = len(roles) - 1
    while number > 0 and roles[number - 1] == roles[-1]:
        number -= 1
    return steps[number]


def _examples(bundle: "Bundle", options: CardOptions) -> "list[Example]":
    from manyheads.lens.examples import SAMPLE, read_examples, read_gold, sample_examples, with_targets

    count = options.sample or SAMPLE
    examples: list[Example] = []
    if options.text:
        examples += read_examples(bundle.task, options.text, count)
    if options.gold:
        examples += read_gold(bundle.task, options.gold, count, lower=options.lowercase)
    if not options.text and not options.gold:
        examples = sample_examples(bundle, count)
    return with_targets(bundle, examples)


def _write(path: Path, picture: str) -> None:
    from manyheads.cli.output import open_output

    with open_output(path) as stream:
        stream.write(picture)


def _print_json(path: Path, options: CardOptions, report: "HeadReport", similarities: "Sequence[Similarity]") -> None:
    import json

    payload: dict[str, Any] = {
        "bundle": str(path),
        "gold": [str(file) for file in options.gold],
        "text": [str(file) for file in options.text],
        **report.to_json(),
        "similarity": [
            {
                "kind": one.kind,
                "heads": one.heads,
                "n_texts": one.n_texts,
                "distances": [[round(float(cell), 4) for cell in row] for row in one.distances],
            }
            for one in similarities
        ],
    }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=1))


def _show_report(report: "HeadReport", console: "Console", *, show_all: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    named_heads = sorted((card for card in report.cards if card.roles), key=lambda card: -card.roles[0].excess)
    others = sorted(
        (card for card in report.cards if not card.roles), key=lambda card: card.statistics["confidence"].value
    )
    shown = [*named_heads[:_BEST], *others[:_WORST]]
    if show_all or len(report.cards) <= _BEST + _WORST:
        shown = [*named_heads, *others]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("head · 头", no_wrap=True)
    table.add_column("role · 角色", no_wrap=True)
    for title in ("value", "95 %", "base", "random", "conf."):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("reach", no_wrap=True)
    for card in shown:
        for line in _lines(card):
            table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in line))
    console.print("Heads · 注意力头", style="bold")
    if not console.is_terminal:  # a log or a pipe has no width of its own
        console.width = _WIDTH
    console.print(table)
    told = "value 数值 · 95 % 置信区间 · base 固定基线 · random 未训练的同样模型 · conf. 置信度 · reach 范围"
    console.print(f"  {told}", style="dim", markup=False)
    if len(shown) < len(report.cards):
        told = f"  The best and the least confident unknown of {len(report.cards)} heads; --all shows every one · "
        console.print(f"{told}仅列出部分，--all 显示全部", style="dim", markup=False)
    _show_basis(report, console)


def _show_basis(report: "HeadReport", console: "Console") -> None:
    n_named = sum(bool(card.roles) for card in report.cards)
    left_out = f", {report.n_skipped} left out as empty or too long" if report.n_skipped else ""
    console.print(
        f"  {n_named} of {len(report.cards)} heads named · 有角色的头; {report.n_texts} texts · 文本{left_out}; "
        f"random: the best of {len(report.seeds)} untrained twins.",
        style="dim",
        markup=False,
    )
    for role, heads in report.controls.items():
        console.print(
            f"  An untrained twin reaches {role} too ({heads[0]}), so it names no head · 随机模型也能达到，故不授予",
            style="yellow",
            markup=False,
        )


def _lines(card: "RoleCard") -> list[list[Any]]:
    """A row for each role of a head; of an unknown one, a row without statistics."""
    from rich.text import Text

    from manyheads.lens.role_names import role_color, role_names
    from manyheads.lens.roles import UNKNOWN, as_displayed

    confidence = f"{card.statistics['confidence'].value:.2f}"
    if not card.roles:
        told = Text(" · ".join(role_names(UNKNOWN)), style="dim")
        return [[card.head, told, "", "", "", "", confidence, card.reach]]
    lines: list[list[Any]] = []
    for role in card.roles:
        before, statistic = as_displayed(role.statistic, card.statistics[role.statistic])
        lines.append(
            [
                "" if lines else card.head,
                Text(" · ".join(role_names(role.name)), style=role_color(role.name)),
                f"{before}{statistic.value:.2f}",
                f"{statistic.low:.2f}–{statistic.high:.2f}",
                f"{statistic.baseline:.2f}",
                f"{statistic.control:.2f}",
                "" if lines else confidence,
                "" if lines else card.reach,
            ]
        )
    return lines
