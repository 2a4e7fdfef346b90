"""The exercises: their files, and that the bank tells every variant from every other."""

from pathlib import Path

import pytest

import manyheads
from manyheads.errors import LearnError
from manyheads.lab.cards import CARDS
from manyheads.lab.questions import QUESTIONS
from manyheads.learn.examiner import compare, make_paper
from manyheads.learn.exercise import FOLDER, all_exercises, find_exercise, read_exercise
from manyheads.learn.references import REFERENCES
from manyheads.walks.step_texts import TITLES

SOURCE = Path(manyheads.__file__).parent
EXERCISES = all_exercises()


def test_every_exercise_has_a_reference_and_at_least_twelve_variants() -> None:
    assert set(EXERCISES) == set(REFERENCES)
    assert len(EXERCISES) == 33  # as the README says
    assert all(len(exercise.variants) >= 12 for exercise in EXERCISES.values())


def test_functions_have_one_name_each() -> None:
    functions = [exercise.function for exercise in EXERCISES.values()]
    assert len(set(functions)) == len(functions)


@pytest.mark.parametrize("name", EXERCISES)
def test_texts_and_reference_belong_together(name: str) -> None:
    exercise, paper = EXERCISES[name], make_paper(name)
    assert tuple(paper.cases[0]) == exercise.parameters
    assert set(exercise.masks) <= set(exercise.parameters)
    assert set(exercise.properties) == set(REFERENCES[name].properties)
    assert {variant.place for variant in exercise.variants.values()} == set(exercise.places)


@pytest.mark.parametrize("name", EXERCISES)
def test_links_lead_somewhere(name: str) -> None:
    links = EXERCISES[name].links
    file, _colon, inner = links.source.partition(":")
    assert (SOURCE / file).exists()
    if inner:
        assert inner.rpartition(".")[2] in (SOURCE / file).read_text("utf-8")
    assert links.walk is None or 1 <= links.walk <= len(TITLES)
    assert links.lab is None or links.lab in QUESTIONS
    assert links.card is None or links.card in {card.id for card in CARDS}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_is_right_in_its_own_examination(name: str, dtype: str) -> None:
    paper = make_paper(name)
    results = [REFERENCES[name].evaluate(inputs, (), dtype) for inputs in paper.cases]
    assert compare(paper, results, dtype).outcome == "solved"


@pytest.mark.parametrize("name", EXERCISES)
def test_every_variant_is_named_as_itself(name: str) -> None:
    paper = make_paper(name)
    for variant in EXERCISES[name].variants:
        results = [REFERENCES[name].evaluate(inputs, [variant]) for inputs in paper.cases]
        assert compare(paper, results, "float64").variants == (variant,)


def test_a_pair_of_mistakes_is_named() -> None:
    paper = make_paper("attention")
    pair = ("no-scale", "mask-inverted")
    results = [REFERENCES["attention"].evaluate(inputs, pair) for inputs in paper.cases]
    assert compare(paper, results, "float64").variants == pair


def test_an_unknown_mistake_gets_no_cause_but_a_property() -> None:
    paper = make_paper("softmax")
    results = [REFERENCES["softmax"].evaluate(inputs) * 1.5 for inputs in paper.cases]
    verdict = compare(paper, results, "float64")
    assert verdict.outcome == "failed"
    assert verdict.variants == ()
    assert verdict.sentences() == ["A row of the result does not sum to 1."]
    assert verdict.evidence is not None
    assert verdict.evidence.inputs["x"].shape == (1, 2)


def test_an_unknown_exercise_gets_a_suggestion() -> None:
    with pytest.raises(LearnError, match="Did you mean softmax"):
        find_exercise("sofmax")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("order = 1\n", "ordre = 1\n", "ordre is not a setting. Did you mean order?"),
        ('place = "axis"', 'place = "axes"', "variants.over-rows.place is 'axes'. Did you mean axis?"),
        ('zh = "不会溢出的 softmax"\n', "", "title.zh is missing"),
        ('find = "max|min|clip|clamp"', 'find = "("', "places.shift.find: "),
    ],
)
def test_a_faulty_file_is_refused_with_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / "attention" / "softmax.toml").read_text("utf-8")
    assert old in text
    path = tmp_path / "softmax.toml"
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(LearnError) as error:
        read_exercise(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)
