"""A bundle as large as BERT base (12 layers of 12 heads, width 768) and a text of a given number of tokens.

The weights are random: nothing is trained here. Attention of random weights is almost uniform, which no trained model's
is, and which no page could show. So the queries of every head are scaled: from layer to layer and from head to head the
mean entropy falls from almost uniform to a few tokens, as in a trained encoder.
"""

from bisect import bisect_right
from pathlib import Path

import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.lens import trace
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Masked
from manyheads.tasks.masked.masked_training import MaskedSettings
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

LAYERS = HEADS = 12
WIDTH = 768
# The page's survey of heads reads the validation set, which is not there: the page is measured, not the survey.
RECIPE = {"data": {"train": ["missing.txt"], "valid": ["missing.txt"]}, "task": {"kind": "masked"}}
_SHARPNESS = (1.0, 12.0)  # the factor of the first and of the last head's queries


def stories() -> str:
    """Return stories of the built-in corpus, as one text."""
    return " ".join(text for (text,) in corpora.rows("generate", "en", "train", 400))


def make_bundle(folder: Path) -> Bundle:
    """Write the bundle, and return it."""
    tokenizer = Tokenizer.train(stories().split(". "), TokenizerSettings(vocab_size=1500))
    torch.manual_seed(12)
    settings = ModelSettings(
        vocab_size=tokenizer.vocab_size,
        shape="encoder",
        width=WIDTH,
        n_encoder_layers=LAYERS,
        feed_forward_width=4 * WIDTH,
        n_heads=HEADS,
        max_length=2048,
        norm_placement="pre",
    )
    model = Transformer(settings).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("query.weight"):
                low, high = _SHARPNESS
                factors = low * (high / low) ** torch.linspace(0, 1, HEADS)
                weight *= factors.repeat_interleave(WIDTH // HEADS)[:, None]
    bundle = Bundle(task=Masked(model, tokenizer, MaskedSettings()), decode=DecodeSettings(), recipe=RECIPE, scores={})
    bundle.save(folder)
    return bundle


def text_of(bundle: Bundle, n_tokens: int) -> str:
    """Return a text that the model reads as about this many tokens, special tokens included."""
    words = stories().split()
    count = bundle.task.tokenizer.encode
    ends = bisect_right(range(len(words)), n_tokens - 1, key=lambda end: len(count(" ".join(words[:end]))))
    return " ".join(words[: ends - 1])


def attention_of(bundle: Bundle, text: str) -> tuple[list[torch.Tensor], list[str]]:
    """Return the weights of every layer as (1, heads, queries, keys), and the tokens: what BertViz takes."""
    recorded = trace(bundle, text, checked=False)
    weights = [one.weights[None] for one in recorded.attentions.values()]
    keys = next(iter(recorded.attentions.values())).keys
    return weights, [token.text for token in keys]
