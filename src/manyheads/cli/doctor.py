"""`manyheads doctor`: what is wrong with this data, this run, this model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from manyheads.doctor import Finding

_SIGNS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "bold red")}
_COLUMN = 26


@click.command(short_help="What is wrong with this data, run or model. 诊断数据、训练或模型。")
@click.argument("path", metavar="RECIPE|RUN|BUNDLE", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Leave out what needs training (seconds instead of half a minute).")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def doctor(path: Path, quick: bool, as_json: bool) -> None:
    """Examine a recipe and its data, a run's folder, or a bundle. 检查配方与数据、训练目录或模型包。

    Every check says what it saw (✓ good, ! look at it, ✗ mend it) and what to do. The exit code is 1 if anything is ✗.

    \b
    Example · 例:
      manyheads doctor recipe.toml
      manyheads doctor runs/mail
      manyheads doctor runs/mail/bundle --json
    """
    from manyheads.cli.progress import make_console
    from manyheads.doctor import detect_kind, examine, has_bad

    kind = detect_kind(path)
    findings = []
    if as_json:
        findings = list(examine(path, quick=quick))
        _print_json(str(path), kind, findings)
    else:
        console = make_console(plain=False)
        console.print(f"manyheads doctor · {kind} {path}", style="bold", markup=False)
        with console.status("[dim]examining …") as status:
            for finding in examine(path, quick=quick):
                status.stop()
                _show(finding, console)
                findings.append(finding)
                status.start()
        _summarize(findings, console)
    if has_bad(findings):
        sys.exit(1)


def _print_json(path: str, kind: str, findings: "Sequence[Finding]") -> None:
    import json
    from dataclasses import asdict

    from manyheads.doctor import has_bad

    payload = {
        "path": path,
        "kind": kind,
        "is_ok": not has_bad(findings),
        "findings": [asdict(one) for one in findings],
    }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=2))


def _show(finding: "Finding", console: "Console") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    sign, style = _SIGNS[finding.verdict]
    body = Text(finding.message)
    if finding.verdict != "good":
        for example in finding.examples:
            body.append(f"\n  {example}", style="dim")
        if finding.fix:
            body.append(f"\n→ {finding.fix}", style="cyan")
    if not console.is_terminal:  # a log or a pipe: no wrapping
        lines = body.plain.split("\n")
        console.print(f"  {sign} {finding.check:<{_COLUMN}}{lines[0]}", markup=False)
        for line in lines[1:]:
            console.print(f"  {'':<{_COLUMN + 2}}{line}", markup=False)
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=_COLUMN - 1)
    table.add_column(overflow="fold")
    table.add_row(Text(sign, style=style), Text(finding.check), body)
    console.print(Padding(table, (0, 0, 0, 2)))


def _summarize(findings: "Sequence[Finding]", console: "Console") -> None:
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in _SIGNS}
    told = f"{counts['good']} good · {counts['warning']} to look at · {counts['bad']} to mend"
    if counts["bad"]:
        end, style = "Mend what is marked ✗ first. 请先处理标有 ✗ 的问题。", "bold red"
    elif counts["warning"]:
        end, style = "Nothing stands in the way. 没有严重问题。", "bold yellow"
    else:
        end, style = "All is well. 一切正常。", "bold green"
    console.print(f"\n{told}. {end}", style=style, markup=False)
