"""The tokenizer of an imported model, from tokenizer.json or from the files that older models have instead."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tokenizers

from manyheads.bounded_files import BoundsError, read_bounded, read_json_object
from manyheads.errors import BundleError
from manyheads.interop.checkpoint_files import Config, read_json
from manyheads.interop.sentencepiece_import import Pieces
from manyheads.messages import _
from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer, Numbering, SpecialIds, one_line_errors

_CONFIG, _MAP = "tokenizer_config.json", "special_tokens_map.json"
_SOURCE, _SENTENCEPIECE = "source.spm", ("spiece.model", "tokenizer.model")
_MAX_UNUSED = 1024  # rows of an embedding that its vocabulary does not use: sizes are rounded up
_MAX_VOCAB_BYTES = 100_000_000


@dataclass(frozen=True)
class Roles:
    """Which tokens are special: the names in tokenizer_config.json and the ids in config.json, the first that exists.

    An id may also be written as a number, such as the id with which a decoder starts.
    """

    pad: tuple[str | int, ...] = ("pad_token", "pad_token_id")
    mask: tuple[str | int, ...] = ("mask_token", "unk_token")
    bos: tuple[str | int, ...] = ("cls_token", "bos_token", "bos_token_id")
    eos: tuple[str | int, ...] = ("sep_token", "eos_token", "eos_token_id")
    is_closed: bool = False  # the encoder reads EOS after a text
    opens: tuple[str | int, ...] = ()  # the token before a source
    leads: tuple[str | int, ...] = ()  # the token with which every output begins
    has_pieces: bool = False  # the ids of a SentencePiece model are those of the model; others shift them


def read_tokenizer(
    folder: Path, config: Config, roles: Roles, n_ids: int, *, lowercase: bool = False
) -> ImportedTokenizer:
    """Read the tokenizer of a model whose embedding has `n_ids` rows."""
    settings = {
        **(read_json(folder / _MAP) if (folder / _MAP).is_file() else {}),
        **(read_json(folder / _CONFIG) if (folder / _CONFIG).is_file() else {}),
    }
    path, content = _tokenizer_json(folder, settings, has_pieces=roles.has_pieces)
    target = _marian(folder, "target.spm") if path.name == _SOURCE else None
    if lowercase:
        content = {**content, "normalizer": _with_lowercase(content.get("normalizer"))}
    with one_line_errors(str(path)):
        inner = tokenizers.Tokenizer.from_str(json.dumps({**content, "truncation": None, "padding": None}))
        known = inner.get_vocab(with_added_tokens=True)
    n_known = 1 + max(known.values(), default=-1)
    if n_known > n_ids or n_ids - n_known > _MAX_UNUSED:
        raise BundleError(
            _(
                "{path} has {n_known:,} tokens, the model's embedding {n_ids:,} rows. They belong to different models.",
                path=path,
                n_known=n_known,
                n_ids=n_ids,
            )
        )
    found = {
        role: _find(getattr(roles, role), settings, config, known, n_ids)
        for role in ("pad", "mask", "bos", "eos", "opens", "leads")
    }
    opens, leads = found.pop("opens"), found.pop("leads")
    if opens is None and roles.leads:
        opens = known.get(_before_source(content))
    ours = Numbering(SpecialIds(**found), n_ids).ours
    return ImportedTokenizer.make(
        content,
        SpecialIds(**found),
        n_ids,
        is_closed=roles.is_closed,
        opens=() if opens is None else (ours[opens],),
        leads=() if leads is None else (ours[leads],),
        target=target,
        name=str(path),
    )


def _before_source(content: Mapping[str, Any]) -> str:
    """The token that a template puts before a text, such as its language; "" if there is none."""
    processor = content.get("post_processor")
    parts = processor.get("single", ()) if isinstance(processor, dict) else ()
    first = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else {}
    token = first.get("SpecialToken")
    return str(token.get("id", "")) if isinstance(token, dict) else ""


def _find(
    names: tuple[str | int, ...], settings: Mapping[str, Any], config: Config, known: Mapping[str, int], n_ids: int
) -> int | None:
    for name in names:
        value: Any = name
        if isinstance(name, str):
            value = config.table.get(name) if name.endswith("_id") else settings.get(name)
        if isinstance(value, dict):  # an AddedToken
            value = value.get("content")
        if isinstance(value, list) and value:  # several ends of a text
            value = value[0]
        number = known.get(value) if isinstance(value, str) else value
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < n_ids:
            return number
    return None


def _tokenizer_json(folder: Path, settings: Mapping[str, Any], *, has_pieces: bool) -> tuple[Path, dict[str, Any]]:
    path = folder / "tokenizer.json"
    if path.is_file():
        content = read_json(path)
        if not isinstance(content.get("model"), dict):
            raise BundleError(_("{path} is not a tokenizer: it has no model.", path=path))
        return path, content
    if (folder / "vocab.txt").is_file():
        return folder / "vocab.txt", _word_piece(folder / "vocab.txt", settings)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return folder / "vocab.json", _byte_level(folder)
    if (folder / _SOURCE).is_file():
        return folder / _SOURCE, _marian(folder, _SOURCE)
    for name in _SENTENCEPIECE:
        if has_pieces and (folder / name).is_file():
            pieces = Pieces.read(folder / name)
            n_extra = extra if isinstance(extra := settings.get("extra_ids"), int) else 0
            last = len(pieces.pieces) + n_extra - 1
            return folder / name, pieces.tokenizer({f"<extra_id_{i}>": last - i for i in range(n_extra)})
    raise BundleError(
        _(
            "{folder} has no tokenizer: tokenizer.json, vocab.txt, vocab.json with merges.txt, or a SentencePiece "
            "model is needed.",
            folder=folder,
        )
    )


def _marian(folder: Path, name: str) -> dict[str, Any]:
    """Marian's tokenizer of one side: a SentencePiece model, and the ids of both sides in vocab.json."""
    ids = read_json_object(folder / "vocab.json", BundleError)
    if not all(isinstance(number, int) for number in ids.values()) or {*ids.values()} != {*range(len(ids))}:
        raise BundleError(_("{path} does not number its tokens.", path=folder / "vocab.json"))
    special = {text: number for text, number in ids.items() if text in ("<pad>", "</s>", "<unk>") or _is_code(text)}
    return replace(Pieces.read(folder / name), ids=ids).tokenizer(special)


def _is_code(text: str) -> bool:
    """Whether a token names the language to translate to, such as >>deu<<."""
    return text.startswith(">>") and text.endswith("<<")


def _word_piece(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """BERT's tokenizer, as its vocab.txt and its settings define it."""
    tokens = _lines(path)
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    return {
        "version": "1.0",
        "added_tokens": _added({token: tokens.index(token) for token in special if token in tokens}),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": bool(settings.get("tokenize_chinese_chars", True)),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": bool(settings.get("do_lower_case", True)),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }


def _byte_level(folder: Path) -> dict[str, Any]:
    """GPT-2's and RoBERTa's tokenizer: byte-level BPE."""
    vocab = read_json_object(folder / "vocab.json", BundleError)
    lines = _lines(folder / "merges.txt")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>")
    added = _added({token: vocab[token] for token in special if token in vocab})
    for each in added:
        each["lstrip"] = each["content"] == "<mask>"
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "fuse_unk": False, "byte_fallback": False},
    }


def _added(ids: Mapping[str, int]) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [{"id": number, "content": token, **flags} for token, number in ids.items()]


def _lines(path: Path) -> list[str]:
    try:
        text = read_bounded(path, _MAX_VOCAB_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError, BoundsError) as error:
        raise BundleError(_("{path} cannot be read: {reason}.", path=path, reason=error)) from None
    return text.removesuffix("\n").split("\n")


def _with_lowercase(normalizer: Any) -> dict[str, Any]:
    own = [] if normalizer is None else [normalizer]
    return {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *own]}
