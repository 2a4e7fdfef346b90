"""What is chosen for texts with labels: classification and tagging, by one small encoder."""

import math
from collections.abc import Iterable

from manyheads.recipe.proposal import Choice, Proposal, data_choices, steady_choices
from manyheads.recipe.surveying import Survey, counted
from manyheads.tasks import ClassifySettings, TagSettings

_FEW = 2_000  # rows
_SOME = 20_000
_MANY = 200_000
_BUDGET = 20 * 60.0  # seconds, at most; small sets take a few minutes
_SHORT, _LONG = 128, 256  # pieces that are read at once
_SPARE = 300  # pieces that are no characters: bytes and special ones
_LEAST_STEPS = 400
_LAYERS = ("1 layer", "2 layers", "3 layers")


def propose_classify(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for a classifier that suits this much text."""
    task, rows = survey.task, survey.n_rows
    layers = 1 if rows < _SOME else 2 if rows < _MANY else 3
    length = _SHORT if _n_pieces_of_a_text(survey) < 0.9 * _SHORT else _LONG
    choices = [*data_choices(survey), *_piece_choices(survey)]
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
        Choice("task.phrases", 3, "up to three pieces in a row also count by themselves: hard to beat on few texts"),
        Choice("task.head_dropout", dropout, "of what the label is told by"),
        *_model_choices(survey, layers, dropout),
        Choice("model.token_dropout", round(dropout - 0.1, 1), "of whole words: no word is to be relied on alone"),
        Choice("model.max_length", length, "pieces that are read at once; longer texts are read in windows"),
        *_training_choices(1000 if rows < _FEW else 3000, 1e-3, "label 200 valid texts to see how it goes"),
    ]
    return _proposal(choices, layers, _n_epochs(survey.n_characters, 12.0, of=1_000_000, power=0.3))


def propose_tag(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for a tagger, with intents where there are any; there is but one size of it."""
    task, are_characters = survey.task, _are_characters(survey)
    wanted = survey.length(0.999) / 2 if are_characters else _n_pieces_of_a_text(survey, 0.999)
    length = next((places for places in (_SHORT, _LONG, 2 * _LONG) if wanted < 0.9 * places), 4 * _LONG)
    choices = [*data_choices(survey), *(_character_choices(survey) if are_characters else _piece_choices(survey))]
    choices.append(Choice("task.kind", "tag", "which words are what"))
    if isinstance(task, TagSettings) and task.intents:
        choices.append(Choice("task.intents", True, "each text has an intent besides"))
        choices.append(Choice("task.smoothing", 0.1, "of intents: none is ever quite certain"))
    if not are_characters:
        choices.append(Choice("task.swapping", 0.3, "of the spans, so many are another of the same label"))
    dropout = 0.3 if survey.n_rows < _SOME else 0.2 if survey.n_rows < _MANY else 0.1
    choices += [
        Choice("task.phrases", 2, "a word and its neighbours also count by themselves: hard to beat on few texts"),
        *_model_choices(survey, 3, dropout),
        Choice("model.token_dropout", round(dropout / 2, 2), "of whole words: their neighbours have to tell, too"),
        Choice("model.max_length", length, "pieces; longer sentences are left out of training"),
        *_training_choices(600 if survey.n_rows < _FEW else 1500, 2e-3, "tag 200 valid sentences to see how it goes"),
    ]
    return _proposal(choices, 3, _n_epochs(survey.n_rows, 35.0, of=13_000, power=0.4))


def _proposal(choices: Iterable[Choice], layers: int, n_epochs: float) -> Proposal:
    size = f"{_LAYERS[layers - 1]} of width 128"
    return Proposal(tuple(choices), "", n_epochs, size, _BUDGET, least_steps=_LEAST_STEPS)


def _piece_choices(survey: Survey) -> Iterable[Choice]:
    signs = "; most are single characters such as 字" if survey.has_many_signs else ""
    why = f"each has to be met often enough to be learnt: {_about(survey)}{signs}"
    yield Choice("tokenizer.kind", "unigram", "pieces of words, learnt from your text")
    yield Choice("tokenizer.vocabulary", _n_pieces(survey), why)


def _character_choices(survey: Survey) -> Iterable[Choice]:
    n_characters = len({sign for text in survey.texts for sign in text} - {" "})
    yield Choice("tokenizer.kind", "character", "the tags are of characters, so these are read")
    yield Choice("tokenizer.vocabulary", n_characters + _SPARE, "all there are, and the bytes of others")


def _are_characters(survey: Survey) -> bool:
    """Whether the units that are tagged are characters, as in Chinese."""
    n_units = sum(1 + text.count(" ") for text in survey.texts)
    return survey.has_many_signs and sum(map(len, survey.texts)) < 2.5 * n_units


def _model_choices(survey: Survey, layers: int, dropout: float) -> Iterable[Choice]:
    about = _about(survey)
    yield Choice("model.width", 128, f"a small encoder is enough for {about}")
    yield Choice("model.n_encoder_layers", layers, "")
    yield Choice("model.n_heads", 4, "")
    yield Choice("model.feed_forward_width", 256, "")
    yield Choice("model.activation", "gelu", "")
    yield Choice("model.positions", "rotary", "how far words stand apart, rather than where")
    yield Choice("model.norm_place", "pre", "trains steadily at a high learning rate")
    yield Choice("model.dropout", dropout, f"the less text, the more: {about}")


def _training_choices(batch: int, rate: float, look: str) -> Iterable[Choice]:
    yield Choice("train.steps", 1, "")
    yield Choice("train.batch_tokens", batch, "padded pieces of a batch: small ones learn more")
    yield from steady_choices(rate=rate, why_rate="at its peak; narrow models bear more", look=look, ema=0.998)
    yield Choice("train.weight_decay", 0.01, "keeps weights that are of no use small")


def _about(survey: Survey) -> str:
    return f"{'' if survey.is_exact else 'about '}{counted(survey.n_rows, survey.noun)}"


def _n_epochs(size: int, n_epochs: float, of: int, power: float) -> float:
    """So many epochs of so much text, fewer of more."""
    return min(60.0, max(3.0, n_epochs * (of / max(1, size)) ** power))


_PIECES = ((150_000, 2000, 4000), (2_000_000, 4000, 8000), (20_000_000, 8000, 8000))  # below so many characters


def _n_pieces(survey: Survey) -> int:
    for limit, pieces, with_many_signs in _PIECES:
        if survey.n_characters < limit:
            return with_many_signs if survey.has_many_signs else pieces
    return 16000


def _n_pieces_of_a_text(survey: Survey, share: float = 0.99) -> int:
    """Of nearly the longest text: a piece is taken to have three characters, or one where there are many signs."""
    return math.ceil(survey.length(share) / (1 if survey.has_many_signs else 3))
