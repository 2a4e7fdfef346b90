"""`manyheads walk` in a terminal: the heading, and the steps, each with its numbers and an explanation."""

from collections.abc import Callable, Iterator, Sequence

from rich.cells import set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.text.tokens.tokenizer import METASPACE
from manyheads.walks import block_steps, head_steps, input_steps, output_steps, scale_steps
from manyheads.walks import step_texts as texts
from manyheads.walks.number_format import Line, wrapped
from manyheads.walks.walk_page import INDENT, Page

Step = Callable[[Page], Iterator[Line]]

STEPS: tuple[Step, ...] = (  # titles are in texts.TITLES
    input_steps.inputs,
    head_steps.projections,
    head_steps.products,
    head_steps.scale,
    head_steps.mask,
    head_steps.softmax,
    head_steps.all_weights,
    head_steps.weighted_sum,
    head_steps.output,
    scale_steps.without_scale,
    block_steps.residual,
    block_steps.norms,
    block_steps.feed_forward,
    output_steps.decoder_step,
    output_steps.output_softmax,
    output_steps.loss,
)


def show_heading(page: Page) -> Iterator[Line]:
    """Yield the text, the head and its sizes, and a note about untrained models."""
    walk, titles = page.walk, _("head|sizes|query").split("|")
    yield Text(_("manyheads walk: a Transformer, step by step"), style="bold")
    yield Text()
    if page.origin == "worked":
        yield Text("    " + _("The worked 3×3 example: X = W^Q, W^K = Xᵀ, one head"))
    else:
        yield from (Text(f"    {line}", style="bold") for line in wrapped(walk.text, page.width))
        if walk.answer:
            yield from (Text(f"    {line}", style="bold") for line in wrapped(f"→ {walk.answer}", page.width))
        is_cross = walk.attention.endswith("cross")
        kind = _("cross-attention") if is_cross else _("self-attention")
        widths = f"d_k = {walk.k.shape[1]}, d_v = {walk.v.shape[1]}"
        sizes = f"d_model = {walk.queries_from.shape[1]}, h = {walk.n_heads}, {widths}"
        yield _row(titles[0], f"{walk.attention}/{walk.head}  ({kind})")
        yield _row(titles[1], sizes)
    yield _row(titles[2], f"{walk.query} {page.query_name}{_reads_and_writes(page)}", style="cyan")
    if page.origin == "untrained":
        yield Text()
        for line in page.explain(texts.UNTRAINED):
            yield Text(f"    {line.plain}", style="yellow")
        if walk.answer == walk.text:
            yield from (Text(f"    {line.plain}") for line in page.explain(texts.ANSWER_IS_TEXT))
    elif any(METASPACE in name for name in (*walk.query_names, *walk.key_names)):
        yield from (Text(f"    {line.plain}", style="dim") for line in page.explain(texts.TOKENS))


def _row(title: str, text: str, style: str = "") -> Line:
    return Text(f"    {set_cell_size(title, 7)}{text}", style=style)


def _reads_and_writes(page: Page) -> str:
    written = page.written_name
    if written is None:
        return ""
    return _("  (reads {query_name}, writes {written})", query_name=page.query_name, written=written)


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
