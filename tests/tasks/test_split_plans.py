"""The plan of a batch divided into micro-batches, for every task: the same rows, tokens and loss as the whole."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.data import Encoded, Texts
from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Seq2Seq,
    Seq2SeqSettings,
    Tag,
    TagSettings,
    TrainingData,
)
from manyheads.training import ProcessGroup, Trainer, TrainSettings
from manyheads.training.micro_batches import split_plan

from tasks import makers, small
from training.ranks import run_ranks

LABELED = [(f"{start} {noun} was fine", label) for start in ("the", "our") for noun in "abc" for label in ("x", "y")]
TAGGED = [
    (f"{name} lives in {city} .", "B-PER O O B-LOC O") for name in ("Ada", "Bo", "Cy") for city in ("Rome", "Oslo")
]


def seq2seq(folder: Path, untrained: Bundle) -> Any:
    task = untrained.task
    Texts.write(folder / "text", corpora.pairs("en", "zh", "train", 30), 2)
    texts = Texts.open(folder / "text")
    encode = partial(Seq2Seq.encode_rows, tokenizer=task.tokenizer, settings=Seq2SeqSettings())
    Encoded.write(folder / "ids", texts, encode, 63)
    return task.training_task(TrainingData(Encoded.open(folder / "ids", texts), batch_tokens=200))


def classify(folder: Path, untrained: Bundle) -> Any:
    task = small.make_task(Classify, ClassifySettings(), LABELED)
    return task.training_task(small.make_training_data(task, LABELED, folder))


def tag(folder: Path, untrained: Bundle) -> Any:
    task = small.make_task(Tag, TagSettings(), TAGGED)
    return task.training_task(small.make_training_data(task, TAGGED, folder))


def language(folder: Path, untrained: Bundle) -> Any:
    tokenizer = makers.TOKENIZERS["character"]
    task = Language.create(makers.make_model(tokenizer, "decoder"), tokenizer, LanguageSettings())
    return task.training_task(makers.make_training_data(folder, Language, tokenizer, task.settings, batch_tokens=280))


def masked(folder: Path, untrained: Bundle) -> Any:
    tokenizer = makers.TOKENIZERS["character"]
    model = makers.make_model(tokenizer, "encoder", positions="rotary")
    task = Masked.create(model, tokenizer, MaskedSettings(whole_words=False))
    return task.training_task(makers.make_training_data(folder, Masked, tokenizer, task.settings, batch_tokens=280))


@pytest.mark.parametrize("make", [seq2seq, classify, tag, language, masked], ids=lambda make: make.__name__)
def test_parts_of_a_batch_add_up_to_it(make: Callable[..., Any], tmp_path: Path, untrained: Bundle) -> None:
    training_task = make(tmp_path, untrained)
    plan = max(training_task.plan(0), key=len)
    whole = training_task.make(plan, 7)
    for n_parts in (1, 2, 3, 4):
        parts = split_plan(training_task, plan, n_parts)
        assert len(parts) == n_parts and all(part is not None for part in parts)
        batches = [training_task.make(part, 7) for part in parts]
        assert all(batch.n_tokens > 0 for batch in batches)
        assert sum(batch.n_tokens for batch in batches) == whole.n_tokens
        if make is not masked:  # the masks of a part are its own
            apart = sum(training_task.loss(batch, 1) * batch.n_tokens for batch in batches)
            torch.testing.assert_close(apart, training_task.loss(whole, 1) * whole.n_tokens)


@pytest.mark.parametrize("make", [seq2seq, language], ids=lambda make: make.__name__)
def test_a_batch_of_fewer_rows_than_parts_has_empty_parts(
    make: Callable[..., Any], tmp_path: Path, untrained: Bundle
) -> None:
    training_task = make(tmp_path, untrained)
    plan = training_task.plan(0)[0][:2]
    if make is language:
        plan[:, 0] = 0, 1  # two rows of one window each
    parts = [part for part in split_plan(training_task, plan, 5) if part is not None]
    assert [len(part) for part in parts] == [1, 1]
    assert sum(training_task.make(part, 7).n_tokens for part in parts) == training_task.make(plan, 7).n_tokens


def three_losses(group: ProcessGroup, make: Callable[..., Any], folder: Path) -> list[float] | None:
    """The losses of three steps with dropout, as rank 0 of a group sees them."""
    training_task = make(folder / str(group.rank), None)
    module = (
        training_task.model if make is language else training_task.module if make is tag else training_task.task.module
    )
    settings = TrainSettings(steps=3, warmup=2, learning_rate=0.003, micro_batches=4)
    trainer = Trainer(module, training_task, settings, width=32, seed=1, group=group)
    trainer.share()
    losses = None
    if group.is_first:
        losses = [event.loss for event in trainer.run()]
        group.command("stop")
    else:
        trainer.follow()
    group.finish()
    return losses


@pytest.mark.parametrize("make", [classify, tag, language, masked], ids=lambda make: make.__name__)
def test_two_processes_train_every_task_as_one_does(make: Callable[..., Any], tmp_path: Path) -> None:
    alone = three_losses(ProcessGroup(), make, tmp_path / "alone")
    first, second = run_ranks(2, three_losses, make, tmp_path / "together")
    assert second is None
    assert first == pytest.approx(alone, rel=1e-5)
