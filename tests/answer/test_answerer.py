"""`Answerer`: the answer to a text is the same in any batch."""

from typing import Any

import pytest

from manyheads.answer.answer import Answer, answer_fields
from manyheads.answer.answerer import Answerer
from manyheads.answer.request import AnswerOptions
from manyheads.bundle import Bundle
from manyheads.errors import RecipeError

TEXTS = ("Two cats are sleeping.", "The teacher bought a book.", "a", "The dog that we saw was old.")


def answers(bundle: Bundle, *texts: str, format: str = "text", **decode: Any) -> list[Answer]:
    return Answerer(bundle).answers(texts, AnswerOptions(decode, format=format))


def test_a_sample_does_not_depend_on_the_other_texts_of_its_batch(untrained: Bundle) -> None:
    """Texts of several clients are answered in one batch: the seed is that of each text, not of the batch."""
    sampling = {"method": "sample", "seed": 7, "n_best": 2, "max_new_tokens": 8}
    alone = [answers(untrained, text, **sampling)[0] for text in TEXTS]
    assert answers(untrained, *TEXTS, **sampling) == alone
    assert answers(untrained, *TEXTS[::-1], **sampling) == alone[::-1]
    # Else the equality would say nothing.
    others = [answers(untrained, text, **(sampling | {"seed": 8}))[0] for text in TEXTS]
    assert [answer.prediction.answer for answer in others] != [answer.prediction.answer for answer in alone]


def test_a_sample_of_html_does_not_depend_on_the_other_texts_of_its_batch(untrained: Bundle) -> None:
    sampling = {"method": "sample", "seed": 7, "max_new_tokens": 8}
    html = [f"<p>{text}</p>" for text in TEXTS]
    alone = [answers(untrained, text, format="html", **sampling)[0].line() for text in html]
    assert [answer.line() for answer in answers(untrained, *html, format="html", **sampling)] == alone


def test_samples_of_numbered_texts_are_those_of_the_bundle(untrained: Bundle) -> None:
    sampling = {"method": "sample", "seed": 7, "max_new_tokens": 8}
    expected = untrained.predictions(TEXTS, first=3, **sampling)
    found = Answerer(untrained).answers(TEXTS, AnswerOptions(sampling), first=3)
    assert [answer.prediction for answer in found] == list(expected)


def test_an_answer_has_its_text_and_a_blank_one_a_note(untrained: Bundle) -> None:
    found = answers(untrained, TEXTS[0], " ", n_best=2, method="beam", beam=2)
    first, blank = (answer_fields(answer, untrained) for answer in found)
    assert first["source"] == TEXTS[0]
    assert first["answer"] == first["candidates"][0]["text"]
    assert len(first["candidates"]) == 2
    assert "note" not in first
    assert (blank["source"], blank["note"]) == (" ", "The text is blank.")


def test_what_a_task_does_not_have_is_refused(untrained: Bundle) -> None:
    answerer = Answerer(untrained)
    with pytest.raises(RecipeError, match=r"^threshold: a bundle of task seq2seq has no threshold\.$"):
        answerer.answers(["a"], AnswerOptions(threshold=0.5))
    with pytest.raises(RecipeError, match=r'^align: the format "html" has no word alignment\.$'):
        answerer.answers(["a"], AnswerOptions(align=True, format="html"))
