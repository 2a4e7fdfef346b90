"""What is chosen for texts with labels: classification and tagging, by one small encoder."""

import math
from collections.abc import Iterable

from manyheads.init.proposal import Choice, Proposal, data_choices, schedule_choices
from manyheads.init.survey import DatasetStats, pluralized
from manyheads.tasks import ClassifySettings, TagSettings

_FEW = 2_000  # rows
_SOME = 20_000
_MANY = 200_000
_BUDGET = 20 * 60.0  # seconds, at most; small sets take a few minutes
_SHORT, _LONG = 128, 256  # tokens that are read at once
_SPARE = 300  # tokens that are no characters: bytes and special ones
_MIN_STEPS = 400
_LAYERS = ("1 layer", "2 layers", "3 layers")


def propose_classify(stats: DatasetStats, preset: str = "") -> Proposal:
    """A recipe for a classifier that suits this much text."""
    task, rows = stats.task, stats.n_rows
    layers = 1 if rows < _SOME else 2 if rows < _MANY else 3
    length = _SHORT if _n_tokens_of_a_text(stats) < 0.9 * _SHORT else _LONG
    choices = [*data_choices(stats), *_token_choices(stats)]
    if isinstance(task, ClassifySettings) and task.multi_label:
        choices += [
            Choice("task.kind", "classify", "labels for each text"),
            Choice("task.multi_label", True, "a text may have several labels, or none"),
            Choice("task.separator", task.separator, "what stands between them"),
        ]
    else:
        choices.append(Choice("task.kind", "classify", "one label for each text"))
    dropout = 0.3 if rows < _SOME else 0.2 if rows < _MANY else 0.1
    choices += [
        Choice("task.ngrams", 3, "up to three tokens in a row also count by themselves: hard to beat on few texts"),
        Choice("task.head_dropout", dropout, "of what the label is told by"),
        *_model_choices(stats, layers, dropout),
        Choice("model.token_dropout", round(dropout - 0.1, 1), "of whole words: no word is to be relied on alone"),
        Choice("model.max_length", length, "tokens that are read at once; longer texts are read in windows"),
        *_training_choices(1000 if rows < _FEW else 3000, 1e-3, "label 200 valid texts to see how it goes"),
    ]
    return _proposal(choices, layers, _n_epochs(stats.n_characters, 12.0, of=1_000_000, power=0.3))


def propose_tag(stats: DatasetStats, preset: str = "") -> Proposal:
    """A recipe for a tagger, with intents where there are any; there is but one size of it."""
    task, are_characters = stats.task, _are_characters(stats)
    wanted = stats.length_quantile(0.999) / 2 if are_characters else _n_tokens_of_a_text(stats, 0.999)
    length = next((places for places in (_SHORT, _LONG, 2 * _LONG) if wanted < 0.9 * places), 4 * _LONG)
    choices = [*data_choices(stats), *(_character_choices(stats) if are_characters else _token_choices(stats))]
    choices.append(Choice("task.kind", "tag", "which words are what"))
    if isinstance(task, TagSettings) and task.intents:
        choices.append(Choice("task.intents", True, "each text has an intent besides"))
        choices.append(Choice("task.smoothing", 0.1, "of intents: none is ever quite certain"))
    if not are_characters:
        choices.append(Choice("task.swapping", 0.3, "of the spans, so many are another of the same label"))
    dropout = 0.3 if stats.n_rows < _SOME else 0.2 if stats.n_rows < _MANY else 0.1
    choices += [
        Choice("task.ngrams", 2, "a word and its neighbours also count by themselves: hard to beat on few texts"),
        *_model_choices(stats, 3, dropout),
        Choice("model.token_dropout", round(dropout / 2, 2), "of whole words: their neighbours have to tell, too"),
        Choice("model.max_length", length, "tokens; longer sentences are left out of training"),
        *_training_choices(600 if stats.n_rows < _FEW else 1500, 2e-3, "tag 200 valid sentences to see how it goes"),
    ]
    return _proposal(choices, 3, _n_epochs(stats.n_rows, 35.0, of=13_000, power=0.4))


def _proposal(choices: Iterable[Choice], layers: int, n_epochs: float) -> Proposal:
    size = f"{_LAYERS[layers - 1]} of width 128"
    return Proposal(tuple(choices), "", n_epochs, size, _BUDGET, min_steps=_MIN_STEPS)


def _token_choices(stats: DatasetStats) -> Iterable[Choice]:
    characters = "; most are single characters such as 字" if stats.has_many_characters else ""
    reason = f"each has to be met often enough to be learnt: {_about(stats)}{characters}"
    yield Choice("tokenizer.kind", "unigram", "tokens of words, learnt from your text")
    yield Choice("tokenizer.vocab_size", _vocab_size(stats), reason)


def _character_choices(stats: DatasetStats) -> Iterable[Choice]:
    n_characters = len({character for text in stats.texts for character in text} - {" "})
    yield Choice("tokenizer.kind", "character", "the tags are of characters, so these are read")
    yield Choice("tokenizer.vocab_size", n_characters + _SPARE, "all there are, and the bytes of others")


def _are_characters(stats: DatasetStats) -> bool:
    """Whether the words that are tagged are characters, as in Chinese."""
    n_words = sum(1 + text.count(" ") for text in stats.texts)
    return stats.has_many_characters and sum(map(len, stats.texts)) < 2.5 * n_words


def _model_choices(stats: DatasetStats, layers: int, dropout: float) -> Iterable[Choice]:
    about = _about(stats)
    yield Choice("model.width", 128, f"a small encoder is enough for {about}")
    yield Choice("model.n_encoder_layers", layers, "")
    yield Choice("model.n_heads", 4, "")
    yield Choice("model.feed_forward_width", 256, "")
    yield Choice("model.activation", "gelu", "")
    yield Choice("model.positions", "rotary", "how far words stand apart, rather than where")
    yield Choice("model.norm_placement", "pre", "trains steadily at a high learning rate")
    yield Choice("model.dropout", dropout, f"the less text, the more: {about}")


def _training_choices(batch: int, rate: float, validation_reason: str) -> Iterable[Choice]:
    yield Choice("train.steps", 1, "")
    yield Choice("train.batch_tokens", batch, "padded tokens of a batch: small ones learn more")
    yield from schedule_choices(
        rate=rate,
        rate_reason="at its peak; narrow models bear more",
        validation_reason=validation_reason,
        ema_decay=0.998,
    )
    yield Choice("train.weight_decay", 0.01, "keeps weights that are of no use small")


def _about(stats: DatasetStats) -> str:
    return f"{'' if stats.is_exact else 'about '}{pluralized(stats.n_rows, stats.noun)}"


def _n_epochs(size: int, n_epochs: float, of: int, power: float) -> float:
    """So many epochs of so much text, fewer of more."""
    return min(60.0, max(3.0, n_epochs * (of / max(1, size)) ** power))


_TOKENS = ((150_000, 2000, 4000), (2_000_000, 4000, 8000), (20_000_000, 8000, 8000))  # below so many characters


def _vocab_size(stats: DatasetStats) -> int:
    for limit, tokens, with_many_characters in _TOKENS:
        if stats.n_characters < limit:
            return with_many_characters if stats.has_many_characters else tokens
    return 16000


def _n_tokens_of_a_text(stats: DatasetStats, share: float = 0.99) -> int:
    """Of nearly the longest text: a token is taken to have three characters, or one where there are many characters."""
    return math.ceil(stats.length_quantile(share) / (1 if stats.has_many_characters else 3))
