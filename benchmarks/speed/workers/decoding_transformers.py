"""`generate` of Hugging Face, in batches of 32 sentences.

The weights of the trained model are loaded into M2M100, which is pre-norm like that model; Marian is post-norm. The
model with random weights is a Marian model.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel
from translating import Ids, serve

PAD, BOS, EOS = 0, 2, 3
BATCH = 32
_NORMS = {
    "attention_sublayer": "self_attn",
    "cross_attention_sublayer": "encoder_attn",
    "feed_forward_sublayer": "final",
}
_PROJECTIONS = {"project.query": "q_proj", "project.key": "k_proj", "project.value": "v_proj", "output": "out_proj"}


def make_config(kind: type, settings: Mapping[str, Any]) -> Any:
    """Return a configuration with the sizes of the manyheads model."""
    sides = {
        f"{side}_{what}": settings[ours]
        for side in ("encoder", "decoder")
        for what, ours in (
            ("layers", f"n_{side}_layers"),
            ("attention_heads", "n_heads"),
            ("ffn_dim", "feed_forward_width"),
        )
    }
    return kind(
        vocab_size=settings["vocab_size"],
        d_model=settings["width"],
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=1024,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS,
        **sides,
    )


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], positions: Tensor) -> None:
    """Load the weights of manyheads into M2M100, with attention biases of 0 and positions that start at 1."""
    state = {name: torch.zeros_like(value) if "attn" in name else value for name, value in model.state_dict().items()}
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        state[f"{name}.weight"] = weights["source_embedding.token_embedding.weight"]
    ours = dict(weights)
    del ours["source_embedding.token_embedding.weight"]
    for name, value in ours.items():
        state[_rename(name)] = value
    model.load_state_dict(state)
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weights[1 : len(positions) + 1] = positions


def _rename(name: str) -> str:
    """Return the name in M2M100: model.decoder.layers.0.encoder_attn.k_proj.weight for the first cross-attention."""
    name, _, what = name.rpartition(".")
    side, _, rest = name.partition(".")
    if side.endswith("_norm"):
        return f"model.{side.removesuffix('_norm')}.layer_norm.{what}"
    layer, _, part = rest.partition(".")
    if part.endswith("_sublayer.norm"):
        module = f"{_NORMS[part.removesuffix('.norm')]}_layer_norm"
    elif part.startswith("feed_forward"):
        module = "fc1" if part.endswith("inner") else "fc2"
    else:
        attention, _, projection = part.partition(".")
        module = f"{'self_attn' if attention == 'attention' else 'encoder_attn'}.{_PROJECTIONS[projection]}"
    return f"model.{side}.layers.{layer}.{module}.{what}"


class HuggingFace:
    def __init__(self, order: Mapping[str, Any]) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        is_trained = bool(order["positions"])
        kind, config = (M2M100ForConditionalGeneration, M2M100Config) if is_trained else (MarianMTModel, MarianConfig)
        self.model = kind(make_config(config, order["settings"])).eval()
        if is_trained:
            load_weights(self.model, load_file(order["weights"]), load_file(order["positions"])["positions"])
        self.processor = sentencepiece.SentencePieceProcessor(order["tokenizer"]) if order["tokenizer"] else None
        length = order["fixed_length"]
        self.length = {"min_new_tokens": length, "max_new_tokens": length} if length else {"max_new_tokens": 256}

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        return {}

    def translate_file(self, source: str, target: str, beam: int) -> None:
        assert self.processor is not None
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        encoded = self.processor.encode(lines, add_eos=True)
        order = sorted(range(len(lines)), key=lambda row: len(encoded[row]))
        found = self.read(self.translate(self.prepare([encoded[row] for row in order]), beam))
        texts = dict(zip(order, self.processor.decode(found), strict=True))
        Path(target).write_text("".join(f"{texts[row]}\n" for row in range(len(lines))), encoding="utf-8")

    def prepare(self, sources: Ids) -> list[Tensor]:
        batches = []
        for start in range(0, len(sources), BATCH):
            rows = sources[start : start + BATCH]
            width = max(map(len, rows))
            batches.append(torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows]))
        return batches

    @torch.inference_mode()
    def translate(self, prepared: list[Tensor], beam: int) -> list[Tensor]:
        return [
            self.model.generate(
                source, attention_mask=(source != PAD).long(), num_beams=beam, do_sample=False, **self.length
            )
            for source in prepared
        ]

    def read(self, output: list[Tensor]) -> list[list[int]]:
        return [[id for id in row if id not in (PAD, BOS, EOS)] for batch in output for row in batch.tolist()]


if __name__ == "__main__":
    serve(["transformers", "torch"], HuggingFace)
