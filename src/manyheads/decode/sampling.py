"""Greedy search and sampling: one id per step, never revised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    n_samples = settings.n_best
    results: dict[int, list[Hypothesis]] = {}
    forbidden_ids = torch.tensor(forbidden, dtype=torch.long, device=stepper.device)
    uniforms = None
    if settings.method == "sample":
        uniforms = draw_uniforms(streams, max_lengths, settings).to(stepper.device)
    samples = _Samples.start(max_lengths, n_samples, bos, stepper.device)
    if n_samples > 1 and len(max_lengths):
        stepper.select(samples.sentences[:, None].expand(-1, n_samples))

    while len(samples.sentences):
        log_probabilities = stepper.step(samples.generated[:, :, -1].flatten())
        log_probabilities.nan_to_num_(nan=-torch.inf, neginf=-torch.inf).index_fill_(1, forbidden_ids, -torch.inf)
        if uniforms is None:
            ids = log_probabilities.argmax(dim=-1)
        else:
            ids = sample_ids(log_probabilities, uniforms[:, :, samples.length].flatten(), settings)
        samples.append(ids, log_probabilities.gather(1, ids[:, None]), eos, should_stop)

        is_done = ~samples.is_open.any(dim=1)
        if is_done.any():
            done, rest = (chosen.nonzero().flatten() for chosen in (is_done, ~is_done))
            results |= samples.select(done).hypotheses(settings)
            samples = samples.select(rest)
            uniforms = None if uniforms is None else uniforms[rest]
            if len(rest):
                stepper.select(rest[:, None] * n_samples + torch.arange(n_samples, device=stepper.device))
    return [results[sentence] for sentence in range(len(max_lengths))]


@dataclass
class _Samples:
    """The samples of the unfinished sentences. Closed samples get further ids, which are ignored."""

    sentences: Int[Tensor, " B"]  # the index of each sentence
    limits: Int[Tensor, " B"]
    generated: Int[Tensor, "B N T"]  # starts with BOS
    totals: Float[Tensor, "B N"]  # log-probabilities
    n_ids: Int[Tensor, "B N"]
    n_scored: Int[Tensor, "B N"]  # ids in the total log-probability: EOS is one more
    is_open: Bool[Tensor, "B N"]
    is_finished: Bool[Tensor, "B N"]

    @classmethod
    def start(cls, max_lengths: Sequence[int], n_samples: int, bos: int, device: torch.device) -> "_Samples":
        """Samples without any generated ids."""
        shape = (len(max_lengths), n_samples)
        none = torch.zeros(shape, dtype=torch.long, device=device)
        return cls(
            sentences=torch.arange(len(max_lengths), device=device),
            limits=torch.tensor(max_lengths, dtype=torch.long, device=device),
            generated=torch.full((*shape, 1), bos, device=device),
            totals=torch.zeros(shape, device=device),
            n_ids=none,
            n_scored=none,
            is_open=torch.ones(shape, dtype=torch.bool, device=device),
            is_finished=torch.zeros(shape, dtype=torch.bool, device=device),
        )

    @property
    def length(self) -> int:
        """The number of generated ids, without BOS."""
        return self.generated.size(2) - 1

    def append(
        self,
        ids: Int[Tensor, " R"],
        log_probabilities: Float[Tensor, "R 1"],
        eos: int,
        should_stop: StoppingCriterion | None,
    ) -> None:
        """Append one id to each sample, and close the samples that end."""
        ids, log_probabilities = ids.reshape(self.totals.shape), log_probabilities.reshape(self.totals.shape)
        is_eos = ids == eos
        is_open = self.is_open & log_probabilities.isfinite()  # a sample without any possible id ends
        self.totals = torch.where(is_open, self.totals + log_probabilities, self.totals)
        self.n_scored = self.n_scored + is_open
        self.is_finished = self.is_finished | (is_open & is_eos)
        is_open = is_open & ~is_eos
        self.n_ids = self.n_ids + is_open
        self.generated = torch.cat([self.generated, ids[:, :, None]], dim=2)
        if should_stop is not None:
            has_stopped = is_open & find_stopped(self.generated, is_open, should_stop)
            self.is_finished, is_open = self.is_finished | has_stopped, is_open & ~has_stopped
        self.is_open = is_open & (self.length < self.limits)[:, None]

    def select(self, rows: Int[Tensor, " B2"]) -> "_Samples":
        """The samples of these sentences."""
        return _Samples(**{name: value[rows] for name, value in vars(self).items()})

    def hypotheses(self, settings: DecodeSettings) -> dict[int, list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        state = (self.generated[:, :, 1:], self.n_ids, self.n_scored, self.totals, self.is_finished)
        rows = zip(*(tensor.tolist() for tensor in state), strict=True)
        return {
            sentence: best_first(
                [
                    make_hypothesis(ids[:n], total, finished=finished, alpha=settings.length_penalty, length=length)
                    for ids, n, length, total, finished in zip(*samples, strict=True)
                ],
                settings.n_best,
            )
            for sentence, samples in zip(self.sentences.tolist(), rows, strict=True)
        }


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
