"""`stream`: one continuation, id by id as each is chosen, of any length: the window slides."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from manyheads.decode.greedy_sampling import draw_uniforms, sample_ids
from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper, stepper_for
from manyheads.model import Transformer, evaluating

_KEPT = 0.75  # of the context stays when it is full: the rest makes room, so that it is seldom read again


class GeneratedToken(NamedTuple):
    """One id, and how probable it was."""

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
    """What `search` would write after a prompt, EOS too: greedily, or as one of the samples of row `number`.

    Where prompt and continuation outgrow the model's `max_length`, the newest three quarters of it are read again
    after BOS, and what is older is forgotten.
    """
    if settings.method == "beam":
        raise ValueError("A beam search takes back what it has written: it cannot be streamed.")
    context = model.settings.max_length
    forbidden_ids = torch.tensor(sorted({*forbidden, bos}), device=model.device)
    uniforms = draw_uniforms([number], [settings.max_new_tokens], settings)[0, sample].to(forbidden_ids.device)
    read = list(prompt[-(context - 1) :] if context > 1 else [])
    stepper: Stepper | None = None
    newest = bos
    for uniform in uniforms:
        if len(read) + 1 > context:
            read, stepper = read[-max(1, int(_KEPT * context) - 1) :], None
        with evaluating(model):
            if stepper is None:
                ids = torch.tensor([read], dtype=torch.long, device=forbidden_ids.device)
                stepper, newest = stepper_for(model)(model, prompt=ids), bos
            step = stepper.step(torch.tensor([newest], device=forbidden_ids.device))
            step = step.nan_to_num_(nan=-torch.inf, neginf=-torch.inf).index_fill_(1, forbidden_ids, -torch.inf)
            chosen = step.argmax(dim=-1) if settings.method == "greedy" else sample_ids(step, uniform[None], settings)
            newest, gained = int(chosen), float(step[0, chosen])
        if gained == -torch.inf:  # no id is possible
            return
        yield GeneratedToken(newest, gained)
        if newest == eos:
            return
        read.append(newest)
