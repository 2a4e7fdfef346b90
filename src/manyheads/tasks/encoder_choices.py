"""The choices that `init` makes for a small encoder, shared by classify and tag."""

import math
from collections.abc import Iterable

from manyheads.language import pick
from manyheads.tasks.proposal import Choice, Proposal, Survey, schedule_choices

FEW_ROWS = 2_000
SOME_ROWS = 20_000
MANY_ROWS = 200_000
N_SPARE_TOKENS = 300  # tokens that are not characters: bytes and special tokens

_BUDGET = 20 * 60.0  # seconds, at most; small sets take a few minutes
_MIN_STEPS = 400
# (below this many characters, vocabulary size, vocabulary size of a script with many characters)
_VOCAB_SIZES = ((150_000, 2000, 4000), (2_000_000, 4000, 8000), (20_000_000, 8000, 8000))


def encoder_proposal(choices: Iterable[Choice], layers: int, n_epochs: float) -> Proposal:
    """The proposal for an encoder with this many layers."""
    return Proposal(tuple(choices), n_epochs, layers_of_width(layers, 128), budget=_BUDGET, min_steps=_MIN_STEPS)


def layers_of_width(n_layers: int, width: int) -> str:
    """The size of a model for the screen, in the language in use."""
    layers = "1 layer" if n_layers == 1 else f"{n_layers} layers"
    return pick(f"{layers} of width {width}", f"{n_layers} 层，宽度 {width}")


def token_choices(survey: Survey) -> Iterable[Choice]:
    """A unigram tokenizer whose vocabulary grows with the text."""
    characters = "; most are single characters such as 字" if survey.has_many_characters else ""
    reason = f"small enough for every token to occur often: {survey.size}{characters}"
    yield Choice("tokenizer.kind", "unigram", "subword tokens, learned from your text")
    yield Choice("tokenizer.vocab_size", _vocab_size(survey), reason)


def encoder_choices(survey: Survey, layers: int, dropout: float) -> Iterable[Choice]:
    """The size of the encoder."""
    yield Choice("model.width", 128, f"a small encoder is enough for {survey.size}")
    yield Choice("model.n_encoder_layers", layers)
    yield Choice("model.n_heads", 4)
    yield Choice("model.feed_forward_width", 256)
    yield Choice("model.activation", "gelu")
    yield from stable_choices(survey, dropout)


def stable_choices(survey: Survey, dropout: float) -> Iterable[Choice]:
    """Positions, norm placement and dropout."""
    yield Choice("model.positions", "rotary", "relative positions: the distance between words")
    yield Choice("model.norm_placement", "pre", "trains stably at a high learning rate")
    yield Choice("model.dropout", dropout, f"more for less text: {survey.size}")


def training_choices(
    *, batch_tokens: int, learning_rate: float, validation_reason: str, weight_decay: float = 0.01
) -> Iterable[Choice]:
    """Batches and schedule; `init` fills in the numbers of steps."""
    yield Choice("train.steps", 1)
    yield Choice(
        "train.batch_tokens", batch_tokens, "padded tokens of a batch: small batches learn more from each epoch"
    )
    yield from schedule_choices(learning_rate=learning_rate, validation_reason=validation_reason, ema_decay=0.998)
    yield Choice("train.weight_decay", weight_decay, "shrinks weights that do not contribute")


def dropout_for(survey: Survey) -> float:
    """More dropout for fewer rows."""
    return 0.3 if survey.n_rows < SOME_ROWS else 0.2 if survey.n_rows < MANY_ROWS else 0.1


def count_epochs(size: int, n_epochs: float, of: int, power: float) -> float:
    """`n_epochs` for data of size `of`, fewer for more data."""
    return min(60.0, max(3.0, n_epochs * (of / max(1, size)) ** power))


def text_tokens(survey: Survey, share: float) -> int:
    """Estimated tokens of a text that this share of texts does not exceed.

    A token has about three characters; one in a script with many characters.
    """
    return math.ceil(survey.length_quantile(share) / (1 if survey.has_many_characters else 3))


def _vocab_size(survey: Survey) -> int:
    for limit, vocab_size, with_many_characters in _VOCAB_SIZES:
        if survey.n_characters < limit:
            return with_many_characters if survey.has_many_characters else vocab_size
    return 16000
