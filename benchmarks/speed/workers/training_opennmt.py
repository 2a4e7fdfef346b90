"""OpenNMT-py in training: its model and its LossCompute."""

from collections.abc import Mapping
from typing import Any

import onmt.opts
from onmt.constants import DefaultTokens
from onmt.inputters.inputter import dict_to_vocabs
from onmt.model_builder import build_model
from onmt.utils.loss import LossCompute
from onmt.utils.parse import ArgumentParser
from turns import PAD, Ids, Update, serve

SPECIAL = [DefaultTokens.PAD, DefaultTokens.UNK, DefaultTokens.BOS, DefaultTokens.EOS]


class OpenNMT:
    def __init__(self, size: Mapping[str, Any]) -> None:
        parser = ArgumentParser()
        onmt.opts.train_opts(parser)
        options = parser.parse_args(["-data", "{}", "-src_vocab", "given"])  # the only options without a default
        chosen = {
            "encoder_type": "transformer",
            "decoder_type": "transformer",
            "layers": size["layers"],
            "hidden_size": size["width"],
            "word_vec_size": size["width"],
            "transformer_ff": size["feed_forward_width"],
            "heads": size["n_heads"],
            "position_encoding": True,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "dropout": [size["dropout"]],
            "attention_dropout": [size["inner_dropout"]],
            "label_smoothing": size["smoothing"],
            "param_init": 0.0,
            "param_init_glorot": True,
        }
        for name, value in chosen.items():
            if not hasattr(options, name):
                raise AttributeError(f"OpenNMT-py has no option {name}")
            setattr(options, name, value)
        ArgumentParser.update_model_opts(options)
        ArgumentParser.validate_model_opts(options)
        words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), size["vocab_size"]))]
        vocabularies = dict_to_vocabs({"src": words, "tgt": words, "data_task": options.model_task})
        assert vocabularies["tgt"][DefaultTokens.PAD] == PAD and len(vocabularies["tgt"]) == size["vocab_size"]
        self.model = build_model(options, options, vocabularies, None, 0)
        for name, module in self.model.named_modules():
            if name.endswith(
                "feed_forward.dropout_1"
            ):  # after the activation; OpenNMT-py uses the same rate everywhere
                module.p = size["inner_dropout"]
        self.loss = LossCompute.from_opts(options, self.model, vocabularies["tgt"])
        self.update = Update(self.model, size["learning_rate"])

    def prepare(self, ids: Ids) -> tuple[dict[str, Any], int]:
        batch = {"src": ids.source[:, :, None], "srclen": (ids.source != PAD).sum(1), "tgt": ids.target[:, :, None]}
        return batch, ids.n_tokens

    def step(self, prepared: tuple[dict[str, Any], int]) -> float:
        batch, n_tokens = prepared
        output, attentions = self.model(batch["src"], batch["tgt"], batch["srclen"], bptt=False, with_align=False)
        loss, _ = self.loss(batch, output, attentions)
        return self.update(loss / n_tokens)


if __name__ == "__main__":
    serve(["OpenNMT-py"], OpenNMT)
