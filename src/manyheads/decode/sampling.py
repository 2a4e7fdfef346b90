"""Greedy search and sampling: one id per step, never revised."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.hypotheses import Hypothesis, best_first, forbid_repeats, make_hypothesis
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
    generators = random_streams(streams, settings) if settings.method == "sample" else None
    samples = _Samples.start(max_lengths, n_samples, bos, stepper.device)
    if n_samples > 1 and len(max_lengths):
        stepper.select(samples.sentences[:, None].expand(-1, n_samples))

    while len(samples.sentences):
        log_probabilities = stepper.step(samples.generated[:, :, -1].flatten())
        log_probabilities.nan_to_num_(nan=-torch.inf, neginf=-torch.inf).index_fill_(1, forbidden_ids, -torch.inf)
        if settings.no_repeat_ngram is not None:
            forbid_repeats(log_probabilities, samples.generated.flatten(0, 1)[:, 1:], settings.no_repeat_ngram)
        if generators is None:
            ids = log_probabilities.argmax(dim=-1)
        else:
            ids = sample_ids(log_probabilities, [sample for row in generators for sample in row], settings)
        samples.append(ids, log_probabilities.gather(1, ids[:, None]), eos, should_stop)

        is_done = ~samples.is_open.any(dim=1)
        if is_done.any():
            done, rest = (chosen.nonzero().flatten() for chosen in (is_done, ~is_done))
            results |= samples.select(done).hypotheses(settings)
            samples = samples.select(rest)
            generators = None if generators is None else [generators[row] for row in rest.tolist()]
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
                    make_hypothesis(ids[:n], total, finished=finished, alpha=settings.alpha, length=length)
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


def random_streams(streams: Iterable[int], settings: DecodeSettings) -> list[list[numpy.random.Generator]]:
    """The random generator of each sample of each sentence: a function of (seed, stream, sample) only."""
    return [
        [numpy.random.default_rng([settings.seed, stream, sample]) for sample in range(settings.n_best)]
        for stream in streams
    ]


def sample_ids(
    log_probabilities: Float[Tensor, "R V"], generators: Sequence[numpy.random.Generator], settings: DecodeSettings
) -> Int[Tensor, " R"]:
    """Sample an id per row with the Gumbel-max trick (Maddison 2014), which adds random noise to each id.

    The noise of an id does not depend on the other ids. Log-probabilities of one sentence differ by rounding errors
    between batches: these errors change a sample only if two noisy scores are equal up to them. Inverting cumulative
    sums would be sensitive to the order of all ids that are nearly as probable.
    """
    scores = log_probabilities.cpu().double()  # where the noise is made; MPS has no float64
    # The best choice is shifted to 0 first, so that a low temperature cannot push all of them to −∞.
    scores = (scores - scores.amax(dim=1, keepdim=True)) / settings.temperature
    scores = _keep_most_probable(scores, settings)
    noise = numpy.stack([generator.standard_exponential(scores.size(1)) for generator in generators])
    gumbel = torch.from_numpy(noise).clamp_(min=torch.finfo(torch.double).tiny).log_().neg_()
    return (scores + gumbel).argmax(dim=1).to(log_probabilities.device)


def _keep_most_probable(scores: Float[Tensor, "R V"], settings: DecodeSettings) -> Float[Tensor, "R V"]:
    """Set the scores that `top_k` and `top_p` leave out to −∞; scores that equal the last one kept are kept too."""
    if settings.top_k is not None and settings.top_k < scores.size(1):
        least = scores.topk(settings.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if settings.top_p < 1:
        ordered = scores.sort(dim=1, descending=True).values
        probabilities = ordered.softmax(dim=1)
        # A choice is kept if the choices before it do not reach top_p.
        is_left_out = probabilities.cumsum(dim=1) - probabilities >= settings.top_p
        least = ordered.masked_fill(is_left_out, torch.inf).amin(dim=1, keepdim=True)
        scores = scores.masked_fill(scores < least, -torch.inf)
    return scores
