"""A task is added from outside the package: one folder and one line of registration."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.bundle import load
from manyheads.proposals.cost_estimate import measure_cost
from manyheads.proposals.fitted_recipe import propose
from manyheads.proposals.recipe_text import recipe_text, with_files_from
from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.run import read_recipe, run
from manyheads.run.events import Finished
from manyheads.tasks import TASKS

TASK = '''
"""Classify texts as short or long; the label follows from the length, so a file of texts is enough."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from manyheads.tasks.classify import Classify, ClassifySettings
from manyheads.tasks.proposal import (
    Choice,
    count_labels,
    encoder_choices,
    encoder_proposal,
    token_choices,
    training_choices,
)
from manyheads.tasks.task_init import TaskGuess, TaskInit
from manyheads.text.reading.files import read_lines


@dataclass(frozen=True, kw_only=True)
class LengthSettings(ClassifySettings):
    kind: Literal["length"] = "length"
    limit: int = 20  # characters


class LengthInit(TaskInit):
    kind = "length"
    cli_name = "length"
    order = 5
    noun = "line"

    def recognize(self, files, request):
        if files.paths[0].suffix == ".lines":
            return TaskGuess("its name ends in .lines", settings={"limit": 24})
        return None

    def count_labels(self, rows, settings):
        return count_labels([row[1]] for row in rows)

    def row_label(self, settings):
        return "label"

    def propose(self, survey, preset=""):
        choices = [
            *token_choices(survey),
            Choice("task.kind", "length", "short or long"),
            Choice("task.limit", survey.settings.limit, "characters of a short text"),
            *encoder_choices(survey, 1, 0.0),
            *training_choices(batch_tokens=500, learning_rate=3e-3, validation_reason="steps between validations"),
        ]
        return encoder_proposal(choices, 1, 3.0)


@dataclass(frozen=True)
class Length(Classify):
    noun: ClassVar[str] = "lines"
    settings_type: ClassVar[type] = LengthSettings
    init: ClassVar[TaskInit] = LengthInit()

    @staticmethod
    def read(files, columns, settings, on_bad=None):
        for file in files:
            for line in read_lines(file, on_bad=on_bad):
                yield line, "short" if len(line) <= settings.limit else "long"
'''
REGISTRATION = 'TASKS["length"] = Length'


@pytest.fixture
def length_task(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "plugins" / "length"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(TASK, "utf-8")
    sys.path.insert(0, str(folder.parent))
    try:
        module = importlib.import_module("length")
        exec(REGISTRATION, {"TASKS": TASKS, "Length": module.Length})
        yield folder.parent
    finally:
        TASKS.pop("length", None)
        sys.path.remove(str(folder.parent))
        sys.modules.pop("length", None)


def test_adding_a_task_takes_one_folder_and_one_line(length_task: Path, tmp_path: Path) -> None:
    assert [path.name for path in length_task.iterdir()] == ["length"]
    assert len(REGISTRATION.splitlines()) == 1

    data = tmp_path / "texts.lines"
    data.write_text("".join(f"{'word ' * (n % 8)}number {n}\n" for n in range(300)), "utf-8")
    sets = recognize([data])
    assert (sets.task.kind, sets.task.limit, sets.reason) == ("length", 24, "its name ends in .lines")
    found = survey(sets.settings, sets.task, sets.clean)
    assert (found.noun, {*found.counts.labels}) == ("line", {"short", "long"})
    plan = propose(sets.settings, found, None, measure_cost)

    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text(with_files_from(plan.proposal, tmp_path), []), "utf-8")
    recipe = read_recipe(path, ["train.steps=60", "train.validate_every=60", "train.save_every=60"])
    *_, finished = run(recipe, tmp_path / "run")
    assert isinstance(finished, Finished)
    bundle = load(tmp_path / "run" / "bundle")
    assert (bundle.kind, bundle.task.answer_form) == ("length", "labels")
    rows = list(TASKS["length"].read([str(data)], {}, recipe.task))
    card = bundle.task.score(rows, bundle.decode)
    assert card.scores[0].value > 80
    assert bundle.predict(["number 1", "word " * 7 + "number 9"]) == ["short", "long"]
