"""Recipes and runs: a recipe is one TOML file with all settings of a run; a run turns it into a scored bundle.

`run` prepares the data, trains, validates and scores, and yields events on the way. `RunFolder` names the files it
writes, and `Corpus` reads the rows that the recipe's data settings describe.
"""

from manyheads.run.corpus import Corpus
from manyheads.run.cross_validation import CrossValidation, fold_recipes, score_folds
from manyheads.run.events import (
    BaselineScored,
    DecodingChosen,
    Event,
    Finished,
    Interrupted,
    Prepared,
    RecipeChanged,
    Resumed,
    Saved,
    Stage,
    StoppedEarly,
    Validated,
    WeightsChosen,
)
from manyheads.run.follower import follow_run
from manyheads.run.recipe import DataSettings, MixSettings, Recipe, read_recipe
from manyheads.run.run_folder import LogReader, RunFolder
from manyheads.run.scoring import mark, score_rows, uses_of
from manyheads.run.stopping import StopRequest
from manyheads.run.training_run import check_same_recipe, delete_run, run

__all__ = [
    "BaselineScored",
    "Corpus",
    "CrossValidation",
    "DataSettings",
    "DecodingChosen",
    "Event",
    "Finished",
    "Interrupted",
    "LogReader",
    "MixSettings",
    "Prepared",
    "Recipe",
    "RecipeChanged",
    "Resumed",
    "RunFolder",
    "Saved",
    "Stage",
    "StopRequest",
    "StoppedEarly",
    "Validated",
    "WeightsChosen",
    "check_same_recipe",
    "delete_run",
    "fold_recipes",
    "follow_run",
    "mark",
    "read_recipe",
    "run",
    "score_folds",
    "score_rows",
    "uses_of",
]
