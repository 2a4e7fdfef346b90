"""Every tensor is made on the device of the model: all tasks train, predict and score on a device that is no CPU.

`make test` tries one task, `make proofs` all of them.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.lens import trace
from manyheads.lens.importance import ablate, gradient_importance, single_heads
from manyheads.lens.interventions import text_importance
from manyheads.lens.scored_rows import open_sample
from manyheads.model import ModelSettings, Transformer
from manyheads.model.size import parameters_by_part
from manyheads.tasks import TASKS, GenerativeTask, PairTask, Task, TrainingData
from manyheads.text.reading.readers import Row
from manyheads.training import Checkpoints, Trainer, TrainSettings

from model.other_device import NAME, OtherDevice, OtherTensor, WrongDeviceError, moved
from tasks.small import make_task, make_training_data

# Settings of each task that take as many paths as possible: R-Drop, a convolution, n-grams, a CRF, intents.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "seq2seq": {"consistency": 1.0, "source_language": "en", "target_language": "de"},
    "classify": {
        "head_dropout": 0.0,
        "consistency": 1.0,
        "convolution": 3,
        "pooling": "mean-max",
        "class_weights": "balanced",
    },
    "tag": {
        "head_dropout": 0.0,
        "ngram_dropout": 0.0,
        "consistency": 1.0,
        "ngrams": 2,
        "decoder": "crf",
        "intents": True,
    },
    "language": {},
    "masked": {"whole_words": True},
}
MODELS: tuple[Mapping[str, Any], ...] = (
    {"positions": "rotary", "norm_placement": "pre"},
    {"positions": "learned", "norm": "rms", "activation": "swiglu", "token_dropout": 0.1, "head_dropout": 0.1},
    {"positions": "alibi", "attention_dropout": 0.1, "feed_forward_dropout": 0.1, "n_key_heads": 1},
    {"positions": "sinusoidal", "norm": "batch", "scores": "additive"},
)
TRAINED = [kind for kind in TASKS if TASKS[kind].init.is_offered]
OTHERS = [kind for kind in TRAINED if kind != "seq2seq"]
EACH_TASK = pytest.mark.parametrize(
    "kind", ["seq2seq", *(pytest.param(kind, marks=pytest.mark.proof) for kind in OTHERS)]
)


def rows_of(kind: str, settings: Any) -> list[Row]:
    languages = ("en", "de") if kind == "seq2seq" else ("en",)
    rows = [tuple(row) for row in TASKS[kind].builtin(settings, languages, "train", 24, 1)]
    return [(row[0][:80],) if len(row) == 1 else row for row in rows]  # documents are long


def make(kind: str, **model: Any) -> tuple[Any, list[Row]]:
    known = TASKS[kind].settings_type.__dataclass_fields__
    settings = TASKS[kind].settings_type(**{name: one for name, one in SETTINGS[kind].items() if name in known})
    rows = rows_of(kind, settings)
    shape = TASKS[kind].shape
    return make_task(TASKS[kind], settings, rows, shape=shape, n_decoder_layers=1, **{"dropout": 0.0, **model}), rows


def losses(task: Task, data: TrainingData, n_steps: int = 2) -> list[float]:
    """The loss and the gradient of a few batches."""
    training_task = task.training_task(data)
    task.module.train()
    results = []
    for number, plan in enumerate(training_task.plan(0)[:n_steps]):
        random.seed(number)
        torch.manual_seed(number)
        task.module.zero_grad()
        loss = training_task.loss(training_task.make(plan, number), number + 1)
        loss.backward()
        gradients = [parameter.grad for parameter in task.module.parameters() if parameter.grad is not None]
        assert gradients
        results += [loss.item(), sum(gradient.abs().sum().item() for gradient in gradients)]
    task.module.eval()
    return results


@pytest.fixture
def other_device() -> Iterator[None]:
    with OtherDevice():
        yield


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("seq2seq", MODELS[0]),
        *(pytest.param("seq2seq", one, marks=pytest.mark.proof) for one in MODELS[1:]),
        *(pytest.param(kind, one, marks=pytest.mark.proof) for kind, one in zip(OTHERS, MODELS, strict=True)),
    ],
    ids=lambda one: one if isinstance(one, str) else one["positions"],
)
def test_training(kind: str, changes: Mapping[str, Any], tmp_path: Path) -> None:
    exact = {name: 0.0 if name.endswith("dropout") else one for name, one in changes.items()}
    task, rows = make(kind, **exact)
    data = make_training_data(task, rows, tmp_path, batch_tokens=150)
    expected = losses(task, data)
    task, _ = make(kind, **exact)
    moved(task.module)
    with OtherDevice():
        assert str(task.model.device) == NAME
        assert losses(task, data) == pytest.approx(expected, rel=1e-5)
    task, _ = make(kind, **{"dropout": 0.1, **changes})  # it draws other numbers on each device
    moved(task.module)
    with OtherDevice():
        assert all(map(math.isfinite, losses(task, data)))


@EACH_TASK
def test_predicting_and_scoring(kind: str) -> None:
    task, rows = make(kind)
    decode = {"max_new_tokens": 2}
    methods: list[dict[str, Any]] = [{}]
    if task.model.settings.has_decoder:
        methods = [{"method": "greedy"}, {"method": "beam", "beam": 3}, {"method": "sample", "seed": 3, "top_k": 5}]
    texts = [row[0][:12] for row in rows[:2]]
    scored = rows[: 1 if kind == "language" else 4]  # a document has many predictions
    if kind == "masked":
        texts = [f"{text} [MASK]" for text in texts]

    def answers(one: Any) -> list[Any]:
        if isinstance(one, PairTask):
            one = one.with_engine(EngineSelector("torch"))
        results: list[Any] = [one.predict(texts, DecodeSettings(**decode, **method)) for method in methods]
        results.append(one.validate(scored, one.metrics[0]))
        calibrated = one.calibrate(scored)
        results.append(calibrated.score(scored, DecodeSettings(**decode, **methods[0])).scores)
        if isinstance(one, GenerativeTask) and one.continues_prompts:
            results.append(list(one.stream(texts[0][:20], DecodeSettings(**decode))))
        return results

    expected = answers(task)
    task, _ = make(kind)
    moved(task.module)
    with OtherDevice():
        found = answers(task)
    if kind == "tag":  # sums of probabilities differ in their last digits
        (tagged, *found), (tagged_here, *expected) = found, expected
        for one, here in zip(tagged, tagged_here, strict=True):
            assert [entity[:3] for entity in map(astuple, one.answer)] == [
                entity[:3] for entity in map(astuple, here.answer)
            ]
            assert one.probabilities == pytest.approx(here.probabilities, rel=1e-4)
    assert found == expected


@EACH_TASK
def test_lens(kind: str) -> None:
    def looks(one: Any, rows: list[Row]) -> list[Any]:
        text = rows[0][0][:12] + (" [MASK]" if kind == "masked" else "")
        answer = "die Katze" if kind == "seq2seq" else None
        traced = trace(one, text, answer)
        model_input = one.model_input(text, answer or ("" if kind == "language" else None))
        with open_sample(
            one, rows[: 1 if kind == "language" else 3], DecodeSettings(method="greedy", max_new_tokens=3)
        ) as sample:
            importance = [head.raw for head in gradient_importance(one, sample, n_resamples=10)]
            ablations = ablate(one, sample, single_heads(one)[:2])
        effects = [] if kind == "language" else [value for _, value in text_importance(one, model_input)]
        weights = [value for head in traced.heads for value in traced.weights(head).flatten().tolist()]
        return [*weights, *importance, *(one.change.difference for one in ablations), *effects]

    task, rows = make(kind)
    expected = looks(task, rows)
    task, _ = make(kind)
    moved(task.module)
    with OtherDevice():
        assert looks(task, rows) == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_trainer_and_checkpoints(tmp_path: Path) -> None:
    """The optimizer, the EMA and what is restored are on the device; a resumed run computes the same numbers."""
    task, rows = make("masked")
    data = make_training_data(task, rows, tmp_path, batch_tokens=150)
    settings = TrainSettings(steps=4, warmup=2, learning_rate=0.01, ema_decay=0.9, accumulation_steps=2)

    def trainer() -> Trainer[Any]:
        one, _ = make("masked")
        moved(one.module)
        return Trainer(one.module, one.training_task(data), settings, width=32, seed=1)

    with OtherDevice():
        whole = [step.loss for step in trainer().run()]
        first = trainer()
        losses = [step.loss for _, step in zip(range(2), first.run(), strict=False)]
        Checkpoints(tmp_path / "run", 1).save(first, snapshot=True)
        second = trainer()
        assert Checkpoints(tmp_path / "run", 1).restore(second) == []
        assert second.ema is not None
        tensors = [*second.weights().values(), *second.ema.weights.values()]
        tensors += [state for one in second.optimizer.state.values() for state in one.values()]
        assert all(isinstance(tensor, OtherTensor) for tensor in tensors)
        with second.using_eval_weights():
            assert all(isinstance(tensor, OtherTensor) for tensor in second.weights().values())
        assert [*losses, *(step.loss for step in second.run())] == whole


@pytest.mark.parametrize("kind", TRAINED)
def test_training_under_autocast(kind: str, tmp_path: Path) -> None:
    """bfloat16 on the CPU takes the paths of autocast on a GPU."""
    task, rows = make(kind)
    data = make_training_data(task, rows, tmp_path, batch_tokens=150)
    expected = losses(task, data)
    with torch.autocast("cpu", torch.bfloat16):
        found = losses(task, data)
    assert found == pytest.approx(expected, rel=0.05)
    assert found != expected


def test_model_without_memory() -> None:
    """A model of any size can be built, and its encoder run, on torch's own meta device, which has shapes only."""
    settings = ModelSettings.preset("big", vocab_size=37_000)
    with torch.device("meta"):
        model = Transformer(settings)
        ids = torch.zeros(4, 9, dtype=torch.long)
        hidden = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    assert (hidden.shape, hidden.device.type) == ((4, 9, 1024), "meta")
    assert model.n_parameters == sum(parameters_by_part(settings).values())


def test_a_tensor_of_the_cpu_is_refused(other_device: None) -> None:
    """Negative controls: the device notices what a GPU would refuse."""
    here, there = torch.ones(3), torch.ones(3, device=NAME)
    assert isinstance(there, OtherTensor)
    assert isinstance(here.to(NAME), OtherTensor)
    assert not isinstance(there.cpu(), OtherTensor)
    there[[0, 2]] = 1.0
    assert (there * 2.0 + torch.tensor(1.0)).tolist() == [3.0, 3.0, 3.0]
    for mix in (
        lambda: here + there,
        lambda: there.masked_fill(here > 0, 0.0),
        lambda: torch.nn.functional.embedding(torch.tensor([0, 1]), there[:, None]),
        lambda: torch.cat([there, here]),
        lambda: there[torch.tensor([0, 1])],
        lambda: there.numpy(),
        lambda: there.double(),
    ):
        with pytest.raises(WrongDeviceError):
            mix()
