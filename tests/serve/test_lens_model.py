"""A bundle as the lens opens it: the texts that it suggests."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.run import Recipe
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.settings import to_table
from manyheads.tasks import TASKS

from tasks.small import make_task


@cache
def opened(kind: str, language: str) -> LensModel:
    """Return an untrained bundle of the built-in corpus, opened."""
    task_type = TASKS[kind]
    settings = task_type.settings_type()
    rows = list(task_type.builtin(settings, [language], "train", 40, 1))
    shape = {"shape": task_type.shape, "n_decoder_layers": 1} if kind == "language" else {}
    with torch.random.fork_rng(devices=[]):
        task = make_task(task_type, settings, rows, **shape)
    recipe = Recipe.from_table({"data": {"builtin": language, "builtin_rows": 1000}, "task": {"kind": kind}})
    return LensModel("a", Path(kind), Bundle(task, DecodeSettings(), to_table(recipe)))


def test_the_description_says_what_an_answer_is() -> None:
    forms = {kind: opened(kind, "en").describe()["answer_form"] for kind in TASKS if kind != "seq2seq"}
    assert forms == {
        "classify": "labels",
        "tag": "spans",
        "language": "continuation",
        "masked": "masks",
        "embed": "vector",
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_masked_model_is_given_a_text_with_one_mask(language: str) -> None:
    bundle = opened("masked", language)
    assert len(bundle.examples) == 8
    for text in bundle.examples:
        assert text.count("[MASK]") == 1
        assert not text.startswith("[MASK]")
        left, right = text.split("[MASK]")
        assert not (left[-1:].isascii() and left[-1:].isalpha())  # whole words
        assert not (right[:1].isascii() and right[:1].isalpha())
    filled = bundle.bundle.predict(list(bundle.examples))
    assert all("[MASK]" not in text for text in filled)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("cat", "[MASK]"), ("Zyzzyva quixotic!", "Zyzzyva [MASK]!"), ("12 + 5", "12 + 5 [MASK]")],
)
def test_mask_of_a_text_without_common_words(text: str, expected: str) -> None:
    task = opened("masked", "en").bundle.task
    assert task.lens_examples.suggestion(task, text) == expected


@pytest.mark.parametrize(("language", "longest"), [("en", 5), ("zh", 10)])
def test_a_language_model_is_given_an_opening(language: str, longest: int) -> None:
    bundle = opened("language", language)
    assert len(set(bundle.examples)) == 8
    task = bundle.bundle.task
    corpus = [row[0] for row in task.builtin(task.settings, [language], "test", 80, 1)]
    for text in bundle.examples:
        assert any(document.startswith(text) and len(document) > len(text) for document in corpus)
        assert 2 <= len(text.split() if language == "en" else text) <= longest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One day Mia saw", "One day"),
        ("Mia", "Mia"),
        ("Once upon a time, long ago, a", "Once upon a time,"),
        ("  ", "  "),
    ],
)
def test_an_opening_is_at_most_half_of_a_text(text: str, expected: str) -> None:
    task = opened("language", "en").bundle.task
    assert task.lens_examples.suggestion(task, text) == expected


def test_other_models_are_given_whole_texts() -> None:
    bundle = opened("classify", "en")
    task = bundle.bundle.task
    corpus = {row[0] for row in task.builtin(task.settings, ["en"], "test", 80, 1)}
    assert len(bundle.examples) == 8
    assert set(bundle.examples) <= corpus


def test_no_text_is_suggested_without_validation_data() -> None:
    bundle = opened("classify", "en")
    table = to_table(Recipe.from_table({"data": {"train": ["gone.tsv"], "valid": ["gone.tsv"]}}))
    gone = replace(bundle, bundle=replace(bundle.bundle, recipe=table))
    assert list(gone.examples) == []


def test_snapshots_are_those_of_the_run_unless_the_bundle_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [10, 20]
    monkeypatch.setattr("manyheads.serve.lens_page.lens_model.Checkpoints.snapshot_steps", lambda self: steps)
    bundle = opened("classify", "en").bundle

    def found(name: str = "bundle", *, is_private: bool = False) -> list[int]:
        return list(LensModel("a", tmp_path / name, bundle, is_private=is_private).steps)

    assert found() == []  # no folder of snapshots
    (tmp_path / "snapshots").mkdir()
    assert found() == [10, 20]
    assert found(is_private=True) == []  # they are outside of its folder
    assert found("copied") == []
    steps.pop()
    assert found() == []  # one alone is no timeline
