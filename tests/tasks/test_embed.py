"""Embed: pooled vectors of texts, whatever is batched with them, and what the task refuses."""

from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError, RecipeError
from manyheads.interop import import_huggingface
from manyheads.tasks import TASKS, Embed, EmbedSettings

from interop import foreign
from tasks.small import make_task

TEXTS = ["the cat", "the old man the boat sleeps on a mat", "a dog."]
ROWS = [(text,) for text in TEXTS]


def make(**settings: Any) -> Embed:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        task: Embed = make_task(Embed, EmbedSettings(**settings), ROWS)
    return task


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
def test_a_vector_does_not_depend_on_the_batch(pooling: str) -> None:
    task = make(pooling=pooling)
    together = task.embed(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        torch.testing.assert_close(task.embed([text])[0], vector)
    ids = task.to_ids(task.tokenizer.encode_batch(TEXTS[:1]))
    hidden = task.model.encode(ids, ids != 0)[0]
    expected = {"first": hidden[0], "mean": hidden.mean(0), "max": hidden.amax(0)}[pooling]
    torch.testing.assert_close(together[0], expected)


def test_normalized_vectors_have_length_1() -> None:
    torch.testing.assert_close(make(normalize=True).embed(TEXTS).norm(dim=1), torch.ones(3))


def test_predictions_are_lists_of_numbers_and_blank_texts_have_none() -> None:
    task = make()
    found = task.predict([TEXTS[0], "  "], DecodeSettings())
    assert found[0].answer == pytest.approx(task.embed(TEXTS[:1])[0].tolist(), abs=1e-5)
    assert (found[1].answer, found[1].line()) == ((), "[]")


def test_a_long_text_is_read_in_windows() -> None:
    task = make(max_tokens=8)
    assert task.limit == 7
    long = " ".join(TEXTS)
    assert len(task.tokenizer.encode(long)) > task.limit
    assert not torch.allclose(*task.embed([long, f"{long} dog"]))


def test_it_is_neither_trained_nor_scored() -> None:
    task = make()
    for refused in (lambda: task.validate([], ""), lambda: task.score([], DecodeSettings())):
        with pytest.raises(RecipeError, match=r"^An embed bundle has vectors, but no answers to train or score"):
            refused()
    assert not TASKS["embed"].init.is_offered


def test_the_lens_shows_the_beginning_of_the_vector() -> None:
    task = make()
    model_input = task.model_input(TEXTS[0])
    output = task.lens_output(model_input)
    assert output.answer.startswith("[") and output.log_probability is None
    assert "numbers" in str(output.notes[0])
    with pytest.raises(LensError, match=r"^A vector has no alternatives"):
        task.lens_probe(model_input).logits(0, 1)


def test_a_classifier_starts_from_an_imported_encoder(tmp_path: Path) -> None:
    from manyheads.api import train

    foreign.write_bert(tmp_path / "model")
    imported = import_huggingface(tmp_path / "model")
    imported.save(tmp_path / "bundle")
    for name, places in (("train", "bcdefghijk"), ("valid", "lmnop")):
        rows = [(f"the {animal} on {place}", animal) for animal in ("cat", "dog") for place in places]
        table = "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
        (tmp_path / f"{name}.tsv").write_text(table, encoding="utf-8")
    recipe = {
        "init_from": str(tmp_path / "bundle"),
        "data": {"train": [str(tmp_path / "train.tsv")], "valid": [str(tmp_path / "valid.tsv")]},
        "task": {"kind": "classify", "pooling": "mean", "baseline": False},
        "train": {"steps": 2, "batch_tokens": 200, "learning_rate": 1e-6},
        "model": {**imported.recipe["model"]},
    }
    bundle = train(recipe, tmp_path / "run")
    assert bundle.task.tokenizer.to_bytes() == imported.task.tokenizer.to_bytes()
    own, others = (each.task.model.encoder[0].attention.output.weight for each in (bundle, imported))
    torch.testing.assert_close(own, others, atol=1e-4, rtol=0.0)
    assert set(bundle.predict(["the cat"])) <= {"cat", "dog"}
    assert isinstance(load(tmp_path / "run" / "bundle"), Bundle)
