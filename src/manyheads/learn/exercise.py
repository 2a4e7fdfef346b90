"""An exercise: its texts, which are one TOML file in `exercises/`, and its reference, a function in `references/`.

A file has the statement, the signature, the places at which a solution can go wrong, and for each faulty variant of the
reference one sentence that names the bug. It is checked when it is read: an unknown key, a text without a language, or
a variant at a place that does not exist is an error that names the file and the key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from manyheads.errors import LearnError, RecipeError
from manyheads.language import current
from manyheads.messages import _
from manyheads.settings import build, did_you_mean, read_toml

FOLDER = Path(__file__).with_name("exercises")
CHAPTERS = ("attention", "heads", "norms", "positions", "layers", "training", "decoding", "text")


@dataclass(frozen=True)
class Text:
    """A text in every language; `str()` is that of the language in use."""

    en: str
    zh: str

    def __str__(self) -> str:
        return str(getattr(self, current(), self.en)).strip()


@dataclass(frozen=True)
class Place:
    """A place of a solution at which it can go wrong, and the hints for it, from vague to exact."""

    look: Text  # the first hint: where to look
    rule: Text  # the second: what has to hold there
    line: str  # the third: the line as it should be
    find: str = ""  # a regular expression for the learner's own line


@dataclass(frozen=True)
class Variant:
    """A faulty variant of the reference: the switch of the same name turns it on."""

    place: str
    en: str
    zh: str

    def __str__(self) -> str:
        return str(Text(self.en, self.zh))


@dataclass(frozen=True)
class Links:
    """Where to read on: a step of `walk`, a question and a card of the lab, and our own source."""

    source: str  # such as model/attention.py:masked_softmax
    walk: int | None = None
    lab: str | None = None
    card: str | None = None


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise."""

    name: str
    chapter: str
    order: int
    minutes: int
    function: str
    parameters: tuple[str, ...]
    masks: tuple[str, ...] = ()  # the parameters that are masks, whose convention a learner may declare
    returns_mask: bool = False
    title: Text
    statement: Text
    shapes: Mapping[str, str]
    links: Links
    places: Mapping[str, Place]
    variants: Mapping[str, Variant]
    properties: Mapping[str, Text] = field(default_factory=dict)

    def place_of(self, variant: str) -> Place:
        """The place at which a variant is wrong."""
        return self.places[self.variants[variant].place]


def read_exercise(path: Path) -> Exercise:
    """Read and check the file of an exercise; its name is the file's, its chapter the folder's."""
    try:
        table = {"name": path.stem, "chapter": path.parent.name, **read_toml(path)}
    except RecipeError as error:
        raise LearnError(str(error)) from None
    try:
        exercise = build(Exercise, table)
    except RecipeError as error:
        raise LearnError(_("{path}: {reason}", path=path, reason=error)) from None
    for name, variant in exercise.variants.items():
        if variant.place not in exercise.places:
            key = f"variants.{name}.place"
            hint = did_you_mean(variant.place, exercise.places)
            raise LearnError(
                _("{path}: {key} is {value!r}. {hint}", path=path, key=key, value=variant.place, hint=hint)
            )
    for name, place in exercise.places.items():
        try:
            re.compile(place.find)
        except re.error as error:
            raise LearnError(
                _("{path}: {key}: {reason}.", path=path, key=f"places.{name}.find", reason=error)
            ) from None
    return exercise


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise by name, in the order of the map."""
    found = [read_exercise(path) for path in sorted(FOLDER.glob("*/*.toml"))]
    found.sort(key=lambda exercise: (CHAPTERS.index(exercise.chapter), exercise.order))
    return {exercise.name: exercise for exercise in found}


def find_exercise(name: str) -> Exercise:
    """The exercise with this name; an unknown one fails with a suggestion."""
    exercises = all_exercises()
    if name not in exercises:
        raise LearnError(_("There is no exercise {name!r}. {hint}", name=name, hint=did_you_mean(name, exercises)))
    return exercises[name]
