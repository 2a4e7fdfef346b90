"""torch.nn.Transformer in training, with the embedding, positions and loss that its users add."""

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from turns import PAD, Ids, Update, serve

LONGEST = 512


class Translator(nn.Module):
    def __init__(self, size: Mapping[str, Any]) -> None:
        super().__init__()
        self.width = width = size["width"]
        self.embedding = nn.Embedding(size["vocab_size"], width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.transformer = nn.Transformer(
            width,
            size["n_heads"],
            size["layers"],
            size["layers"],
            size["feed_forward_width"],
            size["dropout"],
            batch_first=True,
        )
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout.p = size["inner_dropout"]  # inside the feed-forward
            layer.self_attn.dropout = size["inner_dropout"]
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = size["inner_dropout"]
        self.dropout = nn.Dropout(size["dropout"])
        angles = torch.arange(LONGEST)[:, None] * 10_000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + self.positions[: ids.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        n_positions = target.size(1)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=torch.ones(n_positions, n_positions, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)


class Plain:
    def __init__(self, size: Mapping[str, Any]) -> None:
        self.model = Translator(size)
        self.smoothing = size["smoothing"]
        self.update = Update(self.model, size["learning_rate"])

    def prepare(self, ids: Ids) -> Ids:
        return ids

    def step(self, prepared: Ids) -> float:
        logits = self.model(prepared.source, prepared.target_input)
        loss = F.cross_entropy(
            logits.flatten(0, 1), prepared.target_output.flatten(), ignore_index=PAD, label_smoothing=self.smoothing
        )
        return self.update(loss)


if __name__ == "__main__":
    serve([], Plain)
