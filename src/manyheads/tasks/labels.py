"""Labels of classifiers and taggers: their number, what a bundle says about them, and how doctor checks them."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.task_doctor import AnswerNoun, Source

MAX_LABELS = 100_000  # of texts
MAX_TAGS = 1000  # kinds of spans: a CRF has 16 numbers for each pair of them


def refuse_many_labels(labels: Sequence[str], most: int) -> None:
    """Raise DataError if the training rows have more different labels than `most`: it is the wrong column."""
    if len(labels) > most:
        examples = ", ".join(f"“{label[:20]}”" for label in labels[:3])
        raise DataError(
            _(
                "The training rows have {n_labels:,} different labels ({examples}, …); at most {most:,} are "
                "possible. Choose another column of labels.",
                n_labels=len(labels),
                examples=examples,
                most=most,
            )
        )


def check_label_metadata(metadata: Mapping[str, Any], most: int) -> None:
    """Raise ValueError unless the labels and numbers in a bundle's metadata are those of a trained task."""
    for name, limit in (("labels", most), ("intents", MAX_LABELS)):
        labels = metadata.get(name, [])
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            raise ValueError(f"metadata.{name} is not a list of texts.")
        if len(set(labels)) < len(labels) or len(labels) > limit:
            raise ValueError(
                f"metadata.{name} has {len(labels):,} labels; up to {limit:,} different ones are possible."
            )
    counts = metadata.get("counts", [1] * len(metadata["labels"]))
    if not isinstance(counts, list | tuple) or len(counts) != len(metadata["labels"]):
        raise ValueError("metadata.counts is not a list with a number for each label.")
    numbers = {"n_rows": 0, "n_calibrated": 0, **metadata}
    if not all(_is_count(number) for number in (*counts, numbers["n_rows"], numbers["n_calibrated"])):
        raise ValueError("metadata.counts, n_rows and n_calibrated must be whole numbers of at least 0.")
    temperature = metadata["temperature"]
    if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise ValueError("metadata.temperature must be greater than 0 and finite.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


RARE = 5  # a label with fewer examples is hardly learned
_IMBALANCE = 10  # the most frequent label has more than this many times the rows of the rarest
_MIN_NAME = 5  # characters; short names differ in one letter by chance
_MINORITY = 0.2  # a misspelled name is rarer than the right one
_MAX_COMPARED = 500  # labels; the number of pairs grows with the square


def is_lopsided(counts: Sequence[int]) -> bool:
    """Return whether one label has most of the rows, by far; counts are in descending order."""
    return bool(counts) and counts[0] > _IMBALANCE * counts[-1] and 2 * counts[0] > sum(counts)


def check_labels(
    counts: "Counter[str]", held_out: Mapping[str, "Counter[str]"], noun: AnswerNoun, *, per_row: bool
) -> Iterator[Finding]:
    """Check the labels of the training set, and those of the held-out sets against it.

    `per_row` means that each row has exactly one, so that always predicting the most frequent one is an answer.
    """
    yield check_rare(counts, noun)
    if per_row:
        yield check_balance(counts, noun)
    yield check_names(counts, noun)
    if held_out:
        yield check_unseen(counts, held_out, noun)


def check_rare(counts: "Counter[str]", noun: AnswerNoun) -> Finding:
    """Check for labels with too few examples."""
    check, total = f"rare {noun.plural.text}", len(counts)
    rare = sorted((count, label) for label, count in counts.items() if count < RARE)
    n_single = sum(count == 1 for count, _label in rare)
    message = _(
        "train: {total} {labels}; {counted} have fewer than {fewest} examples, {n_single} have one.",
        total=total,
        labels=noun.plural,
        counted=share(len(rare), total),
        fewest=RARE,
        n_single=n_single,
    )
    if not rare:
        return Finding(check, "good", message)
    fix = _(
        "Collect more examples or merge these {labels} with others: a model hardly learns them.", labels=noun.plural
    )
    examples = tuple(f"{label}: {count}" for count, label in rare[:MAX_EXAMPLES])
    return Finding(check, "warning", message, examples, fix)


def check_balance(counts: "Counter[str]", noun: AnswerNoun) -> Finding:
    """Check for a label that most rows have."""
    check, total = "balance", sum(counts.values())
    ranked = counts.most_common()
    if len(ranked) < 2:
        only = ranked[0][0] if ranked else ""
        message = _("train: every row has the {label} “{only}”.", label=noun.singular, only=only)
        fix = _("Give rows with at least two labels, or choose another column.")
        return Finding(check, "bad", message, (), fix)
    (first, n_first), (last, n_last) = ranked[0], ranked[-1]
    message = _(
        "train: {counted} rows have the {label} {first}; the rarest, {last}, has {n_last:,}.",
        counted=share(n_first, total),
        label=noun.singular,
        first=first,
        last=last,
        n_last=n_last,
    )
    if not is_lopsided([count for _label, count in ranked]):
        return Finding(check, "good", message)
    fix = _(
        "Always predicting {first} is right as often: look at the scores of each {label}, and collect more rows of the "
        "others.",
        first=first,
        label=noun.singular,
    )
    return Finding(check, "warning", message, (), fix)


def check_names(counts: "Counter[str]", noun: AnswerNoun) -> Finding:
    """Check for different names that seem to mean the same."""
    check = f"similar {noun.plural.text}"
    alike = [
        (name, other)
        for name, other in combinations(sorted(counts)[:_MAX_COMPARED], 2)
        if _are_alike(name, other, counts)
    ]
    if not alike:
        message = _("train: no two {labels} differ only in case, spacing or one letter.", labels=noun.plural)
        return Finding(check, "good", message)
    message = _("train: {n_pairs} pairs of {labels} have nearly the same name.", n_pairs=len(alike), labels=noun.plural)
    examples = tuple(
        f"“{name}” ({counts[name]:,}), “{other}” ({counts[other]:,})" for name, other in alike[:MAX_EXAMPLES]
    )
    fix = _("If they mean the same, use one name for both.")
    return Finding(check, "warning", message, examples, fix)


def _are_alike(name: str, other: str, counts: Mapping[str, int]) -> bool:
    plain, plain_other = (re.sub(r"[\W_]+", "", text.casefold()) for text in (name, other))
    if plain and plain == plain_other:
        return True
    is_rarer = min(counts[name], counts[other]) <= _MINORITY * max(counts[name], counts[other])
    return is_rarer and min(len(plain), len(plain_other)) >= _MIN_NAME and _is_one_edit(plain, plain_other)


def _is_one_edit(name: str, other: str) -> bool:
    """Return whether one letter is replaced, missing or extra; digits number different things."""
    if abs(len(name) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    shorter, longer = sorted((name, other), key=len)
    rest = longer[start + 1 :] == shorter[start + (len(name) == len(other)) :]
    return rest and not any(text[start : start + 1].isdecimal() for text in (name, other))


def check_unseen(counts: "Counter[str]", held_out: Mapping[str, "Counter[str]"], noun: AnswerNoun) -> Finding:
    """Check for labels of the held-out sets that the training set lacks."""
    check = f"unseen {noun.plural.text}"
    unseen = {
        name: Counter({label: n for label, n in found.items() if label not in counts})
        for name, found in held_out.items()
    }
    total = sum(sum(found.values()) for found in held_out.values())
    n_unseen = sum(sum(found.values()) for found in unseen.values())
    names = " + ".join(held_out)
    message = _(
        "{names}: the {label} of {counted} examples does not occur in train.",
        names=names,
        label=noun.singular,
        counted=share(n_unseen, total),
    )
    if not n_unseen:
        return Finding(check, "good", message)
    examples = tuple(f"{name}: {label} ({n:,})" for name, found in unseen.items() for label, n in found.most_common(2))
    fix = _(
        "They are always wrong: check the spelling of the {labels}, or move some of these rows to train.",
        labels=noun.plural,
    )
    verdict = verdict_of(n_unseen, total, warn=0.0, fail=0.1)
    return Finding(check, verdict, message, examples[:MAX_EXAMPLES], fix)


def check_contradictions(source: Source, field: int, noun: AnswerNoun) -> Finding:
    """Count rows whose text, ignoring case and spacing, also occurs with another value of this field."""
    first: dict[int, str] = {}
    contradicted: set[int] = set()
    keys: list[int] = []
    for row in source.rows():
        key = hash(" ".join(row[0].casefold().split()))
        keys.append(key)
        if row[0].strip() and first.setdefault(key, row[field]) != row[field]:
            contradicted.add(key)
    count = sum(key in contradicted for key in keys)
    verdict = verdict_of(count, len(keys), warn=0.005, fail=0.2)
    message = _(
        "{name}: {counted} rows have a text that also occurs with another {label}.",
        name=source.name,
        counted=share(count, len(keys)),
        label=noun.singular,
    )
    check = f"contradicting {noun.plural.text}"
    if verdict == "good":
        return Finding(check, verdict, message)
    chosen = next(key for key in keys if key in contradicted)
    examples = [
        f"{source.location(index)}: {excerpt(row[0])} → {row[field]}"
        for index, (key, row) in enumerate(zip(keys, source.rows(), strict=False))
        if key == chosen
    ]
    fix = _(
        "Decide on one {label} for each text: no model can learn both, and the score has a ceiling.",
        label=noun.singular,
    )
    return Finding(check, verdict, message, tuple(examples[:MAX_EXAMPLES]), fix)
