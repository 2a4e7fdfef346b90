"""Greedy search and sampling: one id per step, never revised."""

from collections.abc import Callable, Sequence

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.hypotheses import Hypothesis, best_first, make_hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper

# Whether generated ids, without BOS, are complete although they do not end with EOS.
StoppingCriterion = Callable[[Sequence[int]], bool]

# B unfinished sentences, N samples of each (greedy: 1), R = B × N rows, T generated ids, V vocabulary.


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
    """Return the hypotheses of each sentence, best first; every maximum length is at least 1."""
    device = stepper.device
    results: list[list[Hypothesis]] = [[] for _ in max_lengths]
    forbidden_ids = torch.tensor(forbidden, dtype=torch.long, device=device)
    sentences = torch.arange(len(max_lengths), device=device)
    limits = torch.tensor(max_lengths, device=device)
    shape = (len(max_lengths), settings.n_best)
    if settings.n_best > 1 and len(sentences):
        stepper.select(sentences[:, None].expand(shape))
    uniforms = None
    if settings.method == "sample":
        uniforms = draw_uniforms(streams, max_lengths, settings).to(device)

    generated = torch.full((*shape, 1), bos, device=device)
    totals = torch.zeros(shape, device=device)
    n_ids = torch.zeros(shape, dtype=torch.long, device=device)
    n_scored = n_ids  # ids in the total log-probability: EOS is one more
    is_open = torch.ones(shape, dtype=torch.bool, device=device)
    is_finished = ~is_open
    length = 0
    while len(sentences):
        length += 1
        log_probabilities = stepper.step(generated[:, :, -1].flatten()).nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
        log_probabilities.index_fill_(1, forbidden_ids, -torch.inf)
        if uniforms is None:
            ids = log_probabilities.argmax(dim=-1)
        else:
            ids = sample_ids(log_probabilities, uniforms[:, :, length - 1].flatten(), settings)
        step_scores = log_probabilities.gather(1, ids[:, None]).reshape(totals.shape)
        ids = ids.reshape(totals.shape)

        # A row without any possible id ends here. Closed rows keep stepping; their ids are ignored.
        is_open = is_open & step_scores.isfinite()
        totals = torch.where(is_open, totals + step_scores, totals)
        n_scored = n_scored + is_open
        is_finished = is_finished | (is_open & (ids == eos))
        n_ids = n_ids + (is_open & (ids != eos))
        is_open = is_open & (ids != eos)
        generated = torch.cat([generated, ids[:, :, None]], dim=2)
        if should_stop is not None:
            has_stopped = is_open & find_stopped(generated, is_open, should_stop)
            is_finished, is_open = is_finished | has_stopped, is_open & ~has_stopped
        is_open = is_open & (length < limits)[:, None]

        is_done = ~is_open.any(dim=1)
        if is_done.any():
            state = (generated, n_ids, n_scored, totals, is_finished)
            done = _make_hypotheses(*(tensor[is_done] for tensor in state), settings=settings)
            for sentence, hypotheses in zip(sentences[is_done].tolist(), done, strict=True):
                results[sentence] = hypotheses
            rest = (~is_done).nonzero().flatten()
            sentences, limits, generated, totals = sentences[rest], limits[rest], generated[rest], totals[rest]
            n_ids, n_scored, is_open, is_finished = n_ids[rest], n_scored[rest], is_open[rest], is_finished[rest]
            uniforms = None if uniforms is None else uniforms[rest]
            if len(rest):
                stepper.select(rest[:, None] * shape[1] + torch.arange(shape[1], device=device))
    return results


def find_stopped(
    generated: Int[Tensor, "B N T"], candidates: Bool[Tensor, "B N"], should_stop: StoppingCriterion
) -> Bool[Tensor, "B N"]:
    """Which of the candidate rows are complete; `generated` starts with BOS."""
    answers = [should_stop(ids[1:]) for ids in generated[candidates].tolist()]
    stopped = torch.tensor(answers, dtype=torch.bool, device=candidates.device)
    return torch.zeros_like(candidates).masked_scatter_(candidates, stopped)


def draw_uniforms(
    streams: Sequence[int], max_lengths: Sequence[int], settings: DecodeSettings
) -> Float[Tensor, "B N T"]:
    """A uniform random number for each id to sample: a function of (seed, stream, sample, step) only."""
    uniforms = torch.zeros(len(streams), settings.n_best, max(max_lengths, default=0), dtype=torch.float32)
    for row, (stream, length) in enumerate(zip(streams, max_lengths, strict=True)):
        for sample in range(settings.n_best):
            generator = numpy.random.default_rng([settings.seed, stream, sample])
            uniforms[row, sample, :length] = torch.from_numpy(generator.random(length, dtype=numpy.float32))
    return uniforms


def sample_ids(
    log_probabilities: Float[Tensor, "R V"], uniforms: Float[Tensor, " R"], settings: DecodeSettings
) -> Int[Tensor, " R"]:
    """Sample by inversion: the first id, most probable first, whose cumulative probability exceeds its number."""
    vocab_size = log_probabilities.size(1)
    n_choices = vocab_size if settings.top_k is None else min(settings.top_k, vocab_size)
    choices, ids = log_probabilities.topk(n_choices)
    # The best choice is shifted to 0 first, so that a low temperature cannot push all of them to −∞.
    probabilities = ((choices - choices[:, :1]) / settings.temperature).softmax(dim=1).nan_to_num(nan=0.0)
    sums = probabilities.cumsum(dim=1)
    # top_p keeps a choice if the choices before it do not reach top_p.
    is_kept = (probabilities > 0) & (sums - probabilities < settings.top_p)
    last = (is_kept.sum(dim=1, keepdim=True) - 1).clamp(min=0)
    targets = uniforms[:, None].to(sums) * sums.gather(1, last)
    index = torch.minimum((sums <= targets).sum(dim=1, keepdim=True), last)
    return ids.gather(1, index).squeeze(1)


def _make_hypotheses(
    generated: Int[Tensor, "B N T"],
    n_ids: Int[Tensor, "B N"],
    n_scored: Int[Tensor, "B N"],
    totals: Float[Tensor, "B N"],
    is_finished: Bool[Tensor, "B N"],
    *,
    settings: DecodeSettings,
) -> list[list[Hypothesis]]:
    sentences = zip(*(x.tolist() for x in (generated[:, :, 1:], n_ids, n_scored, totals, is_finished)), strict=True)
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
