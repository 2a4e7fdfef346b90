"""Displayed names of scores, test sets, rows, cleaning reasons and losses."""

from collections.abc import Callable, Mapping
from functools import reduce

from manyheads.messages import Message, PluralMessage

_NAMES = {
    message.text: message
    for message in (
        Message("held-out test"),
        Message("unseen combinations"),
        Message("validation"),
        Message("cross-validation"),
        # Scores
        Message("accuracy"),
        Message("accuracy where answered"),
        Message("accuracy of masked tokens"),
        Message("macro-F1"),
        Message("micro-F1"),
        Message("exact match"),
        Message("exact sentences"),
        Message("precision"),
        Message("recall"),
        Message("intent accuracy"),
        Message("calibration error"),
        Message("out-of-scope AUROC"),
        Message("false alarms"),
        Message("calibration error of intents"),
        Message("nats per character"),
        Message("bits per byte"),
        Message("perplexity per word"),
        Message("perplexity per token"),
        Message("perplexity of masked tokens"),
        Message("BLEU (tokenized, lowercased)"),
        # Reasons why a row is dropped
        Message("empty"),
        Message("too long"),
        Message("length ratio"),
        Message("bad encoding"),
        Message("duplicate"),
        Message("in valid or test"),
        Message("in test"),
        Message("held out for validation"),
        # Terms of the loss
        Message("label smoothing"),
        Message("intent loss"),
    )
}
_ROWS: dict[str, Callable[[int], Message]] = {  # by `Task.noun`
    "sentence pairs": lambda n: PluralMessage("1 sentence pair", "{n:,} sentence pairs", n),
    "labeled texts": lambda n: PluralMessage("1 labeled text", "{n:,} labeled texts", n),
    "tagged texts": lambda n: PluralMessage("1 tagged text", "{n:,} tagged texts", n),
    "texts": lambda n: PluralMessage("1 text", "{n:,} texts", n),
    "sentences": lambda n: PluralMessage("1 sentence", "{n:,} sentences", n),
    "documents": lambda n: PluralMessage("1 document", "{n:,} documents", n),
}
_LOSS_UNITS = {  # by `Task.loss_unit`
    "tok": Message("token"),
    "texts": Message("text"),
    "words": Message("word"),
    "masked": Message("masked token"),
}
_SETS = {"test": "held-out test", "compositional": "unseen combinations", "valid": "validation"}


def display_name(name: str) -> Message:
    """Return a name to display; an unlisted name is returned unchanged."""
    name = _SETS.get(name, name)
    return _NAMES.get(name) or Message("{name}", name=name)


def loss_unit_name(unit: str) -> Message:
    """Return what the loss is averaged over, in the singular."""
    return _LOSS_UNITS.get(unit) or Message("{name}", name=unit)


def loss_name(unit: str, terms: Mapping[str, float]) -> Message:
    """Return what a loss measures: "nats per token, with label smoothing 0.1"; `terms` are in it beside the entropy."""
    nats = Message("nats per {unit}", unit=loss_unit_name(unit))
    weighted = [Message("{term} {weight:g}", term=display_name(term), weight=weight) for term, weight in terms.items()]
    if not weighted:
        return nats
    listed = reduce(lambda first, second: Message("{first} and {second}", first=first, second=second), weighted)
    return Message("{nats}, with {terms}", nats=nats, terms=listed)


def count_rows(noun: str, n: int) -> Message:
    """Return a number of rows: "2,000 sentence pairs"."""
    return _ROWS[noun](n) if noun in _ROWS else Message("{n:,} {noun}", n=n, noun=noun)


def rows_name(noun: str, n_kept: int, dropped: Mapping[str, int]) -> Message:
    """Return how many rows are used, and how many are kept out and why, the most frequent reason first."""
    n_out = sum(dropped.values())
    if not n_out:
        return count_rows(noun, n_kept)
    return Message(
        "{n_kept:,} of {all_rows} · {n_out:,} kept out: {reasons}",
        n_kept=n_kept,
        all_rows=count_rows(noun, n_kept + n_out),
        n_out=n_out,
        reasons=reasons_name(dropped),
    )


def reasons_name(dropped: Mapping[str, int]) -> Message:
    """Return how many rows are dropped for each reason, the most frequent one first."""
    counts = sorted((item for item in dropped.items() if item[1]), key=lambda item: -item[1])
    return reduce(
        lambda first, second: Message("{first}, {second}", first=first, second=second),
        (Message("{n:,} {reason}", n=count, reason=display_name(reason)) for reason, count in counts),
    )
