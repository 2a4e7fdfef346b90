"""Options of texts: what translations contain, repeat and begin with, together with everything else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import BundleError, DataError
from manyheads.tasks import Classify, ClassifySettings, Seq2Seq, TextOptions
from manyheads.tasks.seq2seq.translation_search import Confidence

from tasks import small
from tasks.test_part_search import make_task

HOW = DecodeSettings(beam=3, max_new_tokens=36)
TEXTS = [
    "The cat sleeps in the house.",
    "The cat, the cat and Tom.",
    "THE CAT SLEEPS IN BOSTON",
    "The cat sleeps. Tom is here. See https://x.org/b!",
    "",
    "Return ``x`` or :class:`y` to the cat.",
]
GLOSSARY = {"cat": "grande chatte", "Tom": "Thomas", "x.org": "nie"}
OPTIONS = TextOptions(GLOSSARY, keep=["house", "Boston"])
EXPECTED: list[dict[str, int]] = [
    {"grande chatte": 1, "house": 1},
    {"grande chatte": 2, "Thomas": 1},
    {"GRANDE CHATTE": 1, "BOSTON": 1},
    {"grande chatte": 1, "Thomas": 1, "https://x.org/b": 1},
    {},
    {"grande chatte": 1},
]


def check(text: str, expected: Mapping[str, int]) -> None:
    folded = text.replace("Grande", "grande")
    assert {term: folded.count(term) >= count for term, count in expected.items()} == dict.fromkeys(expected, True)


@pytest.mark.parametrize(
    ("placeholders", "engine", "how"),
    [
        (0, "torch", replace(HOW, n_best=3)),
        (8, "native", HOW),
        (8, "torch", replace(HOW, copy_guard=False)),
        (8, "torch", replace(HOW, method="greedy")),
    ],
)
def test_every_candidate_has_the_terms_of_its_text(placeholders: int, engine: str, how: DecodeSettings) -> None:
    task = make_task(placeholders).with_engine(EngineSelector(engine))
    found = task.predict(TEXTS, how, options=[OPTIONS] * len(TEXTS))
    is_guarded = how.method == "beam" and how.copy_guard
    for prediction, required in zip(found, EXPECTED, strict=True):
        expected = {term: count for term, count in required.items() if is_guarded or "://" not in term}
        assert "glossary" not in prediction.warnings
        assert len(prediction.candidates) <= how.n_best
        for candidate in prediction.candidates:
            check(candidate.text, expected)
    if is_guarded and placeholders:
        check(found[5].answer, {"``x``": 1, ":class:`y`": 1})
        assert "⟦" not in found[5].answer
    for index in (1, 3):
        [alone] = task.predict([TEXTS[index]], how, index, options=[OPTIONS])
        assert [one.text for one in alone.candidates] == [one.text for one in found[index].candidates]


def test_engines_agree_and_texts_without_options_are_as_before() -> None:
    options = [OPTIONS if index % 2 else TextOptions() for index in range(len(TEXTS))]
    torch_task, native = make_task(), make_task().with_engine(EngineSelector("native"))
    found = [task.predict(TEXTS, HOW, options=options) for task in (torch_task, native)]
    assert [one.answer for one in found[0]] == [one.answer for one in found[1]]
    plain = torch_task.predict(TEXTS, HOW)
    assert [one == other for one, other in zip(found[0], plain, strict=True)][::2] == [True] * 3
    assert found[0][1] != plain[1]


def test_output_that_has_the_terms_is_kept() -> None:
    task, prefix = make_task(), "Le chat"
    plain = task.predict(TEXTS[:1], HOW, options=[TextOptions(prefix=prefix)])
    for glossary in ({"cat": "chat"}, {"dog": "chien"}):
        assert task.predict(TEXTS[:1], HOW, options=[TextOptions(glossary, prefix=prefix)]) == plain


@pytest.mark.parametrize("placeholders", [0, 8])
@pytest.mark.parametrize("how", [replace(HOW, n_best=2), replace(HOW, method="greedy")])
def test_translation_begins_with_the_prefix(placeholders: int, how: DecodeSettings) -> None:
    task = make_task(placeholders)
    options = [TextOptions({"cat": "chat", "Tom": "Thomas"}, prefix="Le gros ``x`` é😀 c") for _ in TEXTS]
    for text, prediction in zip(TEXTS, task.predict(TEXTS, how, options=options), strict=True):
        for candidate in prediction.candidates:
            assert candidate.text.startswith(options[0].prefix if text else "")
            assert ("Thomas" in candidate.text) == ("Tom" in text)


def test_prefix_of_a_text_in_capitals_and_of_one_with_nothing_to_translate() -> None:
    task = make_task()
    capitals, address = task.predict(
        ["THE CAT SLEEPS IN BOSTON", "https://x.org/b"],
        HOW,
        options=[TextOptions(prefix="LA CHA"), TextOptions(prefix="Voir")],
    )
    assert capitals.answer.startswith("LA CHA")
    assert capitals.answer.isupper()
    assert address.answer.startswith("Voir")
    assert "https://x.org/b" in address.answer
    [alone] = make_task(0).predict(["https://x.org/b"], HOW, options=[TextOptions(prefix="Voir")])
    assert alone.answer == "Voir https://x.org/b"


def test_kept_words_have_placeholders_if_there_are_any() -> None:
    [[part]] = make_task(8).part_reader.parts(["Tom sees ``Tom`` and Tom."], [TextOptions(keep=["tom"])])
    assert part.terms == {}
    assert part.source.count(part.kept[0]) == 2
    [[part]] = make_task(0).part_reader.parts(["Tom sees ``Tom`` and Tom."], [TextOptions(keep=["tom"])])
    assert (part.terms, part.kept, part.source) == ({"Tom": 2}, (), "Tom sees ``Tom`` and Tom.")
    many = " ".join(f"Q{letter}" for letter in "abcdefghi")
    [[part]] = make_task(8).part_reader.parts([many], [TextOptions(keep=many.split())])
    assert (len(part.kept), len(part.terms)) == (8, 1)


def test_a_term_is_not_divided_and_belongs_to_its_part() -> None:
    reader = make_task().part_reader
    options = TextOptions({"Yahoo! Inc": "Yahoo", "cat": "chat"})
    parts = reader.parts(["We like Yahoo! Inc and dogs. The cat sleeps."], [options])[0]
    assert [dict(part.terms) for part in parts] == [{"Yahoo": 1}, {}, {"chat": 1}]
    long = "the house " * 30 + "word"
    parts = reader.parts([f"A {long} sleeps."], [TextOptions({long: "mot"})])[0]
    assert len(parts) > 1
    assert sum(part.terms.get("mot", 0) for part in parts) == 1


def test_term_that_does_not_fit_is_reported() -> None:
    [prediction] = make_task().predict(TEXTS[:1], HOW, options=[TextOptions({"cat": "éà" * 300, "house": "maison"})])
    assert "glossary" in prediction.warnings
    assert "éà" * 300 in prediction.missing
    how = replace(HOW, max_new_tokens=1)
    [prediction] = make_task().predict(TEXTS[:1], how, options=[TextOptions({"cat": "grande chatte"})])
    assert prediction.missing == ["grande chatte"]


def test_repetition_is_guarded_and_terms_may_be_repeated() -> None:
    task, options = make_task(loops=True), [TextOptions({"cat": "chat chat chat"})]
    [prediction] = task.predict(["The cat sleeps."], HOW, options=options)
    assert "chat chat chat" in prediction.answer
    assert "glossary" not in prediction.warnings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"glossary": {"": "x"}}, "A source term of the glossary has no text"),
        ({"glossary": {"cat": " "}}, "The target term of 'cat' in the glossary has no text"),
        ({"glossary": {"cat": 7}}, "The target term of 'cat' in the glossary is of type int"),
        ({"glossary": ["cat"]}, "glossary is of type list"),
        ({"keep": "cat"}, "keep is of type str"),
        ({"keep": [None]}, "A word of keep is of type NoneType"),
        ({"keep": ["\ud800"]}, "surrogate"),
        ({"keep": ["x" * 1001]}, "has 1,001 characters"),
        ({"prefix": "  "}, "prefix has no text"),
        ({"prefix": None}, "prefix is of type NoneType"),
        ({"glossary": {"cat": "x"}, "keep": ["cat"]}, "'cat' is in the glossary and in keep"),
    ],
)
def test_bad_options(changes: dict[str, Any], message: str) -> None:
    # Users have no type checker at run time, but these tests do: what it would refuse is set past the constructor.
    options = TextOptions()
    for name, value in changes.items():
        object.__setattr__(options, name, value)
    with pytest.raises(DataError, match=message):
        options.__post_init__()


def test_options_that_do_not_fit_the_task() -> None:
    task, options = make_task(), [TextOptions({"cat": "chat"})]
    with pytest.raises(DataError, match="are not for samples"):
        task.predict(["cat"], DecodeSettings(method="sample"), options=options)
    with pytest.raises(DataError, match="1 texts, but 2 texts"):
        task.predict(["cat", "dog"], HOW, options=options)
    with pytest.raises(DataError, match="The prefix has"):
        task.predict(["cat"], HOW, options=[TextOptions(prefix="é" * 200)])
    summary = replace(task, settings=replace(task.settings, purpose="summary"))
    with pytest.raises(DataError, match="are for translation"):
        summary.predict(["cat"], HOW, options=options)
    classifier = small.make_task(Classify, ClassifySettings(), [("good", "a"), ("bad", "b")] * 20)
    with pytest.raises(BundleError, match="of the task classify"):
        Bundle(classifier, HOW, {}).predictions(["x"], options=options[0])


def make_bundle(quantiles: Sequence[float]) -> Bundle:
    task = replace(make_task(), confidence=Confidence(list(quantiles), 50.0, 20.0, 100))
    assert isinstance(task, Seq2Seq)
    return Bundle(task, HOW, {})


def test_bundle_takes_one_option_for_all_or_one_for_each() -> None:
    bundle = make_bundle([0.0] * 101)
    everywhere = bundle.predictions(TEXTS[:2], options=OPTIONS)
    assert everywhere == bundle.predictions(TEXTS[:2], options=[OPTIONS, OPTIONS])
    assert bundle.predictions(TEXTS[:1], options=TextOptions()) == bundle.predictions(TEXTS[:1])


def test_abstains_below_a_confidence() -> None:
    bundle = make_bundle([index / 100 for index in range(101)])  # every log-probability is below: confidence 0
    for number in (0.0, 0.05):
        found = bundle.predictions(TEXTS, abstain=number, options=OPTIONS)
        assert [one.abstained for one in found] == [bool(number and text) for text in TEXTS]  # type: ignore[attr-defined]
        for one in found:
            assert (one.answer == "") == (one.abstained or not one.candidates[0].text)  # type: ignore[attr-defined]
            assert not one.abstained or one.candidates[0].text  # type: ignore[attr-defined]
    with pytest.raises(BundleError, match="samples do not have"):
        bundle.predictions(TEXTS, abstain=0.5, method="sample")
    with pytest.raises(BundleError, match="which this bundle does not have"):
        Bundle(make_task(), HOW, {}).predictions(TEXTS, abstain=0.5)
