"""`stream`: yield the ids of one continuation as they are generated, over a sliding context of any length."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from manyheads.decode.hypotheses import forbid_repeats
from manyheads.decode.sampling import random_streams, sample_ids
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper, stepper_for
from manyheads.messages import _
from manyheads.model import Transformer, evaluating

_KEPT = 0.75  # share of a full context that is kept; dropping less would recompute it more often


class GeneratedToken(NamedTuple):
    """One generated id and its log-probability."""

    id: int
    log_probability: float


def stream(
    model: Transformer,
    prompt: Sequence[int],
    *,
    bos: int,
    eos: int,
    forbidden: Sequence[int],
    settings: DecodeSettings,
    number: int = 0,
    sample: int = 0,
) -> Iterator[GeneratedToken]:
    """Yield what `search` generates after a prompt, EOS included: greedily, or sample `sample` of stream `number`.

    When prompt and continuation exceed the model's `max_length`, the latest three quarters of them become the new
    context after BOS, and older ids are dropped.
    """
    if settings.method == "beam":
        raise ValueError(_("Beam search cannot be streamed: it revises earlier tokens. Use greedy or sample."))
    max_length = model.settings.max_length
    forbidden_ids = torch.tensor(sorted({*forbidden, bos}), device=model.device)
    generator = random_streams([number], settings)[0][sample]
    context = list(prompt[-(max_length - 1) :] if max_length > 1 else [])
    stepper: Stepper | None = None
    newest = bos
    generated: list[int] = []
    for _step in range(settings.max_length()):
        if len(context) + 1 > max_length:
            context, stepper = context[-max(1, int(_KEPT * max_length) - 1) :], None
        with evaluating(model):
            if stepper is None:
                ids = torch.tensor([context], dtype=torch.long, device=model.device)
                stepper, newest = stepper_for(model)(model, prompt=ids), bos
            step = stepper.step(torch.tensor([newest], device=model.device))
            step = step.nan_to_num_(nan=-torch.inf, neginf=-torch.inf).index_fill_(1, forbidden_ids, -torch.inf)
            if settings.no_repeat_ngram is not None:
                earlier = torch.tensor([generated], dtype=torch.long, device=model.device)
                forbid_repeats(step, earlier, settings.no_repeat_ngram)
            is_greedy = settings.method == "greedy"
            chosen = step.argmax(dim=-1) if is_greedy else sample_ids(step, [generator], settings)
            newest, log_probability = int(chosen), float(step[0, chosen])
        if log_probability == -torch.inf:  # every id is forbidden
            return
        yield GeneratedToken(newest, log_probability)
        if newest == eos:
            return
        context.append(newest)
        generated.append(newest)
