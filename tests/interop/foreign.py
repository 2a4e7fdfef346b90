"""Folders of other people's models: random ones of `transformers` with small tokenizers."""

import json
import string
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

LETTERS = string.ascii_lowercase
WORDS = ("the", "cat", "dog", "sleeps", "on", "a", "mat", "old", "man", "boat", "##s", "##ing", "un", "##able")


def word_piece(n_ids: int) -> dict[str, Any]:
    """BERT's tokenizer; its special tokens are neither first nor in our order, and it cuts and pads every text."""
    tokens = [*LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS, ".", ",", "[UNK]", "[SEP]", "[MASK]", "[CLS]"]
    tokens = ["[PAD]", *tokens, *(f"[unused{number}]" for number in range(n_ids))][:n_ids]
    special = ("[PAD]", "[UNK]", "[SEP]", "[MASK]", "[CLS]")
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    ends = {name: {"id": name, "ids": [tokens.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    return {
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {
            "strategy": {"Fixed": 4},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [added(tokens.index(name), name) for name in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": template,
            "special_tokens": ends,
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }


def byte_level(n_ids: int, special: tuple[str, ...]) -> dict[str, Any]:
    """GPT-2's tokenizer: 256 bytes, some merges, and special tokens."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [chr(256 + number) for number in range(256 - len(printable))]
    alphabet = [*map(chr, printable), *others]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at"), ("Ġ", "s"), ("o", "g")]
    tokens = [*special, *alphabet, *("".join(pair) for pair in merges)]
    assert len(tokens) <= n_ids
    tokens += [f"<unused{number}>" for number in range(n_ids - len(tokens))]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(number, name, lstrip=name == "<mask>") for number, name in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [list(pair) for pair in merges],
        },
    }


def metaspace(n_ids: int, special: tuple[str, ...], *, closes: str = "") -> dict[str, Any]:
    """T5's tokenizer: a unigram model with ▁ for spaces."""
    pieces = ["▁", *LETTERS, *(f"▁{letter}" for letter in LETTERS), "▁the", "▁cat", "ing", ".", ","]
    tokens = [*special, *pieces]
    tokens += [f"<unused{number}>" for number in range(n_ids - len(tokens))]
    single: list[dict[str, Any]] = [{"Sequence": {"id": "A", "type_id": 0}}]
    processor = None
    if closes:
        single.append({"SpecialToken": {"id": closes, "type_id": 0}})
        ends = {closes: {"id": closes, "ids": [tokens.index(closes)], "tokens": [closes]}}
        processor = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": ends}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(number, name) for number, name in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": processor,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": tokens.index("<unk>"),
            "vocab": [[token, -10.0 if len(token) < 2 else -float(len(token))] for token in tokens],
            "byte_fallback": False,
        },
    }


def added(number: int, content: str, *, lstrip: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": content, "lstrip": lstrip, **flags}


def write_folder(folder: Path, model: Any, tokenizer: dict[str, Any], names: dict[str, str]) -> None:
    """Write a model of transformers and its tokenizer."""
    model.save_pretrained(folder)
    write_tokenizer(folder, tokenizer, names)


def write_tokenizer(folder: Path, tokenizer: dict[str, Any], names: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


BERT_NAMES = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "cls_token": "[CLS]",
}
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ROBERTA_NAMES = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


@torch.no_grad()
def randomize(model: nn.Module, seed: int) -> Any:
    """Make every number count: no bias is 0 and no weight of a norm is 1, as after training."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in model.named_parameters():
        if not value.requires_grad:  # sinusoids
            continue
        noise = torch.randn(value.shape, generator=generator)
        value.copy_(0.15 * noise + (1.0 if value.dim() == 1 and "bias" not in name else 0.0))
    return model.eval()


def padded(seed: int, n_ids: int, forbidden: tuple[int, ...], side: str) -> tuple[Tensor, Tensor]:
    """A batch of their ids without special ones, of unequal lengths, and which of them are real."""
    generator = torch.Generator().manual_seed(seed)
    known = torch.tensor([number for number in range(n_ids) if number not in forbidden])
    lengths = [7, 3, 1, 5]
    ids = known[torch.randint(0, len(known), (len(lengths), 7), generator=generator)]
    places = torch.arange(7)[None]
    sizes = torch.tensor(lengths)[:, None]
    return ids, places < sizes if side == "right" else places >= 7 - sizes


N_IDS, WIDTH, INNER, LENGTH = 96, 8, 12, 20
BERT_CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": N_IDS,
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": INNER,
    "max_position_embeddings": LENGTH,
}


def bert_tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings": (N_IDS, WIDTH),
        "embeddings.position_embeddings": (LENGTH, WIDTH),
        "embeddings.token_type_embeddings": (2, WIDTH),
    }
    own = {f"{name}.weight": torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    block = "encoder.layer.0"
    linear = {"attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH)}
    linear |= {"attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH)}
    linear |= {"intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}
    for name, shape in linear.items():
        own |= {
            f"{block}.{name}.weight": torch.randn(shape, generator=generator),
            f"{block}.{name}.bias": torch.randn(shape[0], generator=generator),
        }
    for name in ("embeddings.LayerNorm", f"{block}.attention.output.LayerNorm", f"{block}.output.LayerNorm"):
        own |= {f"{name}.weight": torch.ones(WIDTH), f"{name}.bias": torch.zeros(WIDTH)}
    return own


def write_bert(folder: Path) -> None:
    """A random BERT without a head and its tokenizer, written without transformers."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(BERT_CONFIG), encoding="utf-8")
    save_file(bert_tensors(), folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder, word_piece(N_IDS), BERT_NAMES)
