"""Greedy search and sampling: one id after another, none ever taken back."""

from collections.abc import Callable, Sequence

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.hypotheses import Hypothesis, best_first, make_hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper

StoppingCriterion = Callable[
    [Sequence[int]], bool
]  # whether ids, without BOS, are a whole answer although EOS is not there

# B sentences still being written, N samples of each (greedy: 1), R = B × N rows, T ids written, V vocabulary.


def greedy_or_sample(
    stepper: Stepper,
    max_lengths: Sequence[int],
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    streams: Sequence[int],
    should_stop: StoppingCriterion | None = None,
) -> list[list[Hypothesis]]:
    """Each sentence's hypotheses, best first; every maximum length is at least 1."""
    device = stepper.device
    found: list[list[Hypothesis]] = [[] for _ in max_lengths]
    forbidden_ids = torch.tensor(forbidden, dtype=torch.long, device=device)
    sentences = torch.arange(len(max_lengths), device=device)
    limits = torch.tensor(max_lengths, device=device)
    shape = (len(max_lengths), settings.n_best)
    if settings.n_best > 1 and len(sentences):
        stepper.select(sentences[:, None].expand(shape))
    uniforms = None
    if settings.method == "sample":
        uniforms = draw_uniforms(streams, max_lengths, settings).to(device)

    written = torch.full((*shape, 1), bos, device=device)
    totals = torch.zeros(shape, device=device)
    n_ids = torch.zeros(shape, dtype=torch.long, device=device)
    n_counted = n_ids  # of these the probabilities count: EOS is one more
    is_open = torch.ones(shape, dtype=torch.bool, device=device)
    is_finished = ~is_open
    length = 0
    while len(sentences):
        length += 1
        log_probabilities = stepper.step(written[:, :, -1].flatten()).nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
        log_probabilities.index_fill_(1, forbidden_ids, -torch.inf)
        if uniforms is None:
            ids = log_probabilities.argmax(dim=-1)
        else:
            ids = sample_ids(log_probabilities, uniforms[:, :, length - 1].flatten(), settings)
        gained = log_probabilities.gather(1, ids[:, None]).reshape(totals.shape)
        ids = ids.reshape(totals.shape)

        # Where no id is possible, what was written must do; rows already closed write on, and nobody reads it.
        is_open = is_open & gained.isfinite()
        totals = torch.where(is_open, totals + gained, totals)
        n_counted = n_counted + is_open
        is_finished = is_finished | (is_open & (ids == eos))
        n_ids = n_ids + (is_open & (ids != eos))
        is_open = is_open & (ids != eos)
        written = torch.cat([written, ids[:, :, None]], dim=2)
        if should_stop is not None:
            has_stopped = is_open & find_stopped(written, is_open, should_stop)
            is_finished, is_open = is_finished | has_stopped, is_open & ~has_stopped
        is_open = is_open & (length < limits)[:, None]

        is_done = ~is_open.any(dim=1)
        if is_done.any():
            for sentence, hypotheses in zip(
                sentences[is_done].tolist(),
                _collect(
                    written[is_done],
                    n_ids[is_done],
                    n_counted[is_done],
                    totals[is_done],
                    is_finished[is_done],
                    settings,
                ),
                strict=True,
            ):
                found[sentence] = hypotheses
            on = (~is_done).nonzero().flatten()
            sentences, limits, written, totals = sentences[on], limits[on], written[on], totals[on]
            n_ids, n_counted, is_open, is_finished = n_ids[on], n_counted[on], is_open[on], is_finished[on]
            uniforms = None if uniforms is None else uniforms[on]
            if len(on):
                stepper.select(on[:, None] * shape[1] + torch.arange(shape[1], device=device))
    return found


def find_stopped(
    written: Int[Tensor, "B N T"], asked: Bool[Tensor, "B N"], should_stop: StoppingCriterion
) -> Bool[Tensor, "B N"]:
    """Which of the rows asked for are a whole answer by now; `written` begins with BOS."""
    answers = [should_stop(ids[1:]) for ids in written[asked].tolist()]
    return torch.zeros_like(asked).masked_scatter_(asked, torch.tensor(answers, dtype=torch.bool, device=asked.device))


def draw_uniforms(
    streams: Sequence[int], max_lengths: Sequence[int], settings: DecodeSettings
) -> Float[Tensor, "B N T"]:
    """A number between 0 and 1 for every id that may be drawn: a function of (seed, stream, sample, step) alone."""
    uniforms = torch.zeros(len(streams), settings.n_best, max(max_lengths, default=0), dtype=torch.float32)
    for row, (stream, length) in enumerate(zip(streams, max_lengths, strict=True)):
        for sample in range(settings.n_best):
            generator = numpy.random.default_rng([settings.seed, stream, sample])
            uniforms[row, sample, :length] = torch.from_numpy(generator.random(length, dtype=numpy.float32))
    return uniforms


def sample_ids(
    log_probabilities: Float[Tensor, "R V"], uniforms: Float[Tensor, " R"], settings: DecodeSettings
) -> Int[Tensor, " R"]:
    """The id at which the running sum of probabilities, most probable first, passes the row's chance."""
    n_choices = min(settings.top_k or log_probabilities.size(1), log_probabilities.size(1))
    choices, ids = log_probabilities.topk(n_choices)
    # The best one is brought to 0 first, so that no temperature can push all of them to −∞.
    probabilities = ((choices - choices[:, :1]) / settings.temperature).softmax(dim=1).nan_to_num(nan=0.0)
    sums = probabilities.cumsum(dim=1)
    # top_p keeps the fewest that reach it: those before which it was not reached.
    is_kept = (probabilities > 0) & (sums - probabilities < settings.top_p)
    last = (is_kept.sum(dim=1, keepdim=True) - 1).clamp(min=0)
    aim = uniforms[:, None].to(sums) * sums.gather(1, last)
    place = torch.minimum((sums <= aim).sum(dim=1, keepdim=True), last)
    return ids.gather(1, place).squeeze(1)


def _collect(
    written: Int[Tensor, "B N T"],
    n_ids: Int[Tensor, "B N"],
    n_counted: Int[Tensor, "B N"],
    totals: Float[Tensor, "B N"],
    is_finished: Bool[Tensor, "B N"],
    settings: DecodeSettings,
) -> list[list[Hypothesis]]:
    """The hypotheses of sentences that are done."""
    sentences = zip(*(x.tolist() for x in (written[:, :, 1:], n_ids, n_counted, totals, is_finished)), strict=True)
    return [
        best_first(
            [
                make_hypothesis(ids[:n], total, finished=finished, alpha=settings.length_penalty, length=length)
                for ids, n, length, total, finished in zip(*samples, strict=True)
            ],
            settings.n_best,
        )
        for samples in sentences
    ]
