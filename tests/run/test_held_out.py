"""Rows held out of training: enough of few rows, of every label, and the same on every machine."""

import random
import time
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.run import Corpus, DataSettings
from manyheads.run.held_out import hold_out, hold_out_by_label
from manyheads.tasks import ClassifySettings, TagSettings
from manyheads.text.reading.readers import Row


def labeled(**counts: int) -> list[Row]:
    return [(f"text {number} of {label}", label) for label, count in counts.items() for number in range(count)]


def label_of(row: Row) -> tuple[str, ...]:
    return (row[1],)


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(4, 0), (10, 2), (60, 12), (300, 50), (2000, 100), (40_000, 1000)])
def test_few_rows_hold_out_a_larger_share(n_rows: int, n_held_out: int) -> None:
    rows: list[Row] = [(f"source {number}", f"target {number}") for number in range(n_rows)]
    held_out = hold_out(rows)
    assert len(held_out) == pytest.approx(n_held_out, rel=0.1)
    assert len(hold_out_by_label(rows, lambda row: ())) == n_held_out
    assert set(held_out) <= set(rows)


def test_labels_are_held_out_in_proportion() -> None:
    held_out = hold_out_by_label(labeled(common=600, some=300, rare=100), label_of)
    assert Counter(label for _, label in held_out) == {"common": 30, "some": 15, "rare": 5}
    first = Counter(label for _, label in list(held_out)[:20])
    assert len(first) >= 2  # in the order of checksums: the first rows are not all of one label


def test_every_label_stays_in_training_and_frequent_enough_ones_are_validated() -> None:
    rows = labeled(one=1, two=2, five=5, many=900) + labeled(two=2)  # duplicates do not count
    held_out = hold_out_by_label(rows, label_of)
    counts = Counter(label for _, label in held_out)
    assert "one" not in counts and counts["two"] <= 1 and counts["five"] >= 1
    assert {label for row in rows if row not in held_out for label in label_of(row)} == {"one", "two", "five", "many"}
    assert len(hold_out_by_label(labeled(a=1, b=1, c=1), label_of)) == 0


def test_held_out_rows_depend_on_the_content_only() -> None:
    rows = labeled(a=200, b=100)
    shuffled = random.Random(1).sample(rows, len(rows))
    assert list(hold_out_by_label(rows, label_of)) == list(hold_out_by_label(shuffled, label_of))
    assert list(hold_out_by_label([*rows, *rows], label_of)) == list(hold_out_by_label(rows, label_of))


def test_fraction_is_kept() -> None:
    assert len(hold_out_by_label(labeled(a=300, b=100), label_of, 0.1)) == 40
    assert len(hold_out([(str(number), "") for number in range(2000)], 0.25)) == pytest.approx(500, rel=0.1)


def test_taggers_hold_out_by_the_types_of_their_spans_and_classifiers_by_their_labels() -> None:
    tag, several = TagSettings(intents=True), ClassifySettings(multi_label=True)
    corpora = [Corpus(DataSettings(train=("x.tsv",)), 1, task=task) for task in (tag, several)]
    rows = [("Ada flew to Rome", "B-PER O O B-LOC", "travel"), ("a text", "red|blue")]
    found = [corpus.task_class.init.labels_of(row, corpus.task) for corpus, row in zip(corpora, rows, strict=True)]
    assert found == [("LOC", "PER", "travel"), ("blue", "red")]
    assert all(corpus.task_class.init.is_labeled for corpus in corpora)


def test_copies_of_rows_do_not_leave_training_empty() -> None:
    rows: list[Row] = [(f"source {number % 40}", "target") for number in range(300)]
    assert len(hold_out(rows)) == 8  # one in five of the different rows


def test_sets_of_labels_that_occur_once_are_validated() -> None:
    names = "abcdefghij"
    rows: list[Row] = [(f"{x} {y} {z}", f"{x}|{y}|{z}") for x, y, z in combinations(names, 3)]
    rows.append(("alone", "a|alone"))
    held_out = hold_out_by_label(rows, lambda row: tuple(row[1].split("|")))
    assert len(held_out) == 24 and ("alone", "a|alone") not in held_out
    assert {label for row in held_out for label in row[1].split("|")} == set(names)
    assert {label for row in set(rows) - set(held_out) for label in row[1].split("|")} == {*names, "alone"}


def test_many_sets_of_labels_take_linear_time() -> None:
    rows: list[Row] = [(str(number), f"label {number}") for number in range(50_000)]
    started = time.process_time()
    assert hold_out_by_label(rows, label_of) == {}
    assert time.process_time() - started < 5  # 30 s if each step adds up all quotas


@given(
    st.lists(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=1, max_size=24),
    st.sampled_from([None, 0.1, 0.3, 0.5]),
)
def test_no_label_loses_its_last_training_row(sets: list[set[str]], fraction: float | None) -> None:
    rows: list[Row] = [(f"text {number}", "|".join(sorted(labels))) for number, labels in enumerate(sets)]
    held_out = hold_out_by_label(rows, lambda row: tuple(row[1].split("|")), fraction)
    kept = {label for row in rows if row not in held_out for label in row[1].split("|")}
    assert kept == set().union(*sets)
