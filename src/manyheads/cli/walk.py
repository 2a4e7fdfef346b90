"""`manyheads walk`: every number of one attention computation, step by step."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from manyheads.cli.walk_page import Page
    from manyheads.lens.attention_walk import Walk

_N_STEPS = 10
_WIDEST = 100


class _Steps(click.ParamType["tuple[int, ...]"]):
    """Steps by number, written as 3, 1-4 or 2,6-8."""

    name = "STEPS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers."""
        found: list[int] = []
        for part in str(value).split(","):
            ends = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
            first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
            if not 1 <= first <= last <= _N_STEPS:
                self.fail(f"{value!r} names no steps. They are 1 to {_N_STEPS}: write 3, 1-4 or 2,6-8.", param, ctx)
            found += range(first, last + 1)
        return tuple(found)


@click.command(short_help="Every number of one attention, step by step. 一步一步算注意力。")
@click.argument("words", metavar="[BUNDLE] [TEXT]", nargs=-1)
@click.option("--layer", help="Which attention, like encoder.0.self. [default: the first]")
@click.option("--head", type=int, default=0, show_default=True, help="Which of its heads, from 0.")
@click.option("--query", help="The word, or the number of the place, to look at closely. [default: the second]")
@click.option("--answer", help="What the decoder writes. [default: what the model itself answers]")
@click.option("--steps", type=_Steps(), help="Only these, like 3, 1-4 or 2,6-8.")
@click.option("--json", "as_json", is_flag=True, help="Every number as JSON; a hidden score is null.")
def walk(
    words: tuple[str, ...],
    layer: str | None,
    head: int,
    query: str | None,
    answer: str | None,
    steps: tuple[int, ...] | None,
    as_json: bool,
) -> None:
    """Every number of one attention: q·k, √d_k, mask, softmax, ·V, Concat, W^O. 一步一步算出注意力的每个数。

    With nothing given, the worked 3×3 example. With a sentence, a tiny untrained model whose numbers can all be
    printed. With a bundle and a sentence, any layer and head of your own model. The last step is the same row without
    √d_k.

    \b
    不给参数：3×3 例题；给一个句子：未训练的小模型；
    给模型包和句子：你自己模型的任意一层、任意一个头。最后一步对照不除以 √d_k 的结果。

    \b
    Example · 例:
      manyheads walk
      manyheads walk "我爱水课"
      manyheads walk "I love cats" --layer decoder.0.self --query love
      manyheads walk runs/quickstart/bundle "Two cats are sleeping." --layer decoder.0.cross --head 2
      manyheads walk "猫在睡觉" --steps 3-6
    """
    page = _make_page(words, {"layer": layer, "head": head, "query": query, "answer": answer})
    if as_json:
        if steps is not None:
            raise click.UsageError("--json gives every step: leave out --steps.")
        _print_json(page)
        return
    _print_page(page, steps)


def _make_page(words: tuple[str, ...], how: dict[str, Any]) -> "Page":
    """What was asked for, worked out."""
    from manyheads.cli.walk_page import Page
    from manyheads.lens.toy_model import measure_saturation, walk_sentence, worked_example

    match words:
        case ():
            if how["layer"] is not None or how["answer"] is not None or how["head"]:
                raise click.UsageError("The worked example has one head: --layer, --head and --answer need a TEXT.")
            return Page(worked_example(how["query"]), "worked", saturations=measure_saturation())
        case (text,):
            if text.strip() and Path(text).is_dir():
                raise click.UsageError(f'Give a text too: manyheads walk {text} "…".')
            return Page(walk_sentence(text, **how), "untrained", saturations=measure_saturation())
        case (bundle, text):
            return Page(_walk_bundle(Path(bundle), text, how), "bundle")
        case _:
            raise click.UsageError(f'Put the text in quotes: manyheads walk "{" ".join(words)}".')


def _walk_bundle(bundle: Path, text: str, how: dict[str, Any]) -> "Walk":
    from manyheads.bundle import load
    from manyheads.lens.attention_walk import walk as walk_model

    return walk_model(load(bundle), text, **how)


def _print_page(page: "Page", steps: tuple[int, ...] | None) -> None:
    from dataclasses import replace

    from manyheads.cli.progress import make_console
    from manyheads.cli.walk_page import show_heading
    from manyheads.cli.walk_steps import show_steps

    console = make_console(plain=False)
    page = replace(page, columns=min(console.width, _WIDEST))
    for line in (*show_heading(page), *show_steps(page, steps)):
        console.print(line, soft_wrap=True)


def _print_json(page: "Page") -> None:
    import json
    from dataclasses import asdict

    click.echo(json.dumps({"origin": page.origin, **_plain(asdict(page.walk))}, ensure_ascii=False))


def _plain(value: Any) -> Any:
    """What JSON can hold: lists for arrays, null for −∞, which it has no word for."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if value == -math.inf else value
