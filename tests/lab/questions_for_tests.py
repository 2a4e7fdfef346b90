"""Small questions that tests run: they are registered by `registered`, in this process and in worker processes."""

import os
import signal
from dataclasses import replace

import torch

from manyheads.lab.lab_texts import NO_TEXT, LabText
from manyheads.lab.question import Answer, Arm, ArmComparison, Condition, Measure, Plot, Question
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model


def _text(text: str) -> LabText:
    return LabText({"en": text, "zh": f"中{text}"})


def _noise(setup: Setup, seed: int) -> dict[str, float]:
    """The value of the arm plus noise that depends on seed and arm: no training."""
    noise = torch.randn((), generator=torch.Generator().manual_seed(seed)).item()
    rate_penalty = abs(setup.learning_rate - setup.extra.get("best_rate", 3e-3))
    return {"value": setup.extra.get("level", 0.0) + 0.1 * noise - rate_penalty}


def _train(setup: Setup, seed: int) -> dict[str, float]:
    return {"value": train_model(setup, seed).test_scores(64)["accuracy"]}


ARITHMETIC = Question(
    id="arithmetic",
    title=_text("Arithmetic?"),
    method=_text("No training."),
    arms=(
        Arm("low", _text("low")),
        Arm("high", _text("high"), {"extra.level": 1.0, "extra.best_rate": 1e-2}),
        Arm("also-low", _text("also low")),
    ),
    conditions=(Condition("one", _text("one")), Condition("two", _text("two"), {"extra.unused": 1})),
    measures=(Measure("value", _text("value"), "higher"),),
    comparisons=(
        ArmComparison("high", "low", "value", "higher", _text("it is 1 more"), "one", is_key=True),
        ArmComparison("also-low", "low", "value", "same", _text("they are identical"), "one", margin=0.01),
    ),
    answer=Answer(_text("Higher by {{diff arithmetic high low one value}}."), _text("No difference.")),
    plots=(Plot("value"), Plot("value", "lines")),
    tuned_on="value",
    trial=_noise,
)

TRAINING = replace(
    ARITHMETIC,
    id="training",
    setup=Setup(
        model={"width": 16, "n_encoder_layers": 1, "feed_forward_width": 16, "n_heads": 2}, steps=6, n_rows=8, warmup=2
    ),
    arms=(
        Arm("one", _text("one")),
        Arm("other", _text("other")),
        Arm("plain", _text("plain"), {"model.scores": "dot"}),
    ),
    conditions=(Condition("-", NO_TEXT),),
    comparisons=(
        ArmComparison("other", "one", "value", "same", _text("the arms are identical"), margin=0.01),
        ArmComparison("plain", "one", "value", "lower", _text("unscaled")),
    ),
    answer=Answer(_text("Yes."), _text("No.")),
    learning_rates=(1e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_train,
)


def run_here(
    question: str, arm: str, condition: str, seed: int, learning_rate: float | None, is_full: bool
) -> dict[str, float]:
    """`run_trial` for the questions of this file."""
    asked = {one.id: one for one in (ARITHMETIC, TRAINING)}[question]
    setup = asked.cell_setup(asked.arm(arm), asked.condition(condition), is_full=is_full)
    torch.set_num_threads(1)
    return dict(asked.trial(setup if learning_rate is None else replace(setup, learning_rate=learning_rate), seed))


def die(*_: object) -> dict[str, float]:
    """A trial whose process is killed, as for lack of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
