"""What is chosen for pairs of texts: translation, summaries, dialogue."""

from collections.abc import Iterable

from manyheads.init.proposal import Choice, Proposal, data_choices, schedule_choices
from manyheads.init.survey import DatasetStats, pluralized
from manyheads.tasks import Seq2SeqSettings

_FEW = 5_000  # pairs: every trick against overfitting
_SOME = 200_000  # from here on a wider model pays
_MANY = 2_000_000
_HOUR = 3600.0


def propose_translation(stats: DatasetStats, preset: str = "") -> Proposal:
    """A recipe for translation that suits this much text; `preset` asks for another size of model."""
    n = stats.n_rows
    wanted = "tiny" if n < _SOME else "small" if n < _MANY else "base"
    preset = preset or wanted
    smaller = f"; {wanted} would suit the text, but is too slow here" if preset != wanted else ""
    about = f"{'' if stats.is_exact else 'about '}{pluralized(n, 'pair')}"
    tokens = _vocab_size(stats)
    choices = [
        *data_choices(stats),
        *_language_choices(stats),
        Choice("tokenizer.kind", "bpe", "tokens of words, learnt from your text"),
        Choice("tokenizer.vocab_size", tokens, _vocab_reason(stats, about)),
        Choice("model.preset", preset, f"{_SIZES[preset]}: enough for {about}{smaller}"),
        Choice("model.norm_placement", "pre", "trains steadily at a high learning rate"),
        Choice("model.dropout", _dropout(n), f"the less text, the more: {about}"),
        Choice("model.max_length", _max_length(stats), "tokens; longer sentences are left out of training"),
        Choice("task.smoothing", 0.1, "label smoothing: never quite sure of itself, which helps beam search"),
        *_training_choices(n, preset),
        Choice("decode.beam", 5, "hypotheses kept side by side when translating"),
    ]
    if n < _FEW:
        sampling = Choice(
            "tokenizer.sampling", 0.1, "cuts words differently each time they are met: more from few pairs"
        )
        choices.insert([choice.name for choice in choices].index("tokenizer.vocab_size") + 1, sampling)
    return Proposal(
        tuple(choices), preset, count_epochs(n), f"preset {preset}, {_SIZES[preset]}", default_budget(stats.n_rows)
    )


def default_budget(n_pairs: int) -> float:
    """Seconds that are worth spending on so much text."""
    return _HOUR if n_pairs < _SOME else 6 * _HOUR if n_pairs < _MANY else 24 * _HOUR


_SIZES = {
    "tiny": "4 + 4 layers of width 128",
    "small": "4 + 4 layers of width 256",
    "base": "6 + 6 layers of width 512",
}
_RATES = {"tiny": 3e-3, "small": 2e-3, "base": 1e-3}
BATCH_TOKENS = {"tiny": 1200, "small": 3000, "base": 8000}  # small ones learn more from as many tokens


def _language_choices(stats: DatasetStats) -> Iterable[Choice]:
    if isinstance(stats.task, Seq2SeqSettings) and stats.task.purpose != "translation":
        yield Choice("task.purpose", stats.task.purpose, "what is written for what is read")
    for side, language in zip(("source", "target"), stats.languages, strict=True):
        reason = "how BLEU cuts words depends on it" if side == "target" else "the language translated from"
        if language:
            yield Choice(f"task.{side}_language", language, reason)


def _training_choices(n_pairs: int, preset: str) -> Iterable[Choice]:
    """Steps and what follows from them are put in by `with_steps`, when the length of an epoch is known."""
    yield Choice("train.steps", 1, "")
    few = n_pairs < _FEW
    yield Choice(
        "train.batch_tokens", 1000 if few else BATCH_TOKENS[preset], "padded tokens of a batch, on either side"
    )
    if preset == "base":
        yield Choice("train.accumulation_steps", 3, "batches an update is made of: large models like 25,000 tokens")
    yield from schedule_choices(
        rate=3e-3 if few else _RATES[preset],
        rate_reason="at its peak; narrow models bear more",
        validation_reason="translate 200 valid sentences to see how it goes",
    )


def count_epochs(n_pairs: int) -> float:
    """45 epochs of Multi30k's 29,000 pairs, fewer of more."""
    return min(100.0, max(3.0, 45.0 * (29_000 / n_pairs) ** 0.55))


_TOKENS = (  # below so many pairs: so many tokens; with many characters: so many
    (1_000, 1000, 1500),
    (_FEW, 2000, 3000),
    (15_000, 4000, 3000),
    (60_000, 6000, 4000),
    (500_000, 8000, 10_000),
    (_MANY, 16_000, 16_000),
)


def _vocab_size(stats: DatasetStats) -> int:
    for limit, tokens, with_many_characters in _TOKENS:
        if stats.n_rows < limit:
            return with_many_characters if stats.has_many_characters else tokens
    return 32_000


def _vocab_reason(stats: DatasetStats, about: str) -> str:
    characters = "; most are single characters such as 字" if stats.has_many_characters else ""
    return f"each has to be met often enough to be learnt: {about}{characters}"


def _dropout(n_pairs: int) -> float:
    """Little: in the hours one has, a small model learns too little rather than too much (benchmarks/quality.md)."""
    for limit, dropout in ((_FEW, 0.3), (15_000, 0.2), (500_000, 0.15)):
        if n_pairs < limit:
            return dropout
    return 0.1


def _max_length(stats: DatasetStats) -> int:
    """256, 512 or 1024 places: room for all sentences but one in a thousand, unless they are longer still.

    A token is taken to have three characters, or one where it is written with many characters.
    """
    lengths = sorted(max(map(len, pair)) for pair in stats.sample)
    long = lengths[int(0.999 * (len(lengths) - 1))]
    wanted = long if stats.has_many_characters else long / 3
    return next((places for places in (256, 512) if wanted < 0.9 * places), 1024)
