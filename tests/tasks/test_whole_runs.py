"""Language models from a recipe to a bundle: trained, interrupted, resumed and loaded."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.bundle import load
from manyheads.decode import DecodeSettings
from manyheads.run import Recipe, run
from manyheads.tasks import Language, Masked

MODEL = {"width": 16, "feed_forward_width": 24, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
TRAIN = {"steps": 6, "batch_tokens": 500, "warmup": 2, "validate_every": 3, "save_every": 2, "average_snapshots": 1}
Table = Callable[..., dict[str, object]]


def make_recipe(table: Table, kind: str, folder: Path, **changes: object) -> Recipe:
    text = folder / "text.txt"
    if not text.exists():
        lines = [f"Scene {number}.\n\nThe cat  sat, the dog ran {number % 7} miles.\n" for number in range(300)]
        text.write_text("".join(lines), encoding="utf-8")
    sections: dict[str, object] = {
        "data": {"train": [str(text)], "valid_fraction": 0.1},
        "task": {"kind": kind},
        "tokenizer": {"kind": "character", "vocab_size": 400},
        "model": MODEL | {"max_length": 48, "positions": "rotary"},
        "train": TRAIN,
        "decode": {"method": "sample", "max_new_tokens": 30},
    }
    return Recipe.from_table(table(**sections | changes))


def test_language_model_from_text_to_bundle(recipe_table: Table, tmp_path: Path) -> None:
    recipe = make_recipe(recipe_table, "language", tmp_path)
    events = {type(event).__name__ for event in run(recipe, tmp_path / "run")}
    assert {"Prepared", "Step", "Validated", "Saved", "Finished"} <= events
    bundle = load(tmp_path / "run" / "bundle")
    assert isinstance(bundle.task, Language)
    [text] = bundle.predict(["Scene 3"])
    assert text == "".join(bundle.task.stream("Scene 3", bundle.decode))
    names = [score.name for score in bundle.scores["valid"]]
    assert names[:2] == ["nats per character", "bits per byte"]


def test_resumed_run_has_identical_weights(recipe_table: Table, tmp_path: Path) -> None:
    recipe = make_recipe(recipe_table, "language", tmp_path)
    list(run(recipe, tmp_path / "whole"))
    steps = 0

    def should_stop() -> bool:
        nonlocal steps
        steps += 1
        return steps == 3

    list(run(recipe, tmp_path / "parts", should_stop))
    assert not (tmp_path / "parts" / "bundle").exists()
    list(run(recipe, tmp_path / "parts"))
    whole, parts = ((tmp_path / name / "bundle" / "weights.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


@pytest.mark.parametrize("whole_words", [False, True])
def test_masked_model_from_text_to_bundle(recipe_table: Table, tmp_path: Path, whole_words: bool) -> None:
    task = {"kind": "masked", "documents": "paragraph", "whole_words": whole_words, "mask_probability": 0.3}
    recipe = make_recipe(recipe_table, "masked", tmp_path, task=task)
    list(run(recipe, tmp_path / "run"))
    bundle = load(tmp_path / "run" / "bundle")
    assert isinstance(bundle.task, Masked)
    [filling] = bundle.task.predict(["The c[MASK]t"], DecodeSettings())
    assert filling.gaps[0][0].probability > 0
    assert bundle.scores["valid"][0].name == "accuracy of masked tokens"
