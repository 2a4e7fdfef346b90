"""Small untrained models and documents for tests of language and masked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from manyheads.data import Encoded, Texts
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Task, TrainingData
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

DOCUMENTS = [
    "the cat sat on the mat.\n\nTHE DOG:\nNo, no.\n",
    "the dog ran to the cat, and\nthe mat was red.\n",
    "a cat.",
    "no dog sat on  the red mat; the dog ran to the cat\nand sat.\n" * 8,
]
# White space, zero-width and control characters, a lone variation selector, a byte order mark.
BLANK_TEXTS = ["", "  ", "\t\r", "\u3000", "\u200b", "\u00ad\u200d", "\0\x07", "\u2028", "\ufe0f", "\ufeff"]
TOKENIZERS = {
    kind: Tokenizer.train(DOCUMENTS * 20, TokenizerSettings(kind=kind, vocab_size=400)) for kind in ("bpe", "character")
}


def make_model(tokenizer: Tokenizer, shape: str, **changes: Any) -> Transformer:
    sizes: dict[str, Any] = {"width": 16, "feed_forward_width": 24, "n_heads": 2, "max_length": 40}
    torch.manual_seed(3)
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 2}
    settings = ModelSettings(**{**sizes, **layers, **changes}, vocab_size=tokenizer.vocab_size, shape=shape)
    model = Transformer(settings).eval()
    with torch.no_grad():
        model.output.weight.mul_(2.0)  # so that the choices are clear
    return model


def make_training_data(
    folder: Path, task: type[Task], tokenizer: Tokenizer, settings: Any, **changes: Any
) -> TrainingData:
    rows = [(text,) for text in DOCUMENTS]
    Texts.write(folder / "text", rows, 1)
    texts = Texts.open(folder / "text")

    def encode(chunk: Sequence[Any]) -> Any:
        return task.encode_rows(chunk, tokenizer, settings)

    Encoded.write(folder / "ids", texts, encode, None)
    return TrainingData(Encoded.open(folder / "ids", texts), **{"batch_tokens": 120, **changes})
