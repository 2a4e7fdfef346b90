"""`manyheads heads example`: a head without which an answer changes, and the commands that show it."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import click

from manyheads.bundle import load
from manyheads.cli.output import program_name
from manyheads.cli.train import echo_table
from manyheads.language import pick
from manyheads.lens.visible_ablation import VisibleAblation, find_visible_ablation


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
    label = pick("Look inside:", "看看内部：")
    if found is None:
        nothing = pick(
            "no single head changes an answer. How much depends on each:", "关掉任何一个头都不改变答案。各头的重要性："
        )
        return [(label, nothing), ("", f"{program_name()} heads importance {bundle}")]
    text = json.dumps(found.text, ensure_ascii=False)
    return [
        (label, _describe(found)),
        *(("", f"  {line}") for line in (found.text, found.answer, found.without)),
        (pick("In the browser:", "在浏览器中："), f"{program_name()} lens {bundle} \\"),
        ("", f"  {shell_word(found.text)} --off {found.head}"),
        (pick("In Python:", "用 Python："), f"model = manyheads.load({json.dumps(str(bundle), ensure_ascii=False)})"),
        ("", f"text = {text}"),
        ("", f'model.ablate("{found.head}").predict([text])'),
    ]


def shell_word(text: str) -> str:
    """Quote a text for a shell: with double quotes, which most sentences allow."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _describe(found: VisibleAblation) -> str:
    before, after = found.before, found.after
    if not before:
        change = pick(f"{after} is added", f"多出“{after}”")
    elif not after:
        change = pick(f"{before} is missing", f"“{before}”消失")
    else:
        change = pick(f"{before} becomes {after}", f"“{before}”变成“{after}”")
    return pick(f"switch off {found.head}, and {change}:", f"关掉 {found.head}，{change}：")
