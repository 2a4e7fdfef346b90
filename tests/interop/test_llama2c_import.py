"""Files of llama2.c: the logits of a plain reference that rotates neighbors as run.c does, and its tokenizer."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from manyheads.bundle import load
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError
from manyheads.interop import import_huggingface

WIDTH, INNER, N_LAYERS, N_HEADS, N_KEY_HEADS, LENGTH = 24, 20, 2, 4, 2, 32
PIECES = [" ", *"abcdefghijklmnopqrstuvwxyz.,", " a", "th", " th", "he", " the", " c", "at", " cat", "s", "ing"]
N_IDS = 3 + 256 + len(dict.fromkeys(PIECES))
Array = NDArray[np.float64]


def write_file(path: Path, *, is_tied: bool, seed: int = 0) -> dict[str, Any]:
    """Write random weights and a tokenizer; return the weights."""
    rng, head = np.random.default_rng(seed), WIDTH // N_HEADS
    keys = N_KEY_HEADS * head
    shapes = {
        "embedding": (N_IDS, WIDTH),
        "attention_norm": (N_LAYERS, WIDTH),
        "wq": (N_LAYERS, WIDTH, WIDTH),
        "wk": (N_LAYERS, keys, WIDTH),
        "wv": (N_LAYERS, keys, WIDTH),
        "wo": (N_LAYERS, WIDTH, WIDTH),
        "ffn_norm": (N_LAYERS, WIDTH),
        "w1": (N_LAYERS, INNER, WIDTH),
        "w2": (N_LAYERS, WIDTH, INNER),
        "w3": (N_LAYERS, INNER, WIDTH),
        "norm": (WIDTH,),
        "angles": (2, LENGTH, head // 2),
        **({} if is_tied else {"output": (N_IDS, WIDTH)}),
    }
    weights: dict[str, Any] = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    n_ids = N_IDS if is_tied else -N_IDS
    header = struct.pack("<7i", WIDTH, INNER, N_LAYERS, N_HEADS, N_KEY_HEADS, n_ids, LENGTH)
    path.write_bytes(header + b"".join(value.tobytes() for value in weights.values()))
    texts = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(bytes((byte,)) for byte in range(256))]
    texts += [piece.encode() for piece in dict.fromkeys(PIECES)]
    rows = [struct.pack("<fi", -float(number), len(text)) + text for number, text in enumerate(texts)]
    path.with_name("tokenizer.bin").write_bytes(struct.pack("<i", 8) + b"".join(rows))
    return weights


def normed(x: Array, weight: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def rotated(x: Array) -> Array:
    """Rotate each pair of neighbors by position / 10000^(2i / head width), as run.c does. x: positions × heads × D."""
    width = x.shape[-1]
    angles = np.arange(len(x))[:, None, None] / 10_000.0 ** (np.arange(0, width, 2) / width)
    result = np.empty_like(x)
    result[..., 0::2] = x[..., 0::2] * np.cos(angles) - x[..., 1::2] * np.sin(angles)
    result[..., 1::2] = x[..., 0::2] * np.sin(angles) + x[..., 1::2] * np.cos(angles)
    return result


def reference(weights: dict[str, Any], ids: list[int]) -> Array:
    """The logits at every position, in double precision."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x, n, head = w["embedding"][ids], len(ids), WIDTH // N_HEADS
    for layer in range(N_LAYERS):
        y = normed(x, w["attention_norm"][layer])
        q = rotated((y @ w["wq"][layer].T).reshape(n, N_HEADS, head))
        k = rotated((y @ w["wk"][layer].T).reshape(n, N_KEY_HEADS, head))
        v = (y @ w["wv"][layer].T).reshape(n, N_KEY_HEADS, head)
        heads = np.zeros((n, N_HEADS, head))
        for number in range(N_HEADS):
            own = number * N_KEY_HEADS // N_HEADS
            scores = q[:, number] @ k[:, own].T / np.sqrt(head)
            scores[np.triu_indices(n, 1)] = -np.inf
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            heads[:, number] = shares / shares.sum(-1, keepdims=True) @ v[:, own]
        x = x + heads.reshape(n, WIDTH) @ w["wo"][layer].T
        y = normed(x, w["ffn_norm"][layer])
        gate = y @ w["w1"][layer].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w["w3"][layer].T)) @ w["w2"][layer].T
    return normed(x, w["norm"]) @ w.get("output", w["embedding"]).T


@pytest.mark.parametrize("is_tied", [True, False])
def test_logits_and_greedy_search_are_those_of_the_reference(is_tied: bool, tmp_path: Path) -> None:
    weights = write_file(tmp_path / "model.bin", is_tied=is_tied)
    bundle = import_huggingface(tmp_path / "model.bin")
    bundle.save(tmp_path / "bundle")
    task: Any = load(tmp_path / "bundle").task
    numbering = task.tokenizer.numbering
    theirs = [1, *(numbering.theirs[number] for number in task.tokenizer.encode("the cat sing"))]
    with torch.no_grad():
        found = task.model(None, torch.tensor([[numbering.ours[number] for number in theirs]]))[0, :, numbering.ours]
    np.testing.assert_allclose(found.numpy(), reference(weights, theirs), atol=1e-4)
    written, expected = list(theirs), []
    for _ in range(8):
        logits = reference(weights, written)[-1]
        logits[[0, 1]] = -np.inf  # neither is ever generated
        if (best := int(logits.argmax())) == 2:
            break
        written.append(best)
        expected.append(best)
    best_hypothesis = task.generate_one(
        task.model_input("the cat sing"), DecodeSettings(method="greedy", max_new_tokens=8)
    )
    assert [numbering.theirs[number] for number in best_hypothesis[0].ids] == expected


def test_the_tokenizer_merges_by_score_and_spells_other_characters_in_bytes(tmp_path: Path) -> None:
    write_file(tmp_path / "model.bin", is_tied=True)
    tokenizer = import_huggingface(tmp_path / "model.bin").task.tokenizer
    assert [tokenizer.id_to_token(number) for number in tokenizer.encode("the cat é")] == [
        "▁the", "▁cat", "▁", "<0xC3>", "<0xA9>",
    ]  # fmt: skip
    assert tokenizer.decode(tokenizer.encode("the cat  é")) == "the cat  é"


def test_a_damaged_tokenizer_and_a_cut_off_file_are_one_line(tmp_path: Path) -> None:
    write_file(tmp_path / "model.bin", is_tied=True)
    whole = (tmp_path / "model.bin").read_bytes()
    (tmp_path / "model.bin").write_bytes(whole[:-4])
    with pytest.raises(BundleError, match=r"not a model of llama2\.c"):
        import_huggingface(tmp_path / "model.bin")
    (tmp_path / "model.bin").write_bytes(whole)
    (tmp_path / "tokenizer.bin").write_bytes(b"\x01\x00\x00\x00")
    with pytest.raises(BundleError, match=r"is not a tokenizer of llama2\.c"):
        import_huggingface(tmp_path / "model.bin")
