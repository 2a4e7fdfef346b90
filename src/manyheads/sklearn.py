"""A Transformer as a scikit-learn classifier: texts in, labels out, in pipelines, grid searches and cross-validation.

    from manyheads.sklearn import TransformerClassifier

    model = TransformerClassifier().fit(texts, labels)
    model.predict(["I was charged twice."])
    model.bundle_.save("runs/tickets/bundle")   # an ordinary bundle: serve it, look inside, export it

A parameter that is None has the value that `manyheads init` proposes for the texts. Only this module imports
scikit-learn's base classes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from manyheads.api import load, train
from manyheads.messages import _
from manyheads.proposals.cost_estimate import CostEstimate
from manyheads.proposals.fitted_recipe import propose
from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.run.recipe import Recipe
from manyheads.settings import to_table
from manyheads.tasks.classify import Classification
from manyheads.tasks.proposal import Survey, text_tokens
from manyheads.tasks.task_init import Request
from manyheads.text.reading.python_rows import rows_file

_BUNDLE = "bundle"


class TransformerClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A Transformer that is trained on texts and their labels, mixed with a linear model of n-grams.

    A part of the rows is held out to calibrate the probabilities. A blank text has the most frequent label.

    Parameters: `steps` and `learning_rate` of training; `n_layers`, `width`, `n_heads` and `dropout` of the model;
    `baseline`, whether the linear model is fitted and mixed in; `random_state`, a whole number.
    Attributes after `fit`: `classes_`, and `bundle_`, which can be saved.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        learning_rate: float | None = None,
        n_layers: int | None = None,
        width: int | None = None,
        n_heads: int | None = None,
        dropout: float | None = None,
        baseline: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.steps = steps
        self.learning_rate = learning_rate
        self.n_layers = n_layers
        self.width = width
        self.n_heads = n_heads
        self.dropout = dropout
        self.baseline = baseline
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> "TransformerClassifier":  # noqa: N803 - scikit-learn's name
        """Train on texts and their labels."""
        texts = _texts(X)
        if y is None:
            raise ValueError(_("fit requires y to be passed, but the target y is None."))
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if len(labels) != len(texts):
            raise ValueError(
                _("There are {n_texts} texts, but {n_labels} labels.", n_texts=len(texts), n_labels=len(labels))
            )
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(_("The classifier needs at least two classes; there is 1 class."))
        names = _names(self.classes_)
        counts = Counter(numbers.tolist())
        self._priors = np.array([counts[number] for number in range(len(names))]) / len(texts)
        with TemporaryDirectory(prefix="manyheads-") as folder:
            rows = [(text, names[number]) for text, number in zip(texts, numbers, strict=True)]
            recipe = self._recipe(rows_file(rows, ("text", "label"), Path(folder)))
            self.bundle_ = train(recipe, Path(folder) / "run")
        known = list(self.bundle_.task.labels)  # type: ignore[attr-defined]  # of a classifier
        self._columns = [names.index(label) for label in known]
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return the most probable class of each text."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the probability of each class for each text, in the order of `classes_`."""
        check_is_fitted(self)
        texts = _texts(X)
        probabilities = np.tile(self._priors, (len(texts), 1))
        labels: Sequence[str] = self.bundle_.task.labels  # type: ignore[attr-defined]
        for row, prediction in enumerate(self.bundle_.predictions(texts)):
            assert isinstance(prediction, Classification)
            if prediction.probabilities:  # a blank text has none
                probabilities[row] = 0.0
                probabilities[row, self._columns] = [prediction.probabilities[label] for label in labels]
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the bundle as the bytes of its files, so that copies in other processes are loaded and checked."""
        state = dict(super().__getstate__())
        if "bundle_" in state:
            with TemporaryDirectory(prefix="manyheads-") as folder:
                state["bundle_"].save(path := Path(folder) / _BUNDLE)
                state["bundle_"] = {file.name: file.read_bytes() for file in sorted(path.iterdir())}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "bundle_" in state:
            with TemporaryDirectory(prefix="manyheads-") as folder:
                for name, content in state["bundle_"].items():
                    (Path(folder) / name).write_bytes(content)
                self.bundle_ = load(folder)

    def _recipe(self, file: Path) -> dict[str, Any]:
        """Return the recipe that `init` proposes for a file of rows, with this estimator's parameters."""
        sets = recognize([file], request=Request(task="classify", columns={"text": "text", "label": "label"}))
        surveyed = survey(sets.settings, sets.task, sets.clean)
        plan = propose(sets.settings, surveyed, None, _nominal_cost)
        changes = {
            "train.steps": self.steps,
            "train.learning_rate": self.learning_rate,
            "model.n_encoder_layers": self.n_layers,
            "model.width": self.width,
            "model.n_heads": self.n_heads,
            "model.feed_forward_width": None if self.width is None else 4 * self.width,
            "model.dropout": self.dropout,
            "task.baseline": self.baseline,
        }
        choices = [
            replace(choice, value=changes.pop(choice.name)) if changes.get(choice.name) is not None else choice
            for choice in plan.proposal.choices
        ]
        table = replace(plan.proposal, choices=tuple(choices)).table()
        for name, value in changes.items():
            section, _dot, key = name.partition(".")
            if value is not None:
                table[section][key] = value
        if self.steps is not None:
            often = max(1, self.steps // 10)
            table["train"] |= {"warmup": max(1, self.steps // 8), "validate_every": often, "save_every": often}
        table["seed"] = 1 if self.random_state is None else int(self.random_state)
        return to_table(Recipe.from_table(table))


def _nominal_cost(recipe: Recipe, surveyed: Survey) -> CostEstimate:
    """Estimate the number of batches from the length of the texts; nothing is measured."""
    n_tokens = 1.2 * surveyed.n_rows * text_tokens(surveyed, 0.5)  # with BOS and padding
    return CostEstimate(
        n_parameters=0,
        vocab_size=recipe.tokenizer.vocab_size,
        n_too_long=0,
        is_exact=False,
        peak_memory=0,
        batches_per_epoch=max(1.0, n_tokens / recipe.train.batch_tokens),
        prepare_seconds=0.0,
        step_seconds=(0.0,),
        validate_seconds=0.0,
        save_seconds=0.0,
        finish_seconds=0.0,
        slowdown=1.0,
    )


def _texts(X: Any) -> list[str]:  # noqa: N803
    """Return the texts of a list, an array or a column; raise for anything else, in the words of scikit-learn."""
    if isinstance(X, str):
        raise ValueError(_("X is one text. Give a list of texts."))
    values: Iterable[Any] = X
    if hasattr(X, "shape"):
        array = np.asarray(X, dtype=object)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise ValueError(
                _(
                    "X has the shape {shape}. Give a list or one column of texts. Reshape your data if it has others.",
                    shape=array.shape,
                )
            )
        values = array.tolist()
    texts = list(values)
    if not texts:
        raise ValueError(_("X has 0 texts (0 samples) while a minimum of 1 is required."))
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(_("X[{number}] is of type {type}, not a text.", number=number, type=type(text).__name__))
    return texts


def _names(classes: NDArray[Any]) -> list[str]:
    """Return the labels of a bundle for classes: their own text, or numbers if that is not distinct."""
    names = [str(label).strip() for label in classes.tolist()]
    is_distinct = len({*names}) == len(names) and all(names)
    return names if is_distinct else [str(number) for number in range(len(names))]
