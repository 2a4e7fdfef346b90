"""Labels of classifiers and taggers: their number, what a bundle says about them, and how doctor checks them."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from manyheads.errors import DataError
from manyheads.language import pick
from manyheads.messages import Message, _
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, share, verdict_of

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
    counts: "Counter[str]", held_out: Mapping[str, "Counter[str]"], noun: Message, *, per_row: bool
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


def check_rare(counts: "Counter[str]", noun: Message) -> Finding:
    """Check for labels with too few examples."""
    check, total = f"rare {noun.en}s", len(counts)
    rare = sorted((count, label) for label, count in counts.items() if count < RARE)
    n_single = sum(count == 1 for count, _ in rare)
    message = pick(
        f"train: {total} {noun.en}s; {share(len(rare), total)} have fewer than {RARE} examples, {n_single} have one.",
        f"train：共 {total} 个{noun.zh}；不足 {RARE} 条的有 {share(len(rare), total)}，其中 {n_single} 个只有一条。",
    )
    if not rare:
        return Finding(check, "good", message)
    fix = pick(
        f"Collect more examples or merge these {noun.en}s with others: a model hardly learns them.",
        f"请补充样例，或将这些{noun.zh}与其他合并：模型很难学会它们。",
    )
    examples = tuple(f"{label}: {count}" for count, label in rare[:MAX_EXAMPLES])
    return Finding(check, "warning", message, examples, fix)


def check_balance(counts: "Counter[str]", noun: Message) -> Finding:
    """Check for a label that most rows have."""
    check, total = "balance", sum(counts.values())
    ranked = counts.most_common()
    if len(ranked) < 2:
        only = ranked[0][0] if ranked else ""
        message = pick(f"train: every row has the {noun.en} “{only}”.", f"train：所有行的{noun.zh}都是“{only}”。")
        fix = _("Give rows with at least two labels, or choose another column.")
        return Finding(check, "bad", message, (), fix)
    (first, n_first), (last, n_last) = ranked[0], ranked[-1]
    message = pick(
        f"train: {share(n_first, total)} rows have the {noun.en} {first}; the rarest, {last}, has {n_last:,}.",
        f"train：{share(n_first, total)} 行的{noun.zh}是 {first}；最少的 {last} 有 {n_last:,} 行。",
    )
    if not is_lopsided([count for _, count in ranked]):
        return Finding(check, "good", message)
    fix = pick(
        f"Always predicting {first} is right as often: look at the scores of each {noun.en}, and collect more rows of"
        " the others.",
        f"总猜 {first} 也能答对这么多：请看每个{noun.zh}各自的得分，并补充其他{noun.zh}的数据。",
    )
    return Finding(check, "warning", message, (), fix)


def check_names(counts: "Counter[str]", noun: Message) -> Finding:
    """Check for different names that seem to mean the same."""
    check = f"similar {noun.en}s"
    alike = [
        (one, other) for one, other in combinations(sorted(counts)[:_MAX_COMPARED], 2) if _are_alike(one, other, counts)
    ]
    if not alike:
        message = pick(
            f"train: no two {noun.en}s differ only in case, spacing or one letter.",
            f"train：没有只差大小写、空格或一个字母的{noun.zh}。",
        )
        return Finding(check, "good", message)
    message = pick(
        f"train: {len(alike)} pairs of {noun.en}s have nearly the same name.",
        f"train：有 {len(alike)} 对{noun.zh}的名字几乎相同。",
    )
    examples = tuple(f"“{one}” ({counts[one]:,}), “{other}” ({counts[other]:,})" for one, other in alike[:MAX_EXAMPLES])
    fix = _("If they mean the same, use one name for both.")
    return Finding(check, "warning", message, examples, fix)


def _are_alike(one: str, other: str, counts: Mapping[str, int]) -> bool:
    plain_one, plain_other = (re.sub(r"[\W_]+", "", name.casefold()) for name in (one, other))
    if plain_one and plain_one == plain_other:
        return True
    is_rarer = min(counts[one], counts[other]) <= _MINORITY * max(counts[one], counts[other])
    return is_rarer and min(len(plain_one), len(plain_other)) >= _MIN_NAME and _is_one_edit(plain_one, plain_other)


def _is_one_edit(one: str, other: str) -> bool:
    """Return whether one letter is replaced, missing or extra; digits number different things."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    shorter, longer = sorted((one, other), key=len)
    rest = longer[start + 1 :] == shorter[start + (len(one) == len(other)) :]
    return rest and not any(name[start : start + 1].isdecimal() for name in (one, other))


def check_unseen(counts: "Counter[str]", held_out: Mapping[str, "Counter[str]"], noun: Message) -> Finding:
    """Check for labels of the held-out sets that the training set lacks."""
    check = f"unseen {noun.en}s"
    unseen = {
        name: Counter({one: n for one, n in found.items() if one not in counts}) for name, found in held_out.items()
    }
    total = sum(sum(found.values()) for found in held_out.values())
    n_unseen = sum(sum(found.values()) for found in unseen.values())
    names = " + ".join(held_out)
    message = pick(
        f"{names}: the {noun.en} of {share(n_unseen, total)} examples does not occur in train.",
        f"{names}：{share(n_unseen, total)} 个样例的{noun.zh}在 train 中没有。",
    )
    if not n_unseen:
        return Finding(check, "good", message)
    examples = tuple(f"{name}: {one} ({n:,})" for name, found in unseen.items() for one, n in found.most_common(2))
    fix = pick(
        f"They are always wrong: check the spelling of the {noun.en}s, or move some of these rows to train.",
        f"它们必然答错：请检查{noun.zh}的写法，或把其中一些行移到 train。",
    )
    verdict = verdict_of(n_unseen, total, warn=0.0, fail=0.1)
    return Finding(check, verdict, message, examples[:MAX_EXAMPLES], fix)
