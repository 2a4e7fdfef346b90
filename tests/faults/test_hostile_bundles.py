"""Bundles whose manifest is right and whose content is not: refused in one line, quickly and without much memory."""

import hashlib
import json
import math
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, ManyheadsError
from test_bundle import edit_config, reseal

from lens.makers import task_of


def config_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "bundle.json").read_text("utf-8"))


def refusal(folder: Path) -> str:
    """The one-line error of a bundle that must not load, which must come soon."""
    started = time.process_time()
    with pytest.raises(ManyheadsError) as caught:
        load(folder)
    assert time.process_time() - started < 5
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1500
    return message


SIZES = {
    "width": (100_000, "model.width = 100000 must be at least 1 and at most 65,536"),
    "n_encoder_layers": (1000, "does not fit this model: it has 29,376 numbers, the model of bundle.json"),
    "n_decoder_layers": (10**9, "model.n_decoder_layers = 1000000000 must be at least 0 and at most 1,000"),
    "feed_forward_width": (262_144, "does not fit this model: it has 29,376 numbers, the model of bundle.json"),
    "max_length": (10**12, "model.max_length = 1000000000000 must be at least 1 and at most 1,000,000"),
    "n_heads": (-4, "model.n_heads = -4 must be at least 1 and at most 1,024"),
    "vocab_size": (1_000_000, "the tokenizer has 1,500 tokens, the model 1,000,000"),
    "dropout": (math.nan, "model.dropout = nan must be at least 0 and less than 1"),
    "norm": (["layer"], "model.norm = .* should be text in quotes"),
    "attention_bias": (1, "model.attention_bias = 1 should be true or false"),
    "kept_heads": ({"x" * 5000: [0]}, "names an unknown attention"),
}


@pytest.mark.parametrize("name", SIZES)
def test_hostile_model_settings_are_refused_before_anything_is_allocated(bundle_folder: Path, name: str) -> None:
    value, message = SIZES[name]
    edit_config(bundle_folder, model=config_of(bundle_folder)["model"] | {name: value})
    with pytest.raises(BundleError, match=message):
        load(bundle_folder)
    refusal(bundle_folder)


def test_a_model_that_the_bounds_allow_and_the_weights_do_not_is_never_built(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.bundle.Transformer", lambda settings: pytest.fail("6 GB would be allocated"))
    edit_config(bundle_folder, model=config_of(bundle_folder)["model"] | {"width": 8192, "n_encoder_layers": 12})
    assert "does not fit this model: it has 29,376 numbers, the model of bundle.json" in refusal(bundle_folder)


CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "task": ({"task": ["x"]}, r'unknown task \["x"\]'),
    "format": ({"format": [3]}, r"no valid bundle format: \[3\]"),
    "model": ({"model": [1, 2]}, "does not have the expected content"),
    "decode": ({"decode": {"beam": 60_000}}, "decode.beam = 60000 must be at least 1 and at most 256"),
    "settings": ({"settings": "x"}, "does not have the expected content"),
    "score": ({"scores": {"test": [{"name": "BLEU"}]}}, "score.value is missing"),
    "score value": (
        {"scores": {"test": [{"name": "a", "value": "b", "low": 0, "high": 1, "signature": ""}]}},
        'score.value = "b" should be a number',
    ),
    "scores": ({"scores": {"test": 5}}, "does not have the expected content"),
    "int8": ({"int8": [1]}, "int8 is not an object"),
    "shortlist": ({"shortlist": "yes"}, "shortlist is not an object"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_hostile_config_is_refused(bundle_folder: Path, name: str) -> None:
    changes, message = CONFIGS[name]
    edit_config(bundle_folder, **changes)
    with pytest.raises(BundleError, match=message):
        load(bundle_folder)
    refusal(bundle_folder)


NUMBERS = list(map(str, range(50_000)))
LABELED: dict[str, tuple[str, dict[str, Any], str]] = {
    "labels": ("classify", {"labels": "ab"}, "metadata.labels is not a list of texts"),
    "twice": ("classify", {"labels": ["a", "a"]}, "metadata.labels has 2 labels; up to 100,000 different ones"),
    "many": ("tag", {"labels": list(map(str, range(5000)))}, "metadata.labels has 5,000 labels; up to 1,000"),
    "more": ("classify", {"labels": NUMBERS, "counts": [1] * len(NUMBERS)}, "is (2, 32), not (50000, 32)"),
    "counts": ("classify", {"counts": [1, -1]}, "must be whole numbers of at least 0"),
    "count": ("classify", {"counts": [1]}, "metadata.counts is not a list with a number for each label"),
    "zero": ("classify", {"temperature": 0}, "metadata.temperature must be greater than 0 and finite"),
    "nan": ("tag", {"temperature": math.nan}, "metadata.temperature must be greater than 0 and finite"),
    "calibrated": ("classify", {"n_calibrated": -1}, "must be whole numbers of at least 0"),
    "split": ("tag", {"split_by": ["word"]}, "metadata.split_by is not one of word, character"),
    "scope": ("classify", {"out_of_scope": {"weights": [math.inf] * 3, "bias": 0, "ngrams": ""}}, "must be finite"),
    "filter": ("classify", {"out_of_scope": {"weights": [], "bias": 0, "ngrams": "AAAA"}}, "not a power of two"),
}


@pytest.mark.parametrize("name", LABELED)
def test_hostile_labels_and_numbers_are_refused(tmp_path: Path, name: str) -> None:
    kind, changes, message = LABELED[name]
    Bundle(task_of(kind), DecodeSettings(), {}).save(tmp_path / "bundle")
    load(tmp_path / "bundle")
    edit_config(tmp_path / "bundle", metadata=config_of(tmp_path / "bundle")["metadata"] | changes)
    assert message in refusal(tmp_path / "bundle")


@pytest.mark.parametrize("metadata", [1.0, [1], "x", None])
def test_hostile_metadata_is_refused(bundle_folder: Path, metadata: object) -> None:
    edit_config(bundle_folder, metadata=metadata)
    assert "metadata is not an object" in refusal(bundle_folder)


CONTENTS = {
    "deep": (b'{"format": ' + b"[" * 100_000, "nested more than 32 levels deep"),
    "twice": (b'{"format": 3, "format": 3}', 'the key "format" occurs twice'),
    "number": (b'{"format": ' + b"9" * 5000 + b"}", "an integer of more than 4,300 digits"),
    "large": (b" " * 9_000_000, "the file has more than 8,000,000 bytes"),
    "encoding": (b'{"format": "\xff"}', "byte 12 is not UTF-8"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_hostile_json_is_refused(bundle_folder: Path, name: str) -> None:
    content, message = CONTENTS[name]
    (bundle_folder / "bundle.json").write_bytes(content)
    reseal(bundle_folder)
    assert message in refusal(bundle_folder)


def changed(**changes: torch.Tensor) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda weights: weights | changes


NAME = "source_embedding.token_embedding.weight"
TENSORS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], str]] = {
    "no scales": (
        changed(**{NAME: torch.ones(1500, 16, dtype=torch.int8)}),
        "int8 weights without their scales",
    ),
    "wrong scales": (
        changed(**{NAME: torch.ones(1500, 16, dtype=torch.int8), f"{NAME}.scale": torch.ones(16)}),
        "int8 weights without their scales",
    ),
    # Multiplied, these would take 10 GB.
    "broadcast": (
        changed(**{NAME: torch.ones(1, 50_000, dtype=torch.int8), f"{NAME}.scale": torch.ones(50_000)}),
        "int8 weights without their scales",
    ),
    "type": (changed(**{NAME: torch.ones(1500, 16, dtype=torch.bool)}), "has weights of type BOOL"),
    "shape": (changed(**{NAME: torch.ones(16, 1500)}), r"is (16, 1500), not (1500, 16)"),
    "nan": (
        lambda weights: weights | {NAME: weights[NAME] * torch.nan},
        "has numbers that are NaN or infinite: source_",
    ),
    "infinite": (
        lambda weights: {name: torch.full_like(value, torch.inf) for name, value in weights.items()},
        "more. It is damaged, or its training diverged",
    ),
    "infinite scales": (
        changed(**{NAME: torch.ones(1500, 16, dtype=torch.int8), f"{NAME}.scale": torch.full((1500,), torch.inf)}),
        "has numbers that are NaN or infinite: source_",
    ),
    "infinite after scaling": (
        changed(**{NAME: torch.full((1500, 16), 9, dtype=torch.int8), f"{NAME}.scale": torch.full((1500,), 1e38)}),
        "has numbers that are NaN or infinite: source_",
    ),
    "infinite in 32 bits": (
        lambda weights: weights | {NAME: torch.full((1500, 16), 1e300, dtype=torch.float64)},
        "has numbers that are NaN or infinite: source_",
    ),
    "many": (lambda weights: weights | {f"x{n}": torch.ones(1) for n in range(1000)}, "and 990 more"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_hostile_weights_are_refused(bundle_folder: Path, name: str) -> None:
    change, message = TENSORS[name]
    path = bundle_folder / "weights.safetensors"
    save_file(change(load_file(path)), path)
    reseal(bundle_folder)
    assert message in refusal(bundle_folder)


@pytest.mark.parametrize(
    "array", [torch.ones(3, 2, dtype=torch.int32), torch.ones(3), torch.ones(3, dtype=torch.bfloat16), torch.tensor(1)]
)
def test_hostile_shortlist_is_refused(bundle_folder: Path, array: torch.Tensor) -> None:
    tensors = {"always": torch.ones(1, dtype=torch.int32), "starts": torch.zeros(1501, dtype=torch.int64)}
    save_file(tensors | {"token_ids": array}, bundle_folder / "shortlist.safetensors")
    edit_config(bundle_folder, shortlist={})
    assert "shortlist.safetensors: " in refusal(bundle_folder)


@pytest.mark.parametrize("header", [struct.pack("<Q", 2**63), struct.pack("<Q", 10**9), b"", b"\0" * 7])
def test_hostile_header_of_the_weights_is_refused(bundle_folder: Path, header: bytes) -> None:
    (bundle_folder / "weights.safetensors").write_bytes(header)
    reseal(bundle_folder)
    assert "is not a safetensors file" in refusal(bundle_folder)


DIGEST = hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(
    "name", ["..", ".", "../../etc/passwd", "/etc/passwd", "a\\b", "a\0b", "a\x1b[2Jb", "x" * 300, "\r", ""]
)
def test_hostile_name_in_the_manifest_is_refused(bundle_folder: Path, name: str) -> None:
    manifest = bundle_folder / "MANIFEST.sha256"
    manifest.write_bytes(manifest.read_bytes().split(b"\n", 1)[1] + f"{DIGEST}  {name}\n".encode())
    assert "MANIFEST.sha256 is damaged" in refusal(bundle_folder)


def test_of_many_missing_files_some_are_named(bundle_folder: Path) -> None:
    lines = "".join(f"{DIGEST}  file-{number}\n" for number in range(10_000))
    (bundle_folder / "MANIFEST.sha256").write_text(lines)
    assert "file-9 is missing; and 9,990 more." in refusal(bundle_folder)


@pytest.mark.parametrize("target", ["/dev/zero", "loop", "/", "/nonexistent"])
def test_hostile_link_is_refused(bundle_folder: Path, target: str) -> None:
    for name in ("bundle.json", "tokenizer.model", "MANIFEST.sha256"):
        path = bundle_folder / name
        content = path.read_bytes()
        path.unlink()
        path.symlink_to(path if target == "loop" else target)
        assert "is missing" in refusal(bundle_folder)
        path.unlink()
        path.write_bytes(content)


def test_large_tokenizer_is_refused(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.text.tokens.tokenizer._MAX_BYTES", 1000)
    assert "the tokenizer cannot be read (the file has more than 1,000 bytes)" in refusal(bundle_folder)


def test_hostile_recipe_is_refused(bundle_folder: Path) -> None:
    (bundle_folder / "recipe.toml").write_text("a." * 5000 + "a = 1")
    reseal(bundle_folder)
    assert "nested more than 32 levels deep" in refusal(bundle_folder)


def test_a_path_with_nul_is_no_folder(untrained: Bundle) -> None:
    with pytest.raises(BundleError, match="there is no such folder"):
        load("a\0b")
