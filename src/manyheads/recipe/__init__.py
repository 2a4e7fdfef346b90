"""The recipe room: a whole run described in one TOML file, and the wiring that carries it out.

A recipe names the data, the tokenizer, the model, the task, the training and the decoding. `run` takes it from
text to a scored bundle and yields events on the way. May import everything but the rooms above it (cli and later
lens, lab, serve).
"""

from manyheads.recipe.corpus import Corpus
from manyheads.recipe.report import write_report
from manyheads.recipe.runs import (
    Event,
    Finished,
    Interrupted,
    Prepared,
    Resumed,
    Saved,
    Stage,
    Validated,
    discard,
    refuse_other,
    run,
)
from manyheads.recipe.scoring import Scorecard, score
from manyheads.recipe.settings import DataSettings, Recipe, read_recipe

__all__ = [
    "Corpus",
    "DataSettings",
    "Event",
    "Finished",
    "Interrupted",
    "Prepared",
    "Recipe",
    "Resumed",
    "Saved",
    "Scorecard",
    "Stage",
    "Validated",
    "discard",
    "read_recipe",
    "refuse_other",
    "run",
    "score",
    "write_report",
]
