"""`manyheads heads example`: a head without which an answer changes, and the commands that show it."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import click

from manyheads.bundle import load
from manyheads.cli.output import program_name
from manyheads.cli.train import echo_table
from manyheads.lens.visible_ablation import VisibleAblation, find_visible_ablation
from manyheads.messages import _


def show_example(bundle: Path, *, as_json: bool) -> None:
    """Search the example of a bundle and print it."""
    found = find_visible_ablation(load(bundle))
    if as_json:
        table = None if found is None else {**asdict(found), "head": str(found.head)}
        click.echo(json.dumps(table, ensure_ascii=False, indent=2))
        return
    echo_table(example_rows(bundle, found))


def example_rows(bundle: Path, found: VisibleAblation | None) -> list[tuple[str, str]]:
    """Return rows of a label and a text: what changes without the head, and how to see it."""
    label = _("Look inside:")
    if found is None:
        nothing = _("no single head changes an answer. How much depends on each:")
        return [(label, nothing), ("", f"{program_name()} heads importance {bundle}")]
    text = json.dumps(found.text, ensure_ascii=False)
    return [
        (label, _describe(found)),
        *(("", f"  {line}") for line in (found.text, found.answer, found.without)),
        (_("In the browser:"), f"{program_name()} lens {bundle} \\"),
        ("", f"  {shell_word(found.text)} --off {found.head}"),
        (_("In Python:"), f"model = manyheads.load({json.dumps(str(bundle), ensure_ascii=False)})"),
        ("", f"text = {text}"),
        ("", f'model.ablate("{found.head}").predict([text])'),
    ]


def shell_word(text: str) -> str:
    """Quote a text for a shell: with double quotes, which most sentences allow."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _describe(found: VisibleAblation) -> str:
    before, after = found.before, found.after
    if not before:
        change = _("{after} is added", after=after)
    elif not after:
        change = _("{before} is missing", before=before)
    else:
        change = _("{before} becomes {after}", before=before, after=after)
    return _("switch off {head}, and {change}:", head=found.head, change=change)
