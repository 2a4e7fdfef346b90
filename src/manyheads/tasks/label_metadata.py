"""Checks of labels: not more than a model can have, and what a bundle of unknown origin says about them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manyheads.errors import DataError
from manyheads.messages import _

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
