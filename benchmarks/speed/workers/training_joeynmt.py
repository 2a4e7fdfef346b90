"""JoeyNMT in training: its model, its batch, its smoothed loss."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary
from turns import PAD, Ids, Update, serve

THEIR_PAD, THEIR_EOS = 1, 3  # 0 is UNK, which no batch contains


class Joey:
    def __init__(self, size: Mapping[str, Any]) -> None:
        special = {"unk": 0, "pad": THEIR_PAD, "bos": 2, "eos": THEIR_EOS}
        names = {f"{name}_token": f"<{name}>" for name in special}
        numbers = {f"{name}_id": number for name, number in special.items()}
        known = SimpleNamespace(**names, **numbers, sep_token=None, lang_tags=[])
        words = [f"w{number}" for number in range(len(special), size["vocab_size"])]
        vocabulary = Vocabulary(words, known)
        stack = {
            "type": "transformer",
            "num_layers": size["layers"],
            "num_heads": size["n_heads"],
            "hidden_size": size["width"],
            "ff_size": size["feed_forward_width"],
            "dropout": size["dropout"],
            "layer_norm": "post",
            "embeddings": {"embedding_dim": size["width"], "scale": True, "dropout": size["dropout"]},
        }
        config = {"encoder": stack, "decoder": stack, "tied_embeddings": True, "tied_softmax": True}
        self.model = build_model(config, vocabulary, vocabulary)
        for name, module in self.model.named_modules():  # JoeyNMT uses the same rate everywhere
            if name.endswith(("_att.dropout", "pwff_layer.2")):
                module.p = size["inner_dropout"]
        self.model.loss_function = ("crossentropy", size["smoothing"])
        self.update = Update(self.model, size["learning_rate"])

    def prepare(self, ids: Ids) -> Batch:
        source, target = (part.masked_fill(part == PAD, THEIR_PAD) for part in (ids.source, ids.target))
        lengths = (source != THEIR_PAD).sum(1)
        everything = torch.arange(len(source))
        return Batch(source, lengths, None, target, None, everything, torch.device("cpu"), THEIR_PAD, THEIR_EOS)

    def step(self, prepared: Batch) -> float:
        loss, _, _, n_right = self.model(return_type="loss", **vars(prepared))
        n_right.item()
        return self.update(prepared.normalize(loss, "tokens"))


if __name__ == "__main__":
    serve(["joeynmt"], Joey)
