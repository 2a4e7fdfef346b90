"""Beam search: of all continuations of a sentence's few best beginnings, keep the few best, and so on."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.greedy_sampling import StoppingCriterion, find_stopped
from manyheads.decode.hypotheses import Hypothesis, best_first, length_penalty, make_hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper

# B sentences still searched, N beams of each, T ids written so far, V vocabulary.


def beam_search(
    stepper: Stepper,
    max_lengths: Sequence[int],
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    should_stop: StoppingCriterion | None = None,
) -> list[list[Hypothesis]]:
    """Each sentence's hypotheses, best first; every maximum length is at least 1.

    At every step the `beam` best continuations stay. Those that end are set aside as finished, the others are
    continued; nothing else ends a beam, so a beam of one is greedy search whatever the length penalty.
    """
    device, alpha = stepper.device, settings.length_penalty
    found: list[list[Hypothesis]] = [[] for _ in max_lengths]
    forbidden_ids = torch.tensor(forbidden, dtype=torch.long, device=device)
    sentences = torch.arange(len(max_lengths), device=device)  # which of `found` each of the B belongs to
    limits = torch.tensor(max_lengths, device=device)
    longest = torch.tensor([length_penalty(length, alpha) for length in max_lengths], device=device)
    written = torch.full((len(max_lengths), 1, 1), bos, device=device)
    totals = torch.zeros(len(max_lengths), 1, device=device)  # log-probability of each beam; −∞: has ended
    kept = torch.full((len(max_lengths), settings.n_best), -torch.inf, device=device)  # scores of the best finished
    length = 0

    while len(sentences):
        length += 1
        log_probabilities = stepper.step(written[:, :, -1].flatten()).index_fill_(1, forbidden_ids, -torch.inf)
        n_beams = written.size(1)
        # No beam can place more than `beam` of its continuations, so a few of each are all that need be compared.
        n_choices = min(settings.beam, log_probabilities.size(1))
        choices, choice_ids = (x.unflatten(0, written.shape[:2]) for x in log_probabilities.topk(n_choices))
        # A NaN would count as the largest number of all.
        candidates = (choices + totals[:, :, None]).nan_to_num_(nan=-torch.inf, neginf=-torch.inf).flatten(1)
        best, at = candidates.topk(min(settings.beam, candidates.size(1)))
        beams, ids = at // n_choices, choice_ids.flatten(1).gather(1, at)

        is_last = ids == eos
        if should_stop is not None:
            grown = torch.cat([_gather_beams(written, beams), ids[:, :, None]], dim=2)
            is_last = is_last | find_stopped(grown, ~is_last & best.isfinite(), should_stop)
        ends = is_last & best.isfinite()
        if ends.any():
            _add_finished(found, sentences, written, beams, ids.masked_fill(ids == eos, -1), best, ends, alpha)
            scores = (best / length_penalty(length, alpha)).masked_fill(~ends, -torch.inf)
            kept = torch.cat([kept, scores], dim=1).topk(settings.n_best).values

        is_stuck = best[:, 0].isneginf()  # no continuation is possible: what was written must do
        if is_stuck.any():
            _add_unfinished(found, sentences, written, totals, is_stuck, settings)
        totals = best.masked_fill(is_last, -torch.inf)
        # A log-probability only falls, and for α ≥ 0 the penalty is largest at the maximum length: no continuation
        # of a beam can score more than the beam's log-probability over that penalty. Once as many as are wanted
        # have finished with at least the best such bound, going on cannot change them.
        is_done = is_stuck | (kept[:, -1] >= totals.amax(1) / longest) | (length >= limits)
        written = torch.cat([_gather_beams(written, beams), ids[:, :, None]], dim=2)
        rows = torch.arange(len(sentences), device=device)[:, None] * n_beams + beams
        if is_done.any():
            _add_unfinished(found, sentences, written, totals, is_done & ~is_stuck, settings)
            on = ~is_done
            sentences, limits, longest, kept = sentences[on], limits[on], longest[on], kept[on]
            written, totals, rows = written[on], totals[on], rows[on]
        if rows.numel() and not _is_identity(rows, n_beams, len(is_done)):
            stepper.select(rows)
    return [best_first(hypotheses, settings.n_best) for hypotheses in found]


def _gather_beams(written: Int[Tensor, "B N T"], beams: Int[Tensor, "B N2"]) -> Int[Tensor, "B N2 T"]:
    return written.gather(1, beams[:, :, None].expand(-1, -1, written.size(2)))


def _is_identity(rows: Int[Tensor, "B N"], n_beams: int, n_sentences: int) -> bool:
    """Whether selecting these rows would change nothing."""
    all_rows = torch.arange(n_sentences * n_beams, device=rows.device)
    return rows.numel() == len(all_rows) and torch.equal(rows.flatten(), all_rows)


def _add_finished(
    found: list[list[Hypothesis]],
    sentences: Int[Tensor, " B"],
    written: Int[Tensor, "B N T"],
    beams: Int[Tensor, "B N2"],
    last: Int[Tensor, "B N2"],
    log_probabilities: Float[Tensor, "B N2"],
    ends: Bool[Tensor, "B N2"],
    alpha: float,
) -> None:
    """Note the hypotheses that have just ended; of `last`, EOS is written as −1."""
    which, place = ends.nonzero(as_tuple=True)
    ended = zip(
        sentences[which].tolist(),
        written[which, beams[which, place], 1:].tolist(),
        last[which, place].tolist(),
        log_probabilities[which, place].tolist(),
        strict=True,
    )
    for sentence, ids, final, log_probability in ended:
        whole = ids if final < 0 else [*ids, final]
        found[sentence].append(make_hypothesis(whole, log_probability, finished=True, alpha=alpha, length=len(ids) + 1))


def _add_unfinished(
    found: list[list[Hypothesis]],
    sentences: Int[Tensor, " B"],
    written: Int[Tensor, "B N T"],
    totals: Float[Tensor, "B N"],
    is_cut: Bool[Tensor, " B"],
    settings: DecodeSettings,
) -> None:
    """Where nothing has finished, note the beams as they stand: an unfinished answer is better than none."""
    for place in is_cut.nonzero().flatten().tolist():
        hypotheses = found[int(sentences[place])]
        if hypotheses:
            continue
        for ids, log_probability in zip(written[place, :, 1:].tolist(), totals[place].tolist(), strict=True):
            if log_probability > -torch.inf:
                hypotheses.append(
                    make_hypothesis(
                        ids, log_probability, finished=False, alpha=settings.length_penalty, length=len(ids)
                    )
                )
