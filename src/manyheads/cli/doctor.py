"""`manyheads doctor`: check a recipe and its data, a run or a bundle."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.messages import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from manyheads.doctor import Finding

_MARKS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "bold red")}
_COLUMN = 26


@click.command(
    short_help=_("Find problems in data, a run or a model."),
    help=_("""Check a recipe and its data, a run folder, or a bundle.

        Each check reports what it found (✓ good, ! warning, ✗ problem) and how to fix it. The exit code is 1 if any
        check reports a problem.

        \b
        Example:
          manyheads doctor recipe.toml
          manyheads doctor runs/mail
          manyheads doctor runs/mail/bundle --json
        """),
)
@click.argument("path", metavar="RECIPE|RUN|BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--quick",
    is_flag=True,
    help=_("Skip the checks that train (seconds instead of half a minute)."),
)
@click.option("--json", "as_json", is_flag=True, help=_("Write the findings as JSON."))
def doctor(path: Path, quick: bool, as_json: bool) -> None:
    """Run the checks that apply to a path."""
    from manyheads.cli.rendering.progress import make_console
    from manyheads.doctor import detect_kind, examine, has_bad

    kind = detect_kind(path)
    findings = []
    if as_json:
        findings = list(examine(path, quick=quick))
        _print_json(str(path), kind, findings)
    else:
        console = make_console(plain=False)
        console.print(f"manyheads doctor · {kind} {path}", style="bold", markup=False)
        with console.status("[dim]" + _("checking …")) as status:
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
        "findings": [asdict(finding) for finding in findings],
    }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=2))


def _show(finding: "Finding", console: "Console") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    mark, style = _MARKS[finding.verdict]
    body = Text(finding.message)
    if finding.verdict != "good":
        for example in finding.examples:
            body.append(f"\n  {example}", style="dim")
        if finding.fix:
            body.append(f"\n→ {finding.fix}", style="cyan")
    if not console.is_terminal:  # a log or a pipe: no wrapping
        lines = body.plain.split("\n")
        console.print(f"  {mark} {finding.check:<{_COLUMN}}{lines[0]}", markup=False)
        for line in lines[1:]:
            console.print(f"  {'':<{_COLUMN + 2}}{line}", markup=False)
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=_COLUMN - 1)
    table.add_column(overflow="fold")
    table.add_row(Text(mark, style=style), Text(finding.check), body)
    console.print(Padding(table, (0, 0, 0, 2)))


def _summarize(findings: "Sequence[Finding]", console: "Console") -> None:
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in _MARKS}
    summary = _(
        "Good: {n_good} · warnings: {n_warnings} · problems: {n_problems}.",
        n_good=counts["good"],
        n_warnings=counts["warning"],
        n_problems=counts["bad"],
    )
    if counts["bad"]:
        advice, style = _("Fix what is marked ✗ first."), "bold red"
    elif counts["warning"]:
        advice, style = _("No serious problem."), "bold yellow"
    else:
        advice, style = _("Everything is fine."), "bold green"
    console.print(f"\n{summary} {advice}", style=style, markup=False)
