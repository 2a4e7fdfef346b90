"""What is chosen for text without labels: language models, and encoders that learn to fill gaps."""

from collections.abc import Iterable
from dataclasses import dataclass

from manyheads.init.proposal import Choice, Proposal, data_choices, schedule_choices
from manyheads.init.survey import DatasetStats, pluralized

_LITTLE = 3_000_000  # characters: too few to learn what words there are, so that characters are read
_MUCH = 50_000_000
_HOUR = 3600.0
_SPARE = 300  # tokens that are no characters: bytes and special ones
_MOST_CHARACTERS = 6000  # of which each is a token
_STRIDE = 64
_SHORT, _LONG = 128, 256  # places of the context


@dataclass(frozen=True)
class _Decoder:
    """The size of a language model, and how long it learns: `n_epochs` of a million tokens, fewer of more."""

    width: int
    layers: int
    heads: int
    feed_forward_width: int
    activation: str
    dropout: float
    rate: float
    n_epochs: float


# Letters are few and their order is all there is to learn: deep and narrow. Words and characters are many.
_LETTERS = _Decoder(160, 6, 5, 432, "swiglu", 0.1, 3e-3, 22.0)
_MANY_CHARACTERS = _Decoder(192, 4, 6, 768, "gelu", 0.15, 2e-3, 11.0)
_WORDS = _Decoder(256, 4, 8, 1024, "gelu", 0.2, 2e-3, 11.0)
_MANY_WORDS = _Decoder(384, 6, 8, 1536, "gelu", 0.1, 1e-3, 11.0)


def propose_language(stats: DatasetStats, preset: str = "") -> Proposal:
    """A recipe for a language model that suits this much text."""
    size = stats.n_characters
    decoder = _decoder(stats)
    places = _SHORT if size < _LITTLE and stats.length_quantile(0.99) < 0.9 * _SHORT else _LONG
    choices = [
        *data_choices(stats),
        *_token_choices(stats, by_character=size < _LITTLE),
        Choice("task.kind", "language", "what comes next"),
        *_document_choices(stats),
        *_stride_choices(stats),
        Choice("model.width", decoder.width, f"enough for {_about(stats)}"),
        Choice("model.n_decoder_layers", decoder.layers, ""),
        Choice("model.n_heads", decoder.heads, ""),
        Choice("model.feed_forward_width", decoder.feed_forward_width, ""),
        Choice("model.activation", decoder.activation, ""),
        *_model_choices(stats, decoder.dropout),
        Choice("model.max_length", places, "the context: how many tokens back it sees"),
        *_training_choices(decoder.rate, "foretell some of the valid text to see how it goes"),
        Choice("decode.method", "sample", "of what may come next, one is drawn by its probability"),
        Choice("decode.temperature", 0.8, "below 1, the likelier is drawn more often still"),
        Choice("decode.top_p", 0.9, "what is very unlikely is never drawn"),
        Choice("decode.max_new_tokens", 200, "tokens to write at most"),
    ]
    n_epochs = _n_epochs(size if size < _LITTLE else size / _characters_of_a_token(stats), decoder.n_epochs)
    return Proposal(tuple(choices), "", n_epochs, f"{decoder.layers} layers of width {decoder.width}", _budget(size))


def _decoder(stats: DatasetStats) -> _Decoder:
    if stats.n_characters < _LITTLE:
        return _MANY_CHARACTERS if stats.has_many_characters else _LETTERS
    return _WORDS if stats.n_characters < _MUCH else _MANY_WORDS


def propose_masked(stats: DatasetStats, preset: str = "") -> Proposal:
    """A recipe for an encoder that learns the words of this text, to begin a classifier or a tagger from."""
    size = stats.n_characters
    choices = [
        *data_choices(stats),
        *_token_choices(stats, by_character=False),
        Choice("task.kind", "masked", "which tokens were hidden; begin other tasks from it with init_from"),
        *_document_choices(stats),
        Choice("model.width", 128, "as wide as the classifiers and taggers that begin from it"),
        Choice("model.n_encoder_layers", 3, ""),
        Choice("model.n_heads", 4, ""),
        Choice("model.feed_forward_width", 256, ""),
        Choice("model.activation", "gelu", ""),
        *_model_choices(stats, 0.1),
        Choice("model.max_length", _LONG, "tokens that are read at once"),
        *_training_choices(2e-3, "fill gaps of some of the valid text to see how it goes"),
    ]
    n_epochs = 2 * _n_epochs(size / _characters_of_a_token(stats), 11.0)  # of each epoch, little is asked
    return Proposal(tuple(choices), "", n_epochs, "3 layers of width 128", _budget(size) / 2)


def _token_choices(stats: DatasetStats, *, by_character: bool) -> Iterable[Choice]:
    size = stats.n_characters
    if by_character:
        vocab_size = min(_MOST_CHARACTERS, len({character for text in stats.texts for character in text}) + _SPARE)
        yield Choice("tokenizer.kind", "character", f"too little text to learn words from: {_about(stats)}")
        yield Choice("tokenizer.vocab_size", vocab_size, "the characters there are, and bytes that spell rare ones")
        return
    tokens = 2000 if size < _LITTLE / 2 else 4000 if size < 2 * _LITTLE else 8000 if size < _MUCH else 16_000
    yield Choice("tokenizer.kind", "bpe", "tokens of words, learnt from your text")
    yield Choice("tokenizer.vocab_size", tokens, f"each has to be met often enough to be learnt: {_about(stats)}")


def _document_choices(stats: DatasetStats) -> Iterable[Choice]:
    documents = getattr(stats.task, "documents", "file")
    if documents != "file":
        yield Choice("task.documents", documents, "each is a document of its own")


def _stride_choices(stats: DatasetStats) -> Iterable[Choice]:
    """A shorter stride takes longer to score, which only a short text is worth."""
    if stats.n_scored_characters < _LITTLE / 20:
        yield Choice("task.stride", _STRIDE, "in scoring, all but so many tokens of the context come before each")


def _model_choices(stats: DatasetStats, dropout: float) -> Iterable[Choice]:
    yield Choice("model.positions", "rotary", "how far words stand apart, rather than where")
    yield Choice("model.norm_placement", "pre", "trains steadily at a high learning rate")
    yield Choice("model.dropout", dropout, f"the less text, the more: {_about(stats)}")


def _training_choices(rate: float, validation_reason: str) -> Iterable[Choice]:
    yield Choice("train.steps", 1, "")
    yield Choice("train.batch_tokens", 2048, "tokens of a batch: small ones learn more")
    yield from schedule_choices(
        rate=rate,
        rate_reason="at its peak; narrow models bear more",
        validation_reason=validation_reason,
        ema_decay=0.998,
    )
    yield Choice("train.weight_decay", 0.05, "keeps weights that are of no use small")


def _about(stats: DatasetStats) -> str:
    return f"{'' if stats.is_exact else 'about '}{pluralized(stats.n_characters, 'character')}"


def _characters_of_a_token(stats: DatasetStats) -> float:
    return 1.5 if stats.has_many_characters else 4.0


def _n_epochs(n_tokens: float, of_a_million: float) -> float:
    return min(40.0, max(2.0, of_a_million * (1e6 / n_tokens) ** 0.5))


def _budget(n_characters: int) -> float:
    return _HOUR if n_characters < _LITTLE else 1.5 * _HOUR if n_characters < _MUCH else 6 * _HOUR
