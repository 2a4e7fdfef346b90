"""Small untrained models and stored rows for tests of classify and tag."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from manyheads.bundle import Bundle
from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Embed, EmbedSettings, TrainingData
from manyheads.tasks.task import Task
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings


def make_task(kind: type[Task], settings: Any, rows: Sequence[Row], **changes: Any) -> Any:
    """Create an untrained task for these rows."""
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(kind.lines(rows), TokenizerSettings(vocab_size=340))
    model = Transformer(
        ModelSettings(
            **{
                "vocab_size": tokenizer.vocab_size, "shape": "encoder", "width": 32, "n_encoder_layers": 1,
                "n_heads": 2, "feed_forward_width": 64, "positions": "rotary", "norm_placement": "pre",
                "max_length": 64,
            } | changes
        )
    )  # fmt: skip
    task = kind.create(model, tokenizer, settings, rows)
    task.module.eval()
    return task


def make_training_data(
    task: Task, rows: Sequence[Row], folder: Path, batch_tokens: int = 300, **changes: Any
) -> TrainingData:
    """Store the rows as a run does."""
    Texts.write(folder / "text", rows, len(rows[0]))
    texts = Texts.open(folder / "text")
    encode = partial(task.encode_rows, tokenizer=task.tokenizer, settings=task.settings)
    Encoded.write(folder / "ids", texts, encode, task.max_row_length(task.model.settings, task.settings))
    return TrainingData(encoded=Encoded.open(folder / "ids", texts), batch_tokens=batch_tokens, **changes)


def save_encoder(folder: Path, rows: Sequence[Row], **changes: Any) -> Path:
    """Write a bundle of an encoder with random weights, as an import would: learned positions, post-norm."""
    settings = EmbedSettings(pooling="mean", normalize=True)
    sizes = {"positions": "learned", "norm_placement": "post", "n_encoder_layers": 2, "max_length": 128}
    task: Any = make_task(Embed, settings, rows, **(sizes | changes))
    Bundle(task, DecodeSettings(), {"data": {"builtin": "en"}, "task": {"kind": "embed"}}).save(folder)
    return folder
