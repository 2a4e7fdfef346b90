"""`manyheads walk`: every number of a Transformer, step by step."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.walks.attention_walk import Walk
    from manyheads.walks.walk_page import Page

_N_STEPS = 16
_MAX_WIDTH = 100


class _Steps(click.ParamType["tuple[int, ...]"]):
    """Numbers of steps, written as 3, 1-4 or 2,6-8."""

    name = "STEPS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers of the steps."""
        steps: list[int] = []
        for part in str(value).split(","):
            ends = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
            first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
            if not 1 <= first <= last <= _N_STEPS:
                self.fail(
                    _(
                        "{value!r} is not a list of steps from 1 to {n_steps}. Write 3, 1-4 or 2,6-8.",
                        value=value,
                        n_steps=_N_STEPS,
                    ),
                    param,
                    ctx,
                )
            steps += range(first, last + 1)
        return tuple(steps)


@click.command(
    short_help=_("Show every number of a Transformer, step by step."),
    help=_("""Show every number from the words to the loss: embedding, one attention head, residual, norm, feed-forward,
        a decoder step, the output softmax, label smoothing.

        Without arguments: a worked 3×3 example. With a sentence: a tiny untrained model whose numbers can all be
        printed and checked with a calculator. With a bundle and a sentence: any layer and head of your own model.

        \b
        Steps:
           1 inputs            7 all weights        13 feed-forward
           2 projections       8 weighted sum       14 a decoder step
           3 products          9 Concat and W^O     15 output softmax
           4 scale            10 without √d_k       16 smoothing and loss
           5 mask             11 residual and norm
           6 softmax          12 norms compared

        \b
        Example:
          manyheads walk
          manyheads walk "I love cats" --layer decoder.0.self --query love
          manyheads walk "I love cats" --steps 11-13
          manyheads walk runs/quickstart/bundle "Two cats are sleeping." --layer decoder.0.cross --head 2
        """),
)
@click.argument("words", metavar="[BUNDLE] [TEXT]", nargs=-1)
@click.option(
    "--layer",
    help=_("Name of the attention, such as encoder.0.self. [default: the first]"),
)
@click.option("--head", type=int, default=0, show_default=True, help=_("Number of the head, from 0."))
@click.option(
    "--query",
    help=_("Word, or number of the position, to show in detail. [default: the second]"),
)
@click.option(
    "--answer",
    help=_("Text that the decoder writes. [default: the model's own answer]"),
)
@click.option(
    "--steps",
    type=_Steps(),
    help=_("Show only these steps: 3, 11-13 or 2,6-8."),
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=_("Print every number as JSON; a masked score is null."),
)
def walk(
    words: tuple[str, ...],
    layer: str | None,
    head: int,
    query: str | None,
    answer: str | None,
    steps: tuple[int, ...] | None,
    as_json: bool,
) -> None:
    """Show or print a walk."""
    page = _make_page(words, {"layer": layer, "head": head, "query": query, "answer": answer})
    if as_json:
        if steps is not None:
            raise click.UsageError(_("--json prints every step: leave out --steps."))
        import json

        click.echo(json.dumps(json_of(page.walk, page.origin), ensure_ascii=False))
        return
    _print_page(page, steps)


def _make_page(words: tuple[str, ...], options: dict[str, Any]) -> "Page":
    """Compute the walk that the arguments request."""
    from manyheads.walks.toy_model import measure_saturation, walk_sentence, worked_example
    from manyheads.walks.walk_page import Page

    match words:
        case ():
            if options["layer"] is not None or options["answer"] is not None or options["head"]:
                raise click.UsageError(_("The worked example has one head: --layer, --head and --answer need a TEXT."))
            return Page(worked_example(options["query"]), "worked", saturations=measure_saturation())
        case (text,):
            if _is_folder(text):
                raise click.UsageError(_('Give a text too: manyheads walk {text} "…".', text=text))
            return Page(walk_sentence(text, **options), "untrained", saturations=measure_saturation())
        case (bundle, text):
            return Page(_walk_bundle(Path(bundle), text, options), "bundle")
        case _:
            raise click.UsageError(_('Put the text in quotes: manyheads walk "{words}".', words=" ".join(words)))


def _is_folder(text: str) -> bool:
    """Whether the only argument is a bundle without a text; a long text is no path at all."""
    try:
        return bool(text.strip()) and Path(text).is_dir()
    except OSError:
        return False


def _walk_bundle(bundle: Path, text: str, options: dict[str, Any]) -> "Walk":
    from manyheads.answer.remarks import text_remarks
    from manyheads.bundle import load
    from manyheads.walks.block_walk import walk as walk_model

    loaded = load(bundle)
    walked = walk_model(loaded, text, **options)
    for remark in text_remarks(loaded, text):
        click.echo(_("Warning: {text}", text=remark), err=True)
    return walked


def _print_page(page: "Page", steps: tuple[int, ...] | None) -> None:
    from dataclasses import replace

    from manyheads.cli.rendering.progress import make_console
    from manyheads.walks.walk_steps import show_heading, show_steps

    console = make_console(plain=False)
    page = replace(page, columns=min(console.width, _MAX_WIDTH))
    for line in (*show_heading(page), *show_steps(page, steps)):
        console.print(line, soft_wrap=True)


def json_of(walk: "Walk", origin: str) -> dict[str, Any]:
    """Return every number of a walk for JSON; a masked score is None."""
    from dataclasses import asdict

    return {"origin": origin, **_plain(asdict(walk))}


def _plain(value: Any) -> Any:
    """Convert arrays to lists and −∞ to None, for JSON."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if value == -math.inf else value
