"""What is chosen for texts with labels: classification and tagging, by one small encoder."""

import math
from collections.abc import Iterable

from manyheads.recipe.proposal import Choice, Proposal, data_choices, steady_choices
from manyheads.recipe.surveying import Survey, counted
from manyheads.tasks import ClassifySettings, TagSettings

_FEW = 2_000  # rows
_MANY = 100_000
_BUDGET = 20 * 60.0  # at most; small sets take a few minutes
_SHORT, _LONG = 128, 256  # pieces that are read at once
_SPARE = 300  # pieces that are no characters: bytes and special ones
_LEAST_STEPS = 400


def propose_classify(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for a classifier that suits this much text; there is but one size of it."""
    task = survey.task
    several = isinstance(task, ClassifySettings) and task.multi_label
    choices = [
        *data_choices(survey),
        Choice("tokenizer.kind", "bpe", "pieces of words, learnt from your text"),
        Choice("tokenizer.vocabulary", _n_pieces(survey), _why_pieces(survey)),
        Choice("task.kind", "classify", "one label for each text" if not several else "any number of labels a text"),
    ]
    if isinstance(task, ClassifySettings) and several:
        choices += [
            Choice("task.multi_label", True, "a text may have several labels, or none"),
            Choice("task.separator", task.separator, "what stands between them"),
        ]
    length = _SHORT if _n_pieces_of_a_text(survey) < 0.9 * _SHORT else _LONG
    choices += [
        *_model_choices(survey, length, "pieces that are read at once; longer texts are read in windows"),
        *_training_choices(survey, "label 200 valid texts to see how it goes"),
    ]
    return _proposal(choices, _n_epochs(survey.n_characters, 10.0, of=1_000_000))


def propose_tag(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for a tagger, with intents where there are any; there is but one size of it."""
    task = survey.task
    choices = [*data_choices(survey), *_unit_choices(survey)]
    choices.append(Choice("task.kind", "tag", "which words are what"))
    if isinstance(task, TagSettings) and task.intents:
        choices.append(Choice("task.intents", True, "each text has an intent besides"))
    wanted = survey.length(0.999) / 2 if _are_characters(survey) else _n_pieces_of_a_text(survey, 0.999)
    length = next((places for places in (_SHORT, _LONG, 2 * _LONG) if wanted < 0.9 * places), 4 * _LONG)
    choices += [
        *_model_choices(survey, length, "pieces; longer sentences are left out of training"),
        *_training_choices(survey, "tag 200 valid sentences to see how it goes"),
    ]
    return _proposal(choices, _n_epochs(survey.n_rows, 30.0, of=13_000))


def _proposal(choices: Iterable[Choice], n_epochs: float) -> Proposal:
    return Proposal(tuple(choices), "", n_epochs, "3 layers of width 128", _BUDGET, least_steps=_LEAST_STEPS)


def _unit_choices(survey: Survey) -> Iterable[Choice]:
    """A tagger of characters reads characters; one of words reads their pieces."""
    if _are_characters(survey):
        n_characters = len({sign for text in survey.texts for sign in text} - {" "})
        yield Choice("tokenizer.kind", "character", "the tags are of characters, so these are read")
        yield Choice("tokenizer.vocabulary", n_characters + _SPARE, "all there are, and the bytes of others")
    else:
        yield Choice("tokenizer.kind", "bpe", "pieces of words, learnt from your text")
        yield Choice("tokenizer.vocabulary", _n_pieces(survey), _why_pieces(survey))


def _are_characters(survey: Survey) -> bool:
    """Whether the units that are tagged are characters, as in Chinese."""
    n_units = sum(1 + text.count(" ") for text in survey.texts)
    return survey.has_many_signs and sum(map(len, survey.texts)) < 2.5 * n_units


def _model_choices(survey: Survey, max_length: int, why_length: str) -> Iterable[Choice]:
    about = _about(survey)
    yield Choice("model.width", 128, f"a small encoder is enough for {about}")
    yield Choice("model.n_encoder_layers", 3, "")
    yield Choice("model.n_heads", 4, "")
    yield Choice("model.feed_forward_width", 256, "")
    yield Choice("model.activation", "gelu", "")
    yield Choice("model.positions", "rotary", "how far words stand apart, rather than where")
    yield Choice("model.norm_place", "pre", "trains steadily at a high learning rate")
    yield Choice("model.dropout", _dropout(survey.n_rows), f"the less text, the more: {about}")
    yield Choice("model.max_length", max_length, why_length)


def _training_choices(survey: Survey, look: str) -> Iterable[Choice]:
    yield Choice("train.steps", 1, "")
    few = survey.n_rows < _FEW
    yield Choice("train.batch_tokens", 600 if few else 1200, "padded pieces of a batch: small ones learn more")
    yield from steady_choices(rate=2e-3, why_rate="at its peak; narrow models bear more", look=look)
    yield Choice("train.weight_decay", 0.01, "keeps weights that are of no use small")


def _about(survey: Survey) -> str:
    return f"{'' if survey.is_exact else 'about '}{counted(survey.n_rows, survey.noun)}"


def _n_epochs(size: int, n_epochs: float, of: int) -> float:
    """So many epochs of so much text, fewer of more."""
    return min(60.0, max(3.0, n_epochs * (of / max(1, size)) ** 0.4))


def _dropout(n_rows: int) -> float:
    for limit, dropout in ((20_000, 0.3), (_MANY, 0.2)):
        if n_rows < limit:
            return dropout
    return 0.1


_PIECES = ((200_000, 1000, 2000), (2_000_000, 2000, 4000), (20_000_000, 4000, 6000))  # below so many characters


def _n_pieces(survey: Survey) -> int:
    for limit, pieces, with_many_signs in _PIECES:
        if survey.n_characters < limit:
            return with_many_signs if survey.has_many_signs else pieces
    return 8000


def _why_pieces(survey: Survey) -> str:
    signs = "; most are single characters such as 字" if survey.has_many_signs else ""
    return f"each has to be met often enough to be learnt: {_about(survey)}{signs}"


def _n_pieces_of_a_text(survey: Survey, share: float = 0.99) -> int:
    """Of nearly the longest text: a piece is taken to have three characters, or one where there are many signs."""
    return math.ceil(survey.length(share) / (1 if survey.has_many_signs else 3))
