"""Recipes: mutated text, hostile values and overrides; and models of every combination of settings."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import torch

from manyheads.model import PRESETS, ModelSettings, Transformer
from manyheads.model.norms import NORMS
from manyheads.model.score_forms import SCORE_FORMS
from manyheads.model.size import parameters_by_part
from manyheads.run import Recipe, read_recipe
from manyheads.settings import build, to_table, toml_value

from fuzz.mutations import mutated
from fuzz.values import changed, hostile_value

_FILES = ["train.en", "train.zh"]
_TABLES: tuple[dict[str, Any], ...] = (
    {"data": {"builtin": "en-zh"}, "model": {"preset": "tiny"}},
    {
        "seed": 3,
        "device": "cpu",
        "data": {"train": _FILES, "valid_fraction": 0.1, "source_column": "a"},
        "clean": {"max_ratio": 2.5},
        "tokenizer": {"vocab_size": 4000, "sampling": 0.1, "kind": "bpe"},
        "model": {"width": 64, "n_heads": 4, "n_encoder_layers": 2, "max_length": 256, "kept_heads": {}},
        "task": {"kind": "seq2seq", "smoothing": 0.1, "source_language": "en"},
        "train": {"steps": 100, "learning_rate": 0.001, "patience": 3, "clip_norm": 1.0},
        "decode": {"beam": 4, "n_best": 2, "stop": ["\n"], "max_new_tokens": 20},
    },
    {
        "data": {"mix": [{"files": ["a.tsv"], "weight": 0.5}, {"files": ["b.csv"], "label_column": "2"}]},
        "model": {"preset": "small", "positions": "rotary", "head_width": 32},
        "task": {"kind": "classify", "convolution": 2, "multi_label": True, "pooling": "mean"},
    },
    {
        "freeze": ["encoder.0"],
        "data": {"train": ["."], "valid": ["v.conll"], "test": ["t.conll"]},
        "model": {"scores": "cosine", "norm": "rms", "activation": "swiglu"},
        "task": {"kind": "tag", "intents": True, "decoder": "constrained"},
    },
    {
        "data": {"builtin": "en", "builtin_rows": 2000},
        "model": {"n_decoder_layers": 2, "positions": "alibi", "n_key_heads": 2},
        "task": {"kind": "language", "stride": 10, "documents": "line"},
    },
    {
        "data": {"train": ["text.txt"]},
        "model": {"scores": "random-synthesizer", "max_length": 64},
        "task": {"kind": "masked", "mask_probability": 0.2},
    },
)
_KEYS = sorted(
    {
        f"{section}.{key}"
        for table in _TABLES
        for section, keys in table.items()
        if isinstance(keys, dict)
        for key in keys
    }
)


def _to_toml(table: Mapping[str, Any]) -> str:
    """Write tables as tomlkit does, but faster."""
    top = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return "".join([_lines(top), *(f"[{toml_value(key)}]\n{_lines(table[key])}" for key in table if key not in top)])


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{toml_value(key)} = {toml_value(value)}\n" for key, value in table.items())


_TEXTS = [_to_toml(table).encode() for table in _TABLES]


def _check(recipe: Recipe) -> None:
    """An accepted recipe must be one that a run can store and read again."""
    assert Recipe.from_table(to_table(recipe)) == recipe


def text(rng: Random) -> None:
    """Mutated bytes of a recipe."""
    path = Path("recipe.toml")
    path.write_bytes(mutated(rng, rng.choice(_TEXTS), 6))
    _check(read_recipe(path))


def values(rng: Random) -> None:
    """A recipe with hostile values."""
    path = Path("recipe.toml")
    table = changed(rng, rng.choice(_TABLES), rng.choice((0, 1, 1, 1, 2, 5)))
    path.write_text(_to_toml(table), "utf-8", errors="surrogatepass")
    _check(read_recipe(path))


def overrides(rng: Random) -> None:
    """Overrides on the command line."""
    path = Path("recipe.toml")
    path.write_bytes(rng.choice(_TEXTS))
    assignments = []
    for _ in range(rng.randrange(1, 3)):
        value = toml_value(hostile_value(rng)) if rng.random() < 0.7 else str(rng.randrange(1, 100))
        assignment = f"{rng.choice(_KEYS)}={value}".encode("utf-8", "surrogatepass")
        if rng.random() < 0.3:
            assignment = mutated(rng, assignment)
        assignments.append(os.fsdecode(assignment.replace(b"\0", b"")))
    _check(read_recipe(path, assignments))


_CHOICES: dict[str, tuple[Any, ...]] = {
    "shape": ("encoder-decoder", "encoder", "decoder"),
    "width": (1, 2, 7, 8, 12, 16),
    "n_encoder_layers": (0, 1, 2),
    "n_decoder_layers": (0, 1, 2),
    "feed_forward_width": (1, 5),
    "activation": ("relu", "gelu", "swiglu"),
    "max_length": (1, 2, 9),
    "n_heads": (1, 2, 3, 4),
    "n_key_heads": (None, 1, 2, 4),
    "head_width": (None, 1, 2, 3),
    "value_width": (None, 1, 4),
    "attention_bias": (False, True),
    "scores": tuple(SCORE_FORMS),
    "projections": ("separate", "tied", "shared", "none"),
    "positions": ("sinusoidal", "learned", "rotary", "alibi", "none"),
    "norm": tuple(NORMS),
    "norm_placement": ("post", "pre"),
    "norm_epsilon": (1e-5, 1e-300, 1.0),
    "tie_source_target": (False, True),
    "tie_output": (False, True),
    "scale_embedding": (False, True),
    "dropout": (0.0, 0.5),
    "attention_dropout": (0.0, 0.9),
    "token_dropout": (0.0, 0.5),
    "head_dropout": (0.0, 0.5),
    "kept_heads": ({}, {"encoder.0.self": (0,)}, {"decoder.0.cross": ()}, {"decoder.1.self": (0, 1)}),
}


def models(rng: Random) -> None:
    """A model of random settings: refused, or built with the parameters that were counted, and it runs."""
    settings: dict[str, Any] = {"vocab_size": rng.choice((1, 5, 30))}
    settings |= {name: rng.choice(options) for name, options in _CHOICES.items() if rng.random() < 0.4}
    if rng.random() < 0.2:
        settings[rng.choice(sorted(_CHOICES))] = hostile_value(rng)
    built = build(ModelSettings, settings, "model.")
    n_parameters = sum(parameters_by_part(built).values())
    if n_parameters > 200_000 or built.n_encoder_layers + built.n_decoder_layers > 20:
        return
    torch.manual_seed(rng.randrange(10))
    model = Transformer(built)
    assert model.n_parameters == n_parameters
    if rng.random() < 0.5:
        model.eval()
    length = rng.randint(1, min(6, built.max_length))
    ids = torch.randint(0, built.vocab_size, (2, length))
    with torch.inference_mode():
        logits = model(ids if built.has_encoder else None, ids if built.has_decoder else None)
    assert logits.shape == (2, length, built.vocab_size)


def presets(rng: Random) -> None:
    """A preset with one hostile setting."""
    names = [field.name for field in dataclasses.fields(ModelSettings)]
    table = {"vocab_size": 300, **PRESETS[rng.choice(list(PRESETS))], rng.choice(names): hostile_value(rng)}
    build(ModelSettings, table, "model.")


TARGETS: dict[str, Callable[[Random], None]] = {
    "recipe-text": text,
    "recipe-values": values,
    "recipe-overrides": overrides,
    "model-settings": models,
    "model-presets": presets,
}
