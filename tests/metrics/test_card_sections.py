"""Sections of scorecards survive the log of a run."""

import json

import numpy as np
import pytest

from manyheads.messages import Message
from manyheads.metrics import (
    Answers,
    Card,
    Comparison,
    GenerationSample,
    card_record,
    compare,
    label_card,
    language_card,
    masked_card,
    read_sections,
    span_card,
    translation_card,
)
from manyheads.metrics.card_sections import (
    Confusion,
    Examples,
    Figures,
    Generations,
    LabelTable,
    Note,
    truncate,
)
from manyheads.text.reading.tag_schemes import Span


def cards() -> dict[str, Card]:
    answers = Answers(["a b", "c"], ["x y", ""], ["x z", ""], n_cut_off=1, n_too_long=1)
    return {
        "labels": label_card(
            ["a", "b", "c"],
            [("x",), ("y",), ("z",)],
            [("x",), (), ("x",)],
            np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]),
            ["x", "y"],
            n_resamples=5,
        ),
        "spans": span_card(["a b"], [[Span(0, 1, "P")]], [[Span(1, 2, "Q")]], known={"Q"}, n_resamples=5),
        "language": language_card(
            [3.0, 2.0], [1, 1], [4, 4], [1, 1], [4, 4], samples=[GenerationSample("a", "b")], n_resamples=5
        ),
        "masked": masked_card([1.0], [2.0], [3.0], n_resamples=5),
        "translations": translation_card(answers, "en"),
    }


@pytest.mark.parametrize("kind", cards())
def test_sections_survive_json(kind: str) -> None:
    card = cards()[kind]
    record = json.loads(json.dumps(card_record(card)))
    assert [score["name"] for score in record["scores"]] == [score.name for score in card.scores]
    restored, original = read_sections(record), card.sections()
    assert [type(section) for section in restored] == [type(section) for section in original]
    assert json.loads(json.dumps([vars(one) for one in restored], default=_plain)) == json.loads(
        json.dumps([_without_probability(vars(one)) for one in original], default=_plain)
    )


def _plain(value: object) -> object:
    return value.by_language() if isinstance(value, Message) else _without_probability(vars(value))


def _without_probability(fields: dict[str, object]) -> dict[str, object]:
    """The report does not show the confidence of examples, so it is not read back."""
    return {key: None if key == "probability" else value for key, value in fields.items()}


def test_comparison_is_a_section_of_a_translation_card() -> None:
    answers = Answers(["a b", "c"], ["x y", "z"], ["x z", "z"], n_cut_off=0, n_too_long=0)
    differences = compare(answers.texts, answers.texts, answers.references, "en", n_resamples=5, n_trials=5)
    card = translation_card(answers, "en", differences=differences, against="other.txt")
    assert card.sections()[-1] == Comparison("other.txt", differences)
    assert not any(isinstance(section, Comparison) for section in translation_card(answers, "en").sections())


@pytest.mark.parametrize("record", [None, 7, {}, {"sections": 7}, {"sections": [None, 7, {}, {"section": "Other"}]}])
def test_records_without_sections(record: object) -> None:
    assert read_sections(record) == []


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("四个汉字", "四个汉字"), ("five!", "five…")])
def test_only_longer_texts_are_shortened(text: str, shown: str) -> None:
    assert truncate(text, 4) == shown


@pytest.mark.parametrize(
    ("labels", "counts"),
    [([], []), (["a"], [[1], [2]]), (["a", "b"], [[1, 2], [3]]), (["a"], [[-1]]), (["a"], [["1"]]), (["a"], [[0.5]])],
)
def test_invalid_confusion_matrices_are_not_read(labels: list[str], counts: list[list[object]]) -> None:
    record = {"sections": [{"section": "Confusion", "labels": labels, "counts": counts}]}
    assert read_sections(record) == []
    valid = {"section": "Confusion", "labels": ["a"], "counts": [[0]]}
    assert read_sections({"sections": [valid]}) == [Confusion(["a"], [[0]])]


def figures_of(card: Card) -> dict[str, tuple[float, float | None]]:
    [figures] = [section for section in card.sections() if isinstance(section, Figures)]
    return {str(figure.name): (figure.value, figure.total) for figure in figures.figures}


def test_sections_of_translations() -> None:
    worst, random, _, *notes = translation_card(
        Answers(["a b", "c", "d"], ["x y", "", "z"], ["x z", "", "z"], n_cut_off=1, n_too_long=2), "en"
    ).sections()
    assert isinstance(worst, Examples)
    assert isinstance(random, Examples)
    assert (worst.are_random, random.are_random) == (False, True)
    assert sorted((row.number, row.text, row.answer, row.expected) for row in random.rows) == [
        (1, "a b", "x y", "x z"),
        (2, "c", "", ""),
        (3, "d", "z", "z"),
    ]
    assert [str(note.text) for note in notes if isinstance(note, Note)] == [
        "1 translation cut off at the maximum length.",
        "2 sources too long for the model, scored as empty translations.",
        "1 reference empty: any translation of it is wrong.",
    ]


def test_notes_only_about_what_occurs() -> None:
    card = translation_card(Answers(["a"], ["x"], ["x"], n_cut_off=0, n_too_long=0), "en")
    assert not any(isinstance(section, Note) for section in card.sections())
    assert figures_of(card)["number of sentences"] == (1, None)
    assert figures_of(card)["cut off"] == (0, 1)


def test_sections_of_labels() -> None:
    card = cards()["labels"]
    mistakes, confusion, table, _, *notes = card.sections()
    assert isinstance(mistakes, Examples)
    assert [(row.number, row.text, row.answer, row.expected, row.probability) for row in mistakes.rows] == [
        (3, "c", "x", "z", 0.8),
    ]
    assert isinstance(confusion, Confusion)
    assert isinstance(table, LabelTable)
    assert figures_of(card) == {"number of texts": (3, None), "without an answer": (1, 3)}
    assert len(notes) == 1  # "z" is not in the training data
    perfect = label_card(["a"], [("x",)], [("x",)], np.array([[0.9, 0.1]]), ["x", "y"], n_resamples=5)
    assert [type(section) for section in perfect.sections()] == [Confusion, LabelTable, Figures]
    assert figures_of(perfect) == {"number of texts": (1, None)}


def test_sections_of_spans_and_language_models() -> None:
    assert [type(section) for section in cards()["spans"].sections()] == [
        Examples,
        Confusion,
        LabelTable,
        Figures,
        Note,
    ]
    assert figures_of(cards()["spans"]) == {
        "number of sentences": (1, None),
        "spans": (1, None),
        "predicted spans": (1, None),
    }
    assert [type(section) for section in cards()["language"].sections()] == [Generations, Figures]
    assert list(figures_of(cards()["language"])) == ["tokens", "characters", "words", "bytes"]
