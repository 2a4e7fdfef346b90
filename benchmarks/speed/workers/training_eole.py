"""eole in training: its model and its LossCompute."""

from collections.abc import Mapping
from typing import Any

from eole.config.run import TrainConfig
from eole.constants import DefaultTokens
from eole.inputters.inputter import dict_to_vocabs
from eole.models.model import get_model_class
from eole.utils.loss import LossCompute
from turns import PAD, Ids, Update, serve

SPECIAL = [DefaultTokens.PAD, DefaultTokens.UNK, DefaultTokens.BOS, DefaultTokens.EOS]


class Eole:
    def __init__(self, size: Mapping[str, Any]) -> None:
        config = TrainConfig(
            src_vocab="given",
            tgt_vocab="given",
            share_vocab=True,
            data={},
            model={
                "architecture": "transformer",
                "layers": size["layers"],
                "hidden_size": size["width"],
                "heads": size["n_heads"],
                "transformer_ff": size["feed_forward_width"],
                "add_ffnbias": True,
                "share_embeddings": True,
                "share_decoder_embeddings": True,
                "embeddings": {"word_vec_size": size["width"], "position_encoding_type": "SinusoidalInterleaved"},
            },
            training={
                "dropout": [size["dropout"]],
                "attention_dropout": [size["inner_dropout"]],
                "label_smoothing": size["smoothing"],
                "param_init_method": "xavier_uniform",
                "compute_dtype": "fp32",
            },
        )
        words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), size["vocab_size"]))]
        vocabularies = dict_to_vocabs({"src": words, "tgt": words, "specials": {}})
        assert vocabularies["tgt"][DefaultTokens.PAD] == PAD and len(vocabularies["tgt"]) == size["vocab_size"]
        self.model = get_model_class(config.model).for_training(config.model, vocabularies, config.training)
        for name, module in self.model.named_modules():
            if name.endswith("mlp.dropout_1"):  # after the activation; eole uses the same rate everywhere
                module.p = size["inner_dropout"]
        self.loss = LossCompute.from_config(config, self.model, vocabularies)
        self.update = Update(self.model, size["learning_rate"])

    def prepare(self, ids: Ids) -> tuple[dict[str, Any], int]:
        batch = {"src": ids.source, "srclen": (ids.source != PAD).sum(1), "tgt": ids.target}
        origin = {"cid": ["text"] * len(ids.source), "cid_line_number": list(range(len(ids.source)))}
        return {**batch, **origin}, ids.n_tokens

    def step(self, prepared: tuple[dict[str, Any], int]) -> float:
        batch, n_tokens = prepared
        output, attentions, estimate = self.model(batch["src"], batch["tgt"], batch["srclen"], with_align=False)
        loss, _, _ = self.loss(batch, output, attentions, estim=estimate)
        return self.update(loss / n_tokens)


if __name__ == "__main__":
    serve(["eole"], Eole)
