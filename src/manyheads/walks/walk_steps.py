"""The steps of `manyheads walk` in a terminal, each with its numbers and an explanation."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from manyheads.walks import walk_block, walk_head, walk_inputs, walk_output, walk_scale
from manyheads.walks import walk_text as texts
from manyheads.walks.number_format import Line
from manyheads.walks.walk_page import INDENT, Page

Step = Callable[[Page], Iterator[Line]]

STEPS: tuple[Step, ...] = (  # titles are in texts.TITLES
    walk_inputs.inputs,
    walk_head.projections,
    walk_head.products,
    walk_head.scale,
    walk_head.mask,
    walk_head.softmax,
    walk_head.all_weights,
    walk_head.weighted_sum,
    walk_head.output,
    walk_scale.without_scale,
    walk_block.residual,
    walk_block.norms,
    walk_block.feed_forward,
    walk_output.decoder_step,
    walk_output.output_softmax,
    walk_output.loss,
)


def show_steps(page: Page, chosen: Sequence[int] | None = None) -> Iterator[Line]:
    """Yield the lines of the chosen steps, by default of all."""
    for step_number, (title, step) in enumerate(zip(texts.TITLES, STEPS, strict=True), start=1):
        if chosen is None or step_number in chosen:
            yield Text()
            yield Text(f"{step_number:>2}  {title}", style="bold green")
            for line in step(page):
                indented = Text(" " * INDENT) + line
                indented.rstrip()
                yield indented
