"""Hugging Face in training: Marian, the encoder–decoder of its translation models."""

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from transformers import MarianConfig, MarianMTModel
from turns import PAD, Ids, Update, serve


class Marian:
    def __init__(self, size: Mapping[str, Any]) -> None:
        sides = {
            f"{side}_{what}": size[ours]
            for side in ("encoder", "decoder")
            for what, ours in (("layers", "layers"), ("attention_heads", "n_heads"), ("ffn_dim", "feed_forward_width"))
        }
        config = MarianConfig(
            vocab_size=size["vocab_size"],
            d_model=size["width"],
            activation_function="relu",
            dropout=size["dropout"],
            attention_dropout=size["inner_dropout"],
            activation_dropout=size["inner_dropout"],
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=2,
            eos_token_id=3,
            forced_eos_token_id=3,
            decoder_start_token_id=2,
            use_cache=False,
            **sides,
        )
        self.model = MarianMTModel(config)
        self.smoothing = size["smoothing"]
        self.update = Update(self.model, size["learning_rate"])

    def prepare(self, ids: Ids) -> tuple[Ids, dict[str, Tensor]]:
        real = {
            "attention_mask": (ids.source != PAD).long(),
            "decoder_attention_mask": (ids.target_input != PAD).long(),
        }
        return ids, real

    def step(self, prepared: tuple[Ids, dict[str, Tensor]]) -> float:
        ids, real = prepared
        logits = self.model(input_ids=ids.source, decoder_input_ids=ids.target_input, **real).logits
        # LabelSmoother of Hugging Face gives the same loss and is slightly slower.
        loss = F.cross_entropy(
            logits.flatten(0, 1), ids.target_output.flatten(), ignore_index=PAD, label_smoothing=self.smoothing
        )
        return self.update(loss)


if __name__ == "__main__":
    serve(["transformers"], Marian)
