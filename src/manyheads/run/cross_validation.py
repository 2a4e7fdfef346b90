"""Cross-validation: train once for each part of the rows on all other parts, and score every row by a model without it.

With few rows, a test set that is large enough to say something leaves too few to train on. Each fold is an ordinary run
of the recipe with `data.fold` set; it can be interrupted and resumed like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from manyheads.bundle import load
from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.metrics import Score, Tally, Use
from manyheads.run.corpus import Corpus
from manyheads.run.recipe import Recipe
from manyheads.run.scoring import uses_of


@dataclass(frozen=True)
class CrossValidation:
    """The score of all rows together, and of each fold; every row was scored by a model that was not trained on it."""

    score: Score
    folds: Sequence[Score]


def fold_recipes(recipe: Recipe, n_folds: int) -> list[Recipe]:
    """Return the recipe of each fold; a test set of the recipe is not used."""
    if recipe.data.builtin or Corpus.of(recipe).fields.n_fields == 1:
        raise RecipeError(_("Cross-validation needs rows of your own, such as labeled texts or pairs, not documents."))
    return [
        replace(recipe, data=replace(recipe.data, test=(), folds=n_folds, fold=fold)) for fold in range(1, n_folds + 1)
    ]


def score_folds(bundles: Sequence[Path]) -> CrossValidation:
    """Return the main score of the task over the rows of all folds, each predicted by the bundle of its fold.

    The interval holds for these rows. It does not include how much the score depends on the choice of training rows.
    """
    tallies, uses = zip(*map(_tally, bundles), strict=True)
    pooled = replace(tallies[0], counts=np.concatenate([tally.counts for tally in tallies]))
    score = pooled.score()
    signature = f"{score.signature}|folds:{len(bundles)}"
    return CrossValidation(
        replace(score, signature=signature, used_for=tuple(dict.fromkeys(chain.from_iterable(uses)))),
        [replace(tally.score(), used_for=use) for tally, use in zip(tallies, uses, strict=True)],
    )


def _tally(path: Path) -> tuple[Tally, tuple[Use, ...]]:
    """Return the tally of a fold's rows, and what its run used them for besides scoring."""
    bundle = load(path)
    ((name, rows),) = Corpus.of(Recipe.from_table(bundle.recipe)).tests().items()
    return bundle.engine_task.tally(list(rows), bundle.decode), uses_of(bundle, name)
