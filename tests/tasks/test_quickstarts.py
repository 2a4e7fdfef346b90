"""The quickstart that a task brings: its recipe is valid in every language, and there is a text to try."""

import pytest

from manyheads.run import Recipe
from manyheads.tasks import TASKS
from manyheads.tasks.quickstart import Quickstart

QUICKSTARTS = {task.quickstart.name: task.quickstart for task in TASKS.values() if task.quickstart is not None}


def test_names_are_unique() -> None:
    assert list(QUICKSTARTS) == ["translate", "classify", "tag", "generate"]


@pytest.mark.parametrize("quickstart", QUICKSTARTS.values(), ids=QUICKSTARTS)
def test_recipes_are_valid_in_every_language(quickstart: Quickstart) -> None:
    corpora = ("en", "zh", "de") if quickstart.n_languages == 1 else ("en-zh", "de-en", "zh-de")
    for corpus in corpora:
        recipe = Recipe.from_table(quickstart.make_recipe(corpus))
        assert recipe.data.builtin == corpus
        assert recipe.train.steps == quickstart.steps
        assert quickstart.example[corpus.split("-")[0]]
    assert Recipe.from_table(quickstart.make_recipe(corpora[0], 7)).train.steps == 7
    assert quickstart.make_recipe("zh")["tokenizer"]["kind"] == "character"
    assert quickstart.make_recipe(corpora[0])["tokenizer"]["kind"] == "bpe"  # the shared tables are not changed
