"""Small trained bundles, one per task: two layers with two heads, trained for seconds on the built-in corpus."""

from pathlib import Path

import pytest

from manyheads.run import Recipe, RunFolder, run

_LAYERS = {
    "seq2seq": {"n_encoder_layers": 2, "n_decoder_layers": 2},
    "classify": {"n_encoder_layers": 2},
    "tag": {"n_encoder_layers": 2},
    "language": {"n_decoder_layers": 2},
    "masked": {"n_encoder_layers": 2},
}
_CORPUS = {"seq2seq": "zh-en", "classify": "zh", "tag": "en", "language": "zh", "masked": "zh"}
_ALONE = {"classify": {"baseline": False}, "tag": {"baseline": False}}  # no linear model that needs no heads
_STEPS = {"seq2seq": 300, "classify": 80, "tag": 100, "language": 60, "masked": 60}


def recipe_of(task: str) -> Recipe:
    """The recipe of a bundle that is small but has learned something."""
    steps = _STEPS[task]
    table: dict[str, object] = {
        "data": {"builtin": _CORPUS[task], "builtin_rows": 1000},
        "task": {"kind": task} | _ALONE.get(task, {}),
        "tokenizer": {"vocab_size": 1200},
        "model": {"width": 32, "feed_forward_width": 64, "n_heads": 2, "max_length": 1024} | _LAYERS[task],
        "train": {
            "steps": steps,
            "batch_tokens": 600,
            "learning_rate": 0.01,
            "warmup": steps // 4,
            "validate_every": steps,
            "save_every": steps // 2,
            "average_snapshots": 1,
            "keep_all_snapshots": True,
        },
        "decode": {"method": "greedy", "max_new_tokens": 30},
    }
    return Recipe.from_table(table)


def train_bundle(task: str, folder: Path) -> Path:
    """Train the small bundle of a task and return its folder. Its test sets have 60 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyheads.run.corpus._BUILTIN_TEST", 60)
        patch.setenv("MANYHEADS_CACHE", str(folder / "cache"))
        for _ in run(recipe_of(task), folder):
            pass
    return RunFolder(folder).bundle
