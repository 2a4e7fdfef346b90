"""`AnsweringBundle`: what a worker answers."""

from pathlib import Path
from typing import Any

import pytest

from manyheads.errors import RecipeError
from manyheads.serve.answering import AnsweringBundle
from manyheads.serve.work import Work

TEXTS = ("Two cats are sleeping.", "The teacher bought a book.", "a", "The dog that we saw was old.")


def answers(bundle: AnsweringBundle, *texts: str, **decode: Any) -> list[Any]:
    work = Work("m", texts, decode)
    how = {"decode": work.decode, "align": False, "threshold": None, "options": {}}
    return [answer["ok"] for answer in bundle.answer(texts, how)]


def test_a_sample_does_not_depend_on_the_other_texts_of_its_batch(bundle_folder: Path) -> None:
    """Texts of several clients are answered in one batch: the seed is that of each text, not of the batch."""
    bundle = AnsweringBundle.open("m", bundle_folder)
    sampling = {"method": "sample", "seed": 7, "n_best": 2, "max_new_tokens": 8}
    alone = [answers(bundle, text, **sampling)[0] for text in TEXTS]
    assert answers(bundle, *TEXTS, **sampling) == alone
    assert answers(bundle, *TEXTS[::-1], **sampling) == alone[::-1]
    # Else the equality would say nothing.
    assert [answers(bundle, text, **(sampling | {"seed": 8}))[0]["answer"] for text in TEXTS] != [
        one["answer"] for one in alone
    ]


def test_an_answer_has_its_text_and_a_blank_one_a_note(bundle_folder: Path) -> None:
    bundle = AnsweringBundle.open("m", bundle_folder)
    first, blank = answers(bundle, TEXTS[0], " ", n_best=2, method="beam", beam=2)
    assert first["source"] == TEXTS[0]
    assert first["answer"] == first["candidates"][0]["text"]
    assert len(first["candidates"]) == 2
    assert "note" not in first
    assert (blank["source"], blank["note"]) == (" ", "The text is blank.")


def test_what_a_task_does_not_have_is_refused(bundle_folder: Path) -> None:
    bundle = AnsweringBundle.open("m", bundle_folder)
    how = {"decode": {}, "align": False, "threshold": None, "options": {}}
    with pytest.raises(RecipeError, match=r"^threshold: a bundle of task seq2seq has no threshold\.$"):
        bundle.answer(["a"], how | {"threshold": 0.5})
    with pytest.raises(RecipeError, match=r'^align: the format "html" has no word alignment\.$'):
        bundle.answer(["a"], how | {"align": True, "options": {"format": "html"}})
