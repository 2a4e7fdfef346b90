"""The heads of imported encoders: labels of texts, tags of words, masked tokens."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from manyheads.errors import BundleError
from manyheads.interop.checkpoint_files import Config
from manyheads.interop.import_plan import Head, Plan
from manyheads.messages import _
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.tag.crf import States

_TAG = re.compile(r"([BIOESLUM])-(.+)", re.DOTALL)
# The letters that a state of ours takes its score from, the best first: a word that is a whole span, or ends one.
_LETTERS = {"B": "BI", "I": "IM", "E": "ELI", "S": "SUBI"}


def labels_of(config: Config) -> list[str]:
    """The labels in the order of their ids."""
    table = config.table.get("id2label")
    if not isinstance(table, dict) or not table:
        table = {str(number): f"LABEL_{number}" for number in range(config.integer("num_labels", default=2))}
    labels = [str(table.get(str(number), "")) for number in range(len(table))]
    if "" in labels or len({*labels}) < len(labels):
        raise BundleError(_("{path}: id2label does not name each label once.", path=config.path))
    return labels


def classify_head(*, hidden: str, output: str, activation: str) -> Head:
    """A text's label: the first vector, a linear layer with an activation, and another linear layer."""

    def settings(config: Config) -> dict[str, Any]:
        config.require("problem_type", "single_label_classification", "multi_label_classification")
        if len(labels_of(config)) < 2:
            raise BundleError(_("{path}: a model with one label predicts a number, not a label.", path=config.path))
        return {
            "pooling": "first",
            "hidden": activation,
            "baseline": False,
            "multi_label": config.table.get("problem_type") == "multi_label_classification",
        }

    def metadata(config: Config) -> dict[str, Any]:
        labels = labels_of(config)
        return {"labels": labels, "counts": [1] * len(labels), "n_rows": len(labels), **Calibration().metadata()}

    def plan(config: Config, plan: Plan) -> None:
        for ours, theirs in (("hidden", hidden), ("output", output)):
            for part in ("weight", "bias"):
                plan.put_head(f"{ours}.{part}", f"{theirs}.{part}")

    return Head("classify", settings=settings, metadata=metadata, plan=plan)


def tag_head(output: str = "classifier") -> Head:
    """The tags of words: a linear layer on the first token of each word, as such models are trained."""

    def metadata(config: Config) -> dict[str, Any]:
        states = _states(config)
        return {
            "labels": list(states.kinds),
            "intents": [],
            "split_by": "word",
            "is_every_word": states.is_every_word,
            **Calibration().metadata(),
        }

    def plan(config: Config, plan: Plan) -> None:
        labels, width = labels_of(config), plan.settings.width
        rows = _rows(labels, _states(config))
        for part, shape in (("weight", (len(labels), width)), ("bias", (len(labels),))):
            plan.put_head(f"output.{part}", f"{output}.{part}", shapes=(shape,), make=lambda values: values[rows])

    settings = {"decoder": "constrained", "baseline": False, "word_vector": "first"}
    return Head("tag", settings=lambda config: dict(settings), metadata=metadata, plan=plan)


def _states(config: Config) -> States:
    """Our states for their labels; labels without O or letters tag every word, as parts of speech do."""
    labels = labels_of(config)
    tags = [match for label in labels if (match := _TAG.fullmatch(label))]
    if not tags and "O" not in labels:
        return States(labels, is_every_word=True)
    if len(tags) < len(labels) - ("O" in labels):
        if tags:
            odd = ", ".join(label for label in labels if label != "O" and not _TAG.fullmatch(label))
            raise BundleError(_("{path}: the labels {labels} are not tags of spans.", path=config.path, labels=odd))
        return States([label for label in labels if label != "O"])  # labels without letters
    if "O" not in labels:
        raise BundleError(_("{path}: the label O, for words outside spans, is missing.", path=config.path))
    return States(list(dict.fromkeys(match[2] for match in tags)))


def _rows(labels: Sequence[str], states: States) -> list[int]:
    """Their label from which each state takes its score."""
    if states.is_every_word:
        return list(range(len(labels)))
    rows = []
    for name in states.names:
        form, _dash, kind = name.partition("-")
        names = [name] if name == "O" else [*(f"{letter}-{kind}" for letter in _LETTERS[form]), kind, f"B-{kind}"]
        rows.append(next(labels.index(each) for each in names if each in labels))
    return rows


def masked_head(*, dense: str, norm: str, bias: str, decoder: str) -> Head:
    """A masked language model: a linear layer, the activation and a norm, then the embedding and a bias."""

    def plan(config: Config, plan: Plan) -> None:
        for ours, theirs in (("dense", dense), ("norm", norm)):
            for part in ("weight", "bias"):
                plan.put_head(f"output.transform.{ours}.{part}", f"{theirs}.{part}")
        shape: tuple[int, ...] = (len(plan.numbering.ours),)
        plan.put_head("output.bias", bias, shapes=(shape,), make=_renumbered_bias(plan))
        if not plan.settings.tie_output:
            plan.tokens("output.token_embedding.weight", f"{decoder}.weight", is_full_name=True)

    return Head("masked", model={"output_transform": True, "output_bias": True}, plan=plan)


def _renumbered_bias(plan: Plan) -> Callable[[Tensor], Tensor]:
    return lambda bias: plan.output_bias(bias)
