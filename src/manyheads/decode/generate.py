"""`search` decodes with any method over any stepper; `generate` decodes with a model."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.decode.beam_search import beam_search
from manyheads.decode.constraints import Automaton, Constraint, PhraseConstraint
from manyheads.decode.copying import Copying
from manyheads.decode.hypotheses import Hypothesis, make_hypothesis
from manyheads.decode.memory_use import sentences_at_once
from manyheads.decode.sampling import StoppingCriterion, greedy_or_sample
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper, stepper_for
from manyheads.model import Tap, Transformer, evaluating


def search(
    stepper: Stepper,
    max_lengths: Sequence[int],
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    streams: Sequence[int] | None = None,
    should_stop: StoppingCriterion | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each row, best first: at least one, at most `n_best`.

    Maximum lengths include EOS. A hypothesis cut off at the maximum length is returned only if none finished, or as a
    sample. The ids of `forbidden` and `bos` are never generated; probabilities are not renormalized for it.
    `streams` numbers the random stream of each row and defaults to the row index. A caller that reorders its inputs
    passes their original indices, so that an input draws the same sample in any batch. `should_stop` is called with
    the generated ids after each step and finishes a hypothesis that has not reached EOS; the last id stays.
    `constraint` constrains beam search.
    """
    streams = range(len(max_lengths)) if streams is None else streams
    forbidden = sorted({*forbidden, bos})
    open_rows = [row for row, length in enumerate(max_lengths) if length > 0]
    empty = make_hypothesis([], 0.0, finished=False, alpha=settings.alpha, length=0)
    results = [[empty] for _ in max_lengths]
    if not open_rows:
        return results
    if len(open_rows) < len(max_lengths):
        stepper.select(torch.tensor(open_rows, device=stepper.device)[:, None])
    lengths = [max_lengths[row] for row in open_rows]
    if settings.method == "beam":
        decoded = beam_search(
            stepper,
            lengths,
            bos=bos,
            eos=eos,
            forbidden=forbidden,
            settings=settings,
            should_stop=should_stop,
            constraint=None if constraint is None else constraint.select(torch.tensor(open_rows)),
        )
    else:
        decoded = greedy_or_sample(
            stepper,
            lengths,
            bos=bos,
            eos=eos,
            forbidden=forbidden,
            settings=settings,
            streams=[streams[row] for row in open_rows],
            should_stop=should_stop,
        )
    for row, hypotheses in zip(open_rows, decoded, strict=True):
        results[row] = hypotheses
    return results


def generate(
    model: Transformer,
    source: Int[Tensor, "B S"] | None = None,
    source_is_real: Bool[Tensor, "B S"] | None = None,
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    prompt: Int[Tensor, "B P"] | None = None,
    streams: Sequence[int] | None = None,
    should_stop: StoppingCriterion | None = None,
    copied: Sequence[int] = (),
    phrases: Sequence[Automaton] = (),
    tap: Tap | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source, or after each prompt, as `search` does; they do not repeat the prompt.

    A model without encoder takes a prompt only. All prompts have the same length, which may be 0. Inputs that would
    need too much memory together, such as many with a wide beam, are decoded in parts, unless a tap observes them. Beam
    search generates each of the ids `copied` as often as they are in the source, or what the `phrases` of each source
    require, for which the default maximum length is larger.
    """
    inputs = prompt if source is None else source
    if inputs is None:
        raise TypeError("generate needs a source or a prompt.")
    if not len(inputs):
        return []
    n_prompt = 0 if prompt is None else prompt.size(1)
    # BOS and the prompt take positions; the last generated id is never an input.
    n_free = max(0, model.settings.max_length - n_prompt)
    lengths = [0] * len(inputs)
    if source is not None:
        lengths = [source.size(1)] * len(source) if source_is_real is None else source_is_real.sum(1).tolist()
    max_lengths = [min(settings.max_length(length), n_free) for length in lengths]
    if settings.max_new_tokens is None:
        for row, automaton in enumerate(phrases):
            length = settings.max_length(lengths[row]) + automaton.n_tokens
            max_lengths[row] = min(n_free, length if automaton.max_length is None else automaton.max_length)
    streams = range(len(inputs)) if streams is None else streams
    n_at_once = sentences_at_once(model.settings, settings, n_prompt + max(max_lengths)) if tap is None else len(inputs)
    hypotheses = []
    with evaluating(model):
        for start in range(0, len(inputs), n_at_once):
            part = slice(start, start + n_at_once)
            rows = [None if tensor is None else tensor[part] for tensor in (source, source_is_real, prompt)]
            stepper = stepper_for(model)(model, rows[0], rows[1], prompt=rows[2], tap=tap)
            constraint: Constraint | None = PhraseConstraint(phrases[part]) if phrases else None
            if copied and rows[0] is not None:
                constraint = Copying.of(rows[0], copied)
            hypotheses += search(
                stepper,
                max_lengths[part],
                bos=bos,
                eos=eos,
                forbidden=forbidden,
                settings=settings,
                streams=streams[part],
                should_stop=should_stop,
                constraint=constraint,
            )
    return hypotheses
