"""`stream`: one continuation, id by id as each is chosen, of any length: the window slides."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from manyheads.decode.settings import DecodeSettings
from manyheads.decode.steppers import Stepper, stepper_for
from manyheads.decode.walk import draw, draw_chances
from manyheads.model import Transformer

_KEPT = 0.75  # of the context stays when it is full: the rest makes room, so that it is seldom read again


class Written(NamedTuple):
    """One id, and how probable it was."""

    id: int
    log_probability: float


def stream(
    model: Transformer,
    prompt: Sequence[int],
    *,
    begin: int,
    end: int,
    never: Sequence[int],
    settings: DecodeSettings,
    number: int = 0,
    sample: int = 0,
) -> Iterator[Written]:
    """What `search` would write after a prompt, END too: greedily, or as one of the samples of row `number`.

    Where prompt and continuation outgrow the model's `max_length`, the newest three quarters of it are read again
    after BEGIN, and what is older is forgotten.
    """
    if settings.method == "beam":
        raise ValueError("A beam search takes back what it has written: it cannot be streamed.")
    context = model.settings.max_length
    forbidden = torch.tensor(sorted({*never, begin}), device=model.output.weight.device)
    chances = draw_chances([number], [settings.max_extra], settings)[0, sample].to(forbidden.device)
    read = list(prompt[-(context - 1) :] if context > 1 else [])
    stepper: Stepper | None = None
    newest = begin
    for chance in chances:
        if len(read) + 1 > context:
            read, stepper = read[-max(1, int(_KEPT * context) - 1) :], None
        was_training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                if stepper is None:
                    ids = torch.tensor([read], dtype=torch.long, device=forbidden.device)
                    stepper, newest = stepper_for(model)(model, prompt=ids), begin
                step = stepper.step(torch.tensor([newest], device=forbidden.device))
                step = step.nan_to_num_(nan=-torch.inf, neginf=-torch.inf).index_fill_(1, forbidden, -torch.inf)
                chosen = step.argmax(dim=-1) if settings.method == "greedy" else draw(step, chance[None], settings)
                newest, gained = int(chosen), float(step[0, chosen])
        finally:
            model.train(was_training)
        if gained == -torch.inf:  # no id is possible
            return
        yield Written(newest, gained)
        if newest == end:
            return
        read.append(newest)
