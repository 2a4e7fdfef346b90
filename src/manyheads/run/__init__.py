"""The recipe room: a whole run described in one TOML file, and the wiring that carries it out.

A recipe names the data, the tokenizer, the model, the task, the training and the decoding. `run` takes it from
text to a scored bundle and yields events on the way. May import everything but the rooms above it (cli, bench, doctor,
lens and later lab, serve).
"""

from manyheads.run.corpus import Corpus
from manyheads.run.events import (
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
)
from manyheads.run.recipe import DataSettings, MixSettings, Recipe, read_recipe
from manyheads.run.training_run import check_same_recipe, delete_run, run

__all__ = [
    "Corpus",
    "DataSettings",
    "Event",
    "Finished",
    "Interrupted",
    "MixSettings",
    "Prepared",
    "Recipe",
    "RecipeChanged",
    "Resumed",
    "Saved",
    "Stage",
    "StoppedEarly",
    "Validated",
    "check_same_recipe",
    "delete_run",
    "read_recipe",
    "run",
]
