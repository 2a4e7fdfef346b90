"""The recipes of `quickstart`: a small model of each task in about two minutes on two cores."""

from typing import Any

STEPS = {"translate": 1000, "classify": 500, "tag": 500, "generate": 800}


def quickstart_recipe(task: str, builtin: str, steps: int) -> dict[str, Any]:
    """The recipe of a task; `builtin` is its language, or the two languages of a translator."""
    table = {
        "translate": _translate,
        "classify": _classify,
        "tag": _tag,
        "generate": _generate,
    }[task]()
    table["data"]["builtin"] = builtin
    if builtin == "zh":  # without spaces, tokens would be whole phrases, and new combinations of words new to the model
        table["tokenizer"] = {"kind": "character", "vocab_size": 1000}
    table["train"] |= {"steps": steps, "schedule": "cosine", "save_every": 50, "average_snapshots": 3}
    # Texts hardly ever come twice: there is nothing to overfit.
    table["model"] |= {"preset": "tiny", "norm_placement": "pre", "dropout": 0.0, "max_length": 256}
    return table


def _translate() -> dict[str, Any]:
    return {
        "data": {"builtin_rows": 100_000},
        "tokenizer": {
            "kind": "bpe",
            "vocab_size": 3000,
            "chinese_characters": "split",
        },  # most words of letters are one token
        "model": {"n_encoder_layers": 4, "n_decoder_layers": 2, "positions": "rotary"},
        "train": {"batch_tokens": 1500, "learning_rate": 4e-3, "warmup": 150, "validate_every": 100},
    }


def _classify() -> dict[str, Any]:
    return {
        "data": {"builtin_rows": 30_000},
        "task": {"kind": "classify", "smoothing": 0.0},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    }


def _tag() -> dict[str, Any]:
    return {
        "data": {"builtin_rows": 30_000},
        "task": {"kind": "tag", "intents": True},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    }


def _generate() -> dict[str, Any]:
    return {
        "data": {"builtin_rows": 30_000},
        "task": {"kind": "language"},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_decoder_layers": 2},
        "train": {"batch_tokens": 3000, "learning_rate": 3e-3, "warmup": 100, "validate_every": 200},
        "decode": {"method": "sample", "top_p": 0.9, "max_new_tokens": 150},
    }
