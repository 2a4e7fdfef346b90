"""The recipe room: a whole run described in one TOML file, and the wiring that carries it out.

A recipe names the data, the tokenizer, the model, the task, the training and the decoding. `run` takes it from
text to a scored bundle and yields events on the way. May import everything but the rooms above it (cli, bench, doctor,
lens and later lab, serve).
"""

from manyheads.recipe.corpus import Corpus
from manyheads.recipe.events import (
    Changed,
    Event,
    Finished,
    Interrupted,
    Prepared,
    Resumed,
    Saved,
    Stage,
    StoppedEarly,
    Validated,
)
from manyheads.recipe.report import write_report
from manyheads.recipe.runs import discard, refuse_other, run
from manyheads.recipe.settings import DataSettings, MixSettings, Recipe, read_recipe

__all__ = [
    "Changed",
    "Corpus",
    "DataSettings",
    "Event",
    "Finished",
    "Interrupted",
    "MixSettings",
    "Prepared",
    "Recipe",
    "Resumed",
    "Saved",
    "Stage",
    "StoppedEarly",
    "Validated",
    "discard",
    "read_recipe",
    "refuse_other",
    "run",
    "write_report",
]
