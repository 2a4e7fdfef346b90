"""The last steps of `manyheads walk`: a decoder step, the output softmax, label smoothing and the loss."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import Message, _
from manyheads.walks import step_texts as texts
from manyheads.walks.attention_walk import Walk
from manyheads.walks.block_steps import show_norm, show_sublayer
from manyheads.walks.block_walk import DecoderStep
from manyheads.walks.checked_digits import Digits, calculable, dot
from manyheads.walks.head_steps import softmax_row
from manyheads.walks.number_format import Line, folded, shortened, vector
from manyheads.walks.output_walk import LossWalk, OutputWalk
from manyheads.walks.walk_page import Page, cells, softmax_table

_N_READ = 20  # tokens listed as read or masked


def decoder_step(page: Page) -> Iterator[Line]:
    """What one position of the decoder reads and writes: masked self-attention, cross-attention, feed-forward."""
    step = page.block.decoder
    if step is None:
        yield from page.explain(texts.NO_DECODER)
        return
    yield from page.explain(texts.decoder_step(step.position, step.reads, step.writes))
    if step.cross_sublayer is not None:
        yield from page.explain(texts.PICTURE_ROWS)
    yield Text()
    yield from _read_and_masked(page, step)
    position = step.position
    titles = _("+ self-attention"), _("+ cross-attention"), _("+ feed-forward")
    yield from _title(_("Masked self-attention"), step.self_attention)
    row = _row(page, step.self_attention, texts.MASKED_STEP)
    yield from show_sublayer(page, step.self_sublayer, position, titles[0], row, is_explained=False)
    if step.cross_sublayer is not None:
        yield from _title(_("Cross-attention"), step.cross_attention)
        row = _row(page, step.cross_attention, texts.CROSS_STEP)
        yield from show_sublayer(page, step.cross_sublayer, position, titles[1], row, is_explained=False)
    yield from _title(_("Feed-forward"))
    yield from show_sublayer(page, step.feed_forward_sublayer, position, titles[2], [], is_explained=False)
    yield Text()
    yield from page.explain(texts.all_terms(step.name, has_cross=step.cross_sublayer is not None))


def _title(title: str, walk: Walk | None = None) -> Iterator[Line]:
    yield Text()
    yield Text(title if walk is None else f"{title}   {walk.attention}/{walk.head}", style="bold")


def _read_and_masked(page: Page, step: DecoderStep) -> Iterator[Line]:
    names = page.target_names
    parts = ((_("reads"), names[: step.position + 1]), (_("masked"), names[step.position + 1 :]))
    for title, tokens in parts:
        shown = [*(tokens if len(tokens) <= _N_READ else ("…", *tokens[-_N_READ:]))]
        yield from folded(set_cell_size(title, 8), " ".join(map(shortened, shown)) or "-", page.width)
    yield Text(set_cell_size(_("writes"), 8) + shortened(step.writes or "?"), style="bold cyan")


def _row(page: Page, walk: Walk | None, explanation: Message) -> Iterator[Line]:
    """Yield the weights of one head at this position."""
    if walk is None:
        yield from page.explain(texts.NO_HEADS)
        return
    yield from page.explain(explanation)
    yield from softmax_row(replace(page, walk=walk))


def output_softmax(page: Page) -> Iterator[Line]:
    """Logits as inner products with the word vectors, and their softmax."""
    walk = page.block.output
    if walk is None:
        yield from page.explain(texts.NO_OUTPUT_SOFTMAX)
        return
    yield from page.explain(texts.TIED if walk.is_tied else texts.NOT_TIED, texts.next_token(walk.reads, walk.writes))
    yield Text()
    if walk.final_norm is not None:
        yield from page.explain(texts.FINAL_NORM)
        yield from show_norm(page, walk.final_norm, walk.position)
        yield Text()
    yield Text(f"h  {vector(walk.hidden)}", style="bold")
    names = _token_names(walk)

    def render(digits: Digits) -> Iterator[Line]:
        for name, row in zip(names, walk.vectors, strict=True):
            yield from folded(f"{name}  ", dot(digits, walk.hidden, row), page.width)

    yield from calculable(render)
    yield Text()
    ids = list(walk.ids)
    n_others = len(walk.logits) - len(ids)
    rest = np.setdiff1d(np.arange(len(walk.logits)), ids)
    others = (float(walk.exponentials[rest].sum()), float(walk.probabilities[rest].sum())) if n_others else None
    yield from softmax_table(page, names, walk.logits[ids], walk.probabilities[ids], others, n_others, "logit")


def _token_names(walk: OutputWalk) -> list[str]:
    shown = [shortened(name) for name in walk.names]
    width = max(map(cell_len, shown))
    return [set_cell_size(name, width) for name in shown]


def loss(page: Page) -> Iterator[Line]:
    """The smoothed target and its cross-entropy."""
    output, walk = page.block.output, page.block.loss
    if output is None or walk is None:
        yield from page.explain(texts.NO_LOSS if output is None else texts.NO_TARGET)
        return
    yield from page.explain(texts.SMOOTHING if walk.smoothing else texts.NO_SMOOTHING)
    yield Text()
    if walk.smoothing:
        yield from calculable(lambda digits: _targets(digits, walk))
        yield Text()
    yield from calculable(lambda digits: _loss_table(digits, output, walk))
    if walk.smoothing:
        yield Text()
        yield from page.explain(texts.WHY_SMOOTHING)


def _targets(digits: Digits, walk: LossWalk) -> Iterator[Line]:
    epsilon, count = digits.of(walk.smoothing), len(walk.targets)
    right = digits.result(walk.right, 1 - Decimal(epsilon))
    yield Text(set_cell_size(_("right"), 10) + f"1 - ε = 1 - {epsilon} = {right}")
    wrong = digits.result(walk.wrong, Decimal(epsilon) / (count - 1))
    yield Text(set_cell_size(_("others"), 10) + f"ε / (V - 1) = {epsilon} / {count - 1} = {wrong}")


def _loss_table(digits: Digits, output: OutputWalk, walk: LossWalk) -> Iterator[Line]:
    names, widths = _token_names(output), (10, 10, 10, 16)
    before = " " * cell_len(names[0])
    headings = _("target|p|-ln p|target × -ln p").split("|")
    yield cells(before, headings, widths, "bold")
    terms = []
    right = Decimal()
    for name, token_id in zip(names, output.ids, strict=True):
        target, p = (digits.of(float(each[token_id])) for each in (walk.targets, output.probabilities))
        surprise = digits.rounded(-Decimal(p).ln())
        terms.append(digits.rounded(Decimal(target) * Decimal(surprise)))
        style = "bold cyan" if token_id == walk.target else ""
        right = Decimal(surprise) if token_id == walk.target else right
        yield cells(name, (target, p, surprise, terms[-1]), widths, style)
    rest = np.setdiff1d(np.arange(len(walk.targets)), output.ids)
    if len(rest):
        terms.append(digits.of(float(-(walk.targets[rest] * walk.log_probabilities[rest]).sum())))
        yield cells(before, ("", "", _("{n_others:,} more", n_others=len(rest)), terms[-1]), widths, "dim")
    total = digits.result(walk.loss, sum(map(Decimal, terms), Decimal()))
    yield cells(before, ("", "", _("loss"), total), widths, "bold")
    if walk.smoothing:
        plain = digits.result(walk.loss_unsmoothed, right)
        smallest = digits.result(walk.smallest_loss, _smallest(digits, walk))
        yield Text()
        yield Text(_("without smoothing  -ln p = {plain}", plain=plain))
        yield Text(_("smallest possible  -Σ target × ln target = {smallest}", smallest=smallest))


def _smallest(digits: Digits, walk: LossWalk) -> Decimal:
    right, wrong = Decimal(digits.of(walk.right)), Decimal(digits.of(walk.wrong))
    return -(right * right.ln()) - (len(walk.targets) - 1) * wrong * wrong.ln()
