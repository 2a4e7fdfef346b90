"""The quickstart that a task brings: its recipe is valid in every language, and there is a text to try."""

import pytest

from manyheads.run import Recipe
from manyheads.tasks import TASKS
from manyheads.tasks.proposal import Quickstart
from manyheads.text.tokens.seen_words import words_of

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
        assert quickstart.examples[corpus.split("-")[0]]
    assert Recipe.from_table(quickstart.make_recipe(corpora[0], 7)).train.steps == 7
    assert quickstart.make_recipe("zh")["tokenizer"]["kind"] == "character"
    assert quickstart.make_recipe(corpora[0])["tokenizer"]["kind"] == "bpe"  # the shared tables are not changed


@pytest.mark.parametrize("quickstart", QUICKSTARTS.values(), ids=QUICKSTARTS)
@pytest.mark.parametrize("language", ["en", "zh", "de"])
def test_examples_consist_of_words_of_the_corpus(quickstart: Quickstart, language: str) -> None:
    corpus = language if quickstart.n_languages == 1 else f"{language}-{'de' if language == 'en' else 'en'}"
    recipe = Recipe.from_table(quickstart.make_recipe(corpus))
    rows = recipe.task_class.builtin(recipe.task, corpus.split("-"), "train", recipe.data.builtin_rows, 1)
    missing = {word.casefold() for example in quickstart.examples[language] for word in words_of(example)}
    for row in rows:
        missing.difference_update(map(str.casefold, words_of(row[0])))
        if not missing:
            break
    assert missing == set()
