"""`search`: any method over any stepper. `generate`: the same straight from a model."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy_sampling import StoppingCriterion, greedy_or_sample
from manyheads.decode.hypotheses import Hypothesis, make_hypothesis
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
) -> list[list[Hypothesis]]:
    """Each row's hypotheses, best first: at least one, at most `n_best`.

    A maximum length counts every id written, EOS too. What was cut off there is returned only where nothing
    finished, or as a sample. The ids of `forbidden` are not written, nor is `bos`; probabilities are not
    rescaled for it. `streams` names each row's stream of random numbers (its index unless told): a caller that
    reorders its inputs passes their first order, and each input draws the same sample in any batch. `should_stop` is
    asked of everything written whether it is finished by now; its last id stays.
    """
    streams = range(len(max_lengths)) if streams is None else streams
    forbidden = sorted({*forbidden, bos})
    open_rows = [row for row, length in enumerate(max_lengths) if length > 0]
    found = [[make_hypothesis([], 0.0, finished=False, alpha=settings.length_penalty, length=0)] for _ in max_lengths]
    if not open_rows:
        return found
    if len(open_rows) < len(max_lengths):
        stepper.select(torch.tensor(open_rows, device=stepper.device)[:, None])
    lengths = [max_lengths[row] for row in open_rows]
    if settings.method == "beam":
        results = beam_search(
            stepper, lengths, bos=bos, eos=eos, forbidden=forbidden, settings=settings, should_stop=should_stop
        )
    else:
        kept = [streams[row] for row in open_rows]
        results = greedy_or_sample(
            stepper,
            lengths,
            bos=bos,
            eos=eos,
            forbidden=forbidden,
            settings=settings,
            streams=kept,
            should_stop=should_stop,
        )
    for row, result in zip(open_rows, results, strict=True):
        found[row] = result
    return found


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
    tap: Tap | None = None,
) -> list[list[Hypothesis]]:
    """What the model writes for each source, or after each prompt (as `search` gives it; the prompt left out).

    A model without encoder takes a prompt alone, of the same length in every row; it may be empty.
    """
    inputs = prompt if source is None else source
    if inputs is None:
        raise TypeError("Give a source, or a prompt to continue.")
    if not len(inputs):
        return []
    n_prompt = 0 if prompt is None else prompt.size(1)
    # BOS and the prompt take places of their own; the last id is never read.
    room = max(0, model.settings.max_length - n_prompt)
    lengths = [0] * len(inputs)
    if source is not None:
        lengths = [source.size(1)] * len(source) if source_is_real is None else source_is_real.sum(1).tolist()
    max_lengths = [min(length + settings.max_new_tokens, room) for length in lengths]

    with evaluating(model):
        stepper = stepper_for(model)(model, source, source_is_real, prompt=prompt, tap=tap)
        return search(
            stepper,
            max_lengths,
            bos=bos,
            eos=eos,
            forbidden=forbidden,
            settings=settings,
            streams=streams,
            should_stop=should_stop,
        )
