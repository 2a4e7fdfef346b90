"""Beam search: extend the best partial hypotheses of each sentence, and keep the best extensions."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.constraints import Constraint
from manyheads.decode.hypotheses import Hypothesis, best_first, forbid_repeats, length_penalty, make_hypothesis
from manyheads.decode.sampling import StoppingCriterion, find_stopped
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper

# B unfinished sentences, N beams of each, R = B × N rows, T generated ids, V vocabulary.


def beam_search(
    stepper: Stepper,
    max_lengths: Sequence[int],
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    should_stop: StoppingCriterion | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each sentence, best first; every maximum length is at least 1.

    Every step keeps the `beam` best extensions. Those that end with EOS become finished hypotheses and the others are
    extended. Nothing else ends a beam, so a beam of 1 is greedy search for any length penalty. A constraint selects
    the extensions that are kept.
    """
    device, alpha = stepper.device, settings.alpha
    results: list[list[Hypothesis]] = [[] for _ in max_lengths]
    forbidden_ids = torch.tensor(forbidden, dtype=torch.long, device=device)
    sentences = torch.arange(len(max_lengths), device=device)  # index of each unfinished sentence in `results`
    limits = torch.tensor(max_lengths, device=device)
    longest = torch.tensor([length_penalty(length, alpha) for length in max_lengths], device=device)
    generated = torch.full((len(max_lengths), 1, 1), bos, device=device)
    totals = torch.zeros(len(max_lengths), 1, device=device)  # log-probability of each beam; −∞: ended
    kept = torch.full((len(max_lengths), settings.n_best), -torch.inf, device=device)  # scores of the best finished
    length = 0

    while len(sentences):
        length += 1
        log_probabilities = stepper.step(generated[:, :, -1].flatten()).index_fill_(1, forbidden_ids, -torch.inf)
        unguarded = log_probabilities
        if settings.no_repeat_ngram is not None:
            unguarded = log_probabilities if constraint is None else log_probabilities.clone()
            forbid_repeats(log_probabilities, generated.flatten(0, 1)[:, 1:], settings.no_repeat_ngram)
        n_beams = generated.size(1)
        if constraint is None:
            best, beams, ids = _best_extensions(log_probabilities, totals, settings.beam)
        else:
            best, beams, ids = constraint.select(sentences).best_extensions(
                log_probabilities, unguarded, totals, generated, beam=settings.beam, eos=eos
            )

        is_last = ids == eos
        if should_stop is not None:
            extended = torch.cat([_gather_beams(generated, beams), ids[:, :, None]], dim=2)
            is_last = is_last | find_stopped(extended, ~is_last & best.isfinite(), should_stop)
        ends = is_last & best.isfinite()
        if ends.any():
            _add_finished(results, sentences, generated, beams, ids.masked_fill(ids == eos, -1), best, ends, alpha)
            scores = (best / length_penalty(length, alpha)).masked_fill(~ends, -torch.inf)
            kept = torch.cat([kept, scores], dim=1).topk(settings.n_best).values

        is_stuck = best[:, 0].isneginf()  # no extension has a finite log-probability
        if is_stuck.any():
            _add_unfinished(results, sentences, generated, totals, is_stuck, settings)
        totals = best.masked_fill(is_last, -torch.inf)
        # Log-probabilities only decrease, and for α ≥ 0 the penalty is largest at the maximum length. The score of any
        # extension is therefore at most the beam's log-probability divided by that penalty. When n_best finished
        # hypotheses reach this bound, continuing cannot change them.
        is_done = is_stuck | (kept[:, -1] >= totals.amax(1) / longest) | (length >= limits)
        generated = torch.cat([_gather_beams(generated, beams), ids[:, :, None]], dim=2)
        rows = torch.arange(len(sentences), device=device)[:, None] * n_beams + beams
        if is_done.any():
            _add_unfinished(results, sentences, generated, totals, is_done & ~is_stuck, settings)
            rest = ~is_done
            sentences, limits, longest, kept = sentences[rest], limits[rest], longest[rest], kept[rest]
            generated, totals, rows = generated[rest], totals[rest], rows[rest]
        if rows.numel() and not _is_identity(rows, n_beams, len(is_done)):
            stepper.select(rows)
    return [best_first(hypotheses, settings.n_best) for hypotheses in results]


def _best_extensions(
    log_probabilities: Float[Tensor, "R V"], totals: Float[Tensor, "B N"], beam: int
) -> tuple[Float[Tensor, "B N2"], Int[Tensor, "B N2"], Int[Tensor, "B N2"]]:
    """The log-probabilities of the best extensions of each sentence, the beams that they extend, and their last ids."""
    # At most `beam` extensions of one beam can be among the best, so only the best of each are compared.
    n_choices = min(beam, log_probabilities.size(1))
    choices, choice_ids = (x.unflatten(0, totals.shape) for x in log_probabilities.topk(n_choices))
    # topk ranks NaN above every number.
    candidates = (choices + totals[:, :, None]).nan_to_num_(nan=-torch.inf, neginf=-torch.inf).flatten(1)
    best, index = candidates.topk(min(beam, candidates.size(1)))
    return best, index // n_choices, choice_ids.flatten(1).gather(1, index)


def _gather_beams(generated: Int[Tensor, "B N T"], beams: Int[Tensor, "B N2"]) -> Int[Tensor, "B N2 T"]:
    return generated.gather(1, beams[:, :, None].expand(-1, -1, generated.size(2)))


def _is_identity(rows: Int[Tensor, "B N"], n_beams: int, n_sentences: int) -> bool:
    """Whether selecting these rows has no effect."""
    all_rows = torch.arange(n_sentences * n_beams, device=rows.device)
    return rows.numel() == len(all_rows) and torch.equal(rows.flatten(), all_rows)


def _add_finished(
    results: list[list[Hypothesis]],
    sentences: Int[Tensor, " B"],
    generated: Int[Tensor, "B N T"],
    beams: Int[Tensor, "B N2"],
    last: Int[Tensor, "B N2"],
    log_probabilities: Float[Tensor, "B N2"],
    ends: Bool[Tensor, "B N2"],
    alpha: float,
) -> None:
    """Record the hypotheses that end at this step; in `last`, −1 means EOS."""
    row, beam = ends.nonzero(as_tuple=True)
    ended = zip(
        sentences[row].tolist(),
        generated[row, beams[row, beam], 1:].tolist(),
        last[row, beam].tolist(),
        log_probabilities[row, beam].tolist(),
        strict=True,
    )
    for sentence, ids, final, log_probability in ended:
        complete = ids if final < 0 else [*ids, final]
        results[sentence].append(
            make_hypothesis(complete, log_probability, finished=True, alpha=alpha, length=len(ids) + 1)
        )


def _add_unfinished(
    results: list[list[Hypothesis]],
    sentences: Int[Tensor, " B"],
    generated: Int[Tensor, "B N T"],
    totals: Float[Tensor, "B N"],
    is_cut: Bool[Tensor, " B"],
    settings: DecodeSettings,
) -> None:
    """Record the unfinished beams of sentences that have no finished hypothesis."""
    for row in is_cut.nonzero().flatten().tolist():
        hypotheses = results[int(sentences[row])]
        if hypotheses:
            continue
        for ids, log_probability in zip(generated[row, :, 1:].tolist(), totals[row].tolist(), strict=True):
            if log_probability > -torch.inf:
                hypotheses.append(
                    make_hypothesis(ids, log_probability, finished=False, alpha=settings.alpha, length=len(ids))
                )
