"""Import from llama2.c: one file of float32 numbers, with tokenizer.bin beside it, becomes a bundle.

Its tensors are presented under the names of a Llama checkpoint. Queries and keys are in the order of neighbors, as ours
are; a Llama checkpoint has halves, so they are permuted here and back again by the plan.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.errors import BundleError
from manyheads.interop.checkpoint_files import Checkpoint, Config
from manyheads.messages import _

_HEADER = struct.Struct("<7i")


@dataclass(frozen=True)
class Llama2cFile(Checkpoint):
    """The tensors of a file of llama2.c by the names of Llama; `places` are their offsets in numbers."""

    places: Mapping[str, int]
    n_heads: Mapping[str, int]  # of queries and keys, whose rows are permuted

    def __getitem__(self, name: str) -> Tensor:
        """A tensor, read from the mapped file."""
        shape = self.shapes[name]
        offset = _HEADER.size + 4 * self.places[name]
        array = np.memmap(self.folder, np.float32, "r", offset, shape)
        tensor = torch.from_numpy(np.array(array))
        if name not in self.n_heads:
            return tensor
        return tensor.unflatten(0, (self.n_heads[name], -1, 2)).transpose(1, 2).flatten(0, 2)


def open_llama2c(path: Path) -> tuple[Config, Llama2cFile]:
    """Read the header of a file of llama2.c (its first format) as the config of a Llama, and place its tensors."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise _not_llama2c(path)
    width, inner, n_layers, n_heads, n_key_heads, vocab_size, length = _HEADER.unpack(header)
    sizes = (width, inner, n_layers, n_heads, n_key_heads, abs(vocab_size), length)
    if min(sizes) < 1 or max(sizes) > 2**24 or width % n_heads or n_heads % n_key_heads:
        raise _not_llama2c(path)
    head_width, is_tied = width // n_heads, vocab_size > 0
    keys = n_key_heads * head_width
    blocks: list[tuple[str, tuple[int, ...]]] = [
        ("input_layernorm", (width,)),
        ("self_attn.q_proj", (width, width)),
        ("self_attn.k_proj", (keys, width)),
        ("self_attn.v_proj", (keys, width)),
        ("self_attn.o_proj", (width, width)),
        ("post_attention_layernorm", (width,)),
        ("mlp.gate_proj", (inner, width)),
        ("mlp.down_proj", (width, inner)),
        ("mlp.up_proj", (inner, width)),
    ]
    order: list[tuple[str, tuple[int, ...]]] = [("model.embed_tokens.weight", (abs(vocab_size), width))]
    order += [(f"model.layers.{layer}.{name}.weight", shape) for name, shape in blocks for layer in range(n_layers)]
    order += [("model.norm.weight", (width,)), ("angles", (2, length, head_width // 2))]
    order += [] if is_tied else [("lm_head.weight", (abs(vocab_size), width))]
    shapes, places, position = {}, {}, 0
    for name, shape in order:
        shapes[name], places[name] = shape, position
        position += math.prod(shape)
    if size != _HEADER.size + 4 * position:
        raise _not_llama2c(path)
    del shapes["angles"]
    table: dict[str, Any] = {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": n_layers,
        "num_attention_heads": n_heads,
        "num_key_value_heads": n_key_heads,
        "vocab_size": abs(vocab_size),
        "max_position_embeddings": length,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": is_tied,
    }
    permuted = {name: n_heads for name in shapes if name.endswith("q_proj.weight")}
    permuted |= {name: n_key_heads for name in shapes if name.endswith("k_proj.weight")}
    return Config(path, table, shapes), Llama2cFile(path, {}, shapes, {}, places, permuted)


def _not_llama2c(path: Path) -> BundleError:
    return BundleError(
        _(
            "{path} is a file, not a folder, and not a model of llama2.c. Give a folder with a config.json and "
            "safetensors.",
            path=path,
        )
    )
