"""What is chosen for text without labels: language models."""

from manyheads.recipe.proposal import Choice, Proposal, data_choices, steady_choices
from manyheads.recipe.surveying import Survey, counted

_LITTLE = 3_000_000  # characters: too few to learn what words there are, so that characters are read
_MUCH = 50_000_000
_HOUR = 3600.0
_SPARE = 300  # pieces that are no characters: bytes and special ones


def propose_language(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for a language model that suits this much text."""
    size = survey.n_characters
    about = f"{'' if survey.is_exact else 'about '}{counted(size, 'character')}"
    width, layers = (192, 4) if size < 2 * _LITTLE else (256, 4) if size < _MUCH else (384, 6)
    by_character = size < _LITTLE
    pieces = _n_characters(survey) + _SPARE if by_character else 8000 if size < _MUCH else 16_000
    kind = "character" if by_character else "bpe"
    why = "there is too little text to learn words from" if by_character else "pieces of words, learnt from your text"
    choices = [
        *data_choices(survey),
        Choice("tokenizer.kind", kind, why),
        Choice("tokenizer.vocabulary", pieces, "each has to be met often enough to be learnt"),
        Choice("task.kind", "language", "what comes next"),
        Choice("model.width", width, f"enough for {about}"),
        Choice("model.n_decoder_layers", layers, ""),
        Choice("model.n_heads", width // 48 if width < 256 else width // 64, ""),
        Choice("model.feed_forward_width", 4 * width, ""),
        Choice("model.activation", "gelu", ""),
        Choice("model.positions", "rotary", "how far words stand apart, rather than where"),
        Choice("model.norm_place", "pre", "trains steadily at a high learning rate"),
        Choice("model.dropout", 0.2 if size < 2 * _LITTLE else 0.1, f"the less text, the more: {about}"),
        Choice("model.max_length", 256, "the context: how many pieces back it sees"),
        Choice("train.steps", 1, ""),
        Choice("train.batch_tokens", 2048, "pieces of a batch"),
        *steady_choices(
            rate=2e-3,
            why_rate="at its peak; narrow models bear more",
            look="foretell some of the valid text to see how it goes",
        ),
        Choice("train.weight_decay", 0.01, "keeps weights that are of no use small"),
        Choice("decode.method", "sample", "of what may come next, one is drawn by its probability"),
        Choice("decode.temperature", 0.8, "below 1, the likelier is drawn more often still"),
        Choice("decode.max_extra", 200, "pieces to write at most"),
    ]
    n_pieces = size if by_character else size / (1.5 if survey.has_many_signs else 4)
    return Proposal(
        tuple(choices),
        "",
        _n_epochs(n_pieces),
        f"{layers} layers of width {width}",
        _HOUR if size < _MUCH else 6 * _HOUR,
    )


def _n_epochs(n_pieces: float) -> float:
    """25 epochs of a million pieces, fewer of more."""
    return min(40.0, max(2.0, 25.0 * (1e6 / n_pieces) ** 0.5))


def _n_characters(survey: Survey) -> int:
    return len({sign for text in survey.texts for sign in text})
