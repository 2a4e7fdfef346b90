"""A SentencePiece tokenizer of ours as the files that `transformers.AutoTokenizer` reads: the same ids for a text.

The files are written without the `tokenizers` library. A tokenizer of characters is BPE without merges. Texts differ
from ours that contain the character ▁ itself, which SentencePiece stores as a space, or spell out a special token such
as </s>. A unigram model may split a text otherwise where two splits have the same score, or where the text spells out
a byte, as <0x41>, in characters that the vocabulary lacks.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from manyheads.text.tokens.tokenizer import BOS, EOS, METASPACE, PAD, UNK, Tokenizer

Frame = Literal["bos", "eos"]  # BOS before a text, or EOS after it
_NEVER = -1e6  # the score of what SentencePiece never matches in a text: bytes and special tokens


def tokenizer_files(
    tokenizer: Tokenizer, *, frame: Frame, max_length: int, mask_text: str = ""
) -> dict[str, dict[str, Any]]:
    """The contents of tokenizer.json and tokenizer_config.json; `mask_text` is the mask of a masked language model."""
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.vocab_size)]
    if mask_text:
        names[UNK] = mask_text
    special = {number: names[number] for number in (PAD, UNK, BOS, EOS)}
    added = [
        {
            "id": number,
            "content": name,
            "single_word": False,
            # The space before a masked word belongs to its token.
            "lstrip": bool(mask_text) and number == UNK and tokenizer.has_prefix,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, name in special.items()
    ]
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if tokenizer.has_prefix else []
    replace = [{"type": "Replace", "pattern": {"String": METASPACE}, "content": " "}]
    parts = {
        "normalizer": _normalizer(tokenizer, is_masked=bool(mask_text)),
        "pre_tokenizer": _pre_tokenizer(tokenizer, is_masked=bool(mask_text)),
        "post_processor": _framing(special, frame),
        "decoder": {"type": "Sequence", "decoders": [*replace, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]},
        "model": _model(tokenizer, names),
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "pad_token": names[PAD],
        "unk_token": names[UNK],
        "bos_token": names[BOS],
        "eos_token": names[EOS],
    }
    if mask_text:
        config["mask_token"] = mask_text
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **parts}
    return {"tokenizer.json": whole, "tokenizer_config.json": config}


def _normalizer(tokenizer: Tokenizer, *, is_masked: bool) -> dict[str, Any] | None:
    """Spaces become ▁, after one more at the start; a masked text is not split into several by this."""
    if is_masked and tokenizer.has_prefix:
        return None
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": METASPACE}
    prepend = [{"type": "Prepend", "prepend": METASPACE}] if tokenizer.has_prefix else []
    return {"type": "Sequence", "normalizers": [*prepend, replace]}


def _pre_tokenizer(tokenizer: Tokenizer, *, is_masked: bool) -> dict[str, Any]:
    """Split before each ▁: no token has one elsewhere."""
    if is_masked and tokenizer.has_prefix:
        return {"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": "first", "split": True}
    return {"type": "Split", "pattern": {"String": METASPACE}, "behavior": "MergedWithNext", "invert": False}


def _framing(special: Mapping[int, str], frame: Frame) -> dict[str, Any]:
    def template(*sequences: str) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for number, sequence in enumerate(sequences):
            text, mark = ({"Sequence": {"id": sequence, "type_id": 0}}, {"SpecialToken": {"id": name, "type_id": 0}})
            first = [mark] if frame == "bos" and not number else []
            last = [mark] if frame == "eos" and number == len(sequences) - 1 else []
            steps += [*first, text, *last]
        return steps

    token = BOS if frame == "bos" else EOS
    name = special[token]
    return {
        "type": "TemplateProcessing",
        "single": template("A"),
        "pair": template("A", "B"),
        "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]}},
    }


def _model(tokenizer: Tokenizer, names: list[str]) -> dict[str, Any]:
    scores = tokenizer.scores
    if tokenizer.is_unigram and any(
        len(name) > 1 for name, score in zip(names, scores, strict=True) if score is not None
    ):
        vocab = [[name, _NEVER if score is None else score] for name, score in zip(names, scores, strict=True)]
        return {"type": "Unigram", "unk_id": UNK, "vocab": vocab, "byte_fallback": True}
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": names[UNK],
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "ignore_merges": False,
        "vocab": {name: number for number, name in enumerate(names)},
        "merges": [list(pair) for pair in merges_of(names, scores)],
    }


def merges_of(names: list[str], scores: list[float | None]) -> Iterator[tuple[str, str]]:
    """The pairs of tokens that form each token, the best-scored tokens first."""
    known = {name for name, score in zip(names, scores, strict=True) if score is not None}
    ranked = sorted((-score, name) for name, score in zip(names, scores, strict=True) if score is not None)
    for _, name in ranked:
        for cut in range(1, len(name)):
            if name[:cut] in known and name[cut:] in known:
                yield name[:cut], name[cut:]
