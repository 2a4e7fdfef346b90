"""SentencePiece models of other people as the object in tokenizer.json: the same tokens for a text.

The file is read without its own library, which has no call for the normalization rules and hides what it alters.
"""

import base64
import re
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.bounded_files import BoundsError, read_bounded
from manyheads.errors import BundleError
from manyheads.interop.tokenizer_json import merges_of
from manyheads.messages import _
from manyheads.text.tokens.tokenizer import METASPACE

_MAX_BYTES = 200_000_000
_NORMAL, _UNKNOWN, _CONTROL, _USER, _BYTE = 1, 2, 3, 4, 6
_BPE = 2
_BYTE_NAME = re.compile(r"<0x[0-9A-F]{2}>")
_NEVER = -1e6  # the score of what is never matched in a text


@dataclass(frozen=True)
class Piece:
    """A token of a SentencePiece model."""

    text: str
    score: float
    kind: int = _NORMAL


@dataclass(frozen=True)
class Pieces:
    """The tokens of a SentencePiece model, and how it normalizes a text."""

    pieces: Sequence[Piece]
    is_bpe: bool
    rules: bytes = b""  # the compiled normalization
    adds_prefix: bool = True
    removes_spaces: bool = True
    ids: Mapping[str, int] = field(default_factory=dict)  # of another vocabulary, by text; {}: the order of the pieces

    @classmethod
    def read(cls, path: Path) -> "Pieces":
        """Read a SentencePiece model."""
        try:
            return cls._parse(read_bounded(path, _MAX_BYTES))
        except (OSError, ValueError, IndexError, struct.error, UnicodeError, BoundsError) as error:
            raise BundleError(_("{path} is not a SentencePiece model: {reason}.", path=path, reason=error)) from None

    @classmethod
    def _parse(cls, content: bytes) -> "Pieces":
        pieces, is_bpe, normalizer = [], False, dict[int, Any]()
        for number, value in _fields(content):
            if number == 1:
                own = dict(_fields(value))
                (score,) = struct.unpack("<f", own.get(2, b"\0\0\0\0"))
                pieces.append(Piece(own.get(1, b"").decode(), score, own.get(3, _NORMAL)))
            elif number == 2:
                is_bpe = dict(_fields(value)).get(3, 1) == _BPE
            elif number == 3:
                normalizer = dict(_fields(value))
        if not pieces:
            raise ValueError("it has no tokens")
        return cls(pieces, is_bpe, normalizer.get(2, b""), bool(normalizer.get(3, 1)), bool(normalizer.get(4, 1)))

    def tokenizer(self, added: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The object in tokenizer.json; `added` are special tokens by text, with their ids."""
        kinds = {piece.text: piece.kind for piece in self.pieces}
        names = dict(self.ids) or {piece.text: number for number, piece in enumerate(self.pieces)}
        names |= added or {}
        scores = {piece.text: piece.score for piece in self.pieces if piece.kind in (_NORMAL, _USER)}
        special = {text: names[text] for text, kind in kinds.items() if kind in (_UNKNOWN, _CONTROL) and text in names}
        unknown = next((text for text, kind in kinds.items() if kind == _UNKNOWN), "<unk>")
        steps: list[dict[str, Any]] = []
        if self.rules:
            steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(self.rules).decode()})
        if self.removes_spaces:
            steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
            steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
        scheme = "always" if self.adds_prefix else "never"
        space = {"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": scheme, "split": False}
        has_bytes = any(kind == _BYTE for kind in kinds.values())
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        return {
            "version": "1.0",
            "added_tokens": [
                {"id": number, "content": text, **flags}
                for text, number in sorted({**special, **(added or {})}.items(), key=lambda item: item[1])
            ],
            "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
            "pre_tokenizer": space,
            "decoder": self._decoder(has_bytes=has_bytes),
            "model": self._model(names, scores, unknown, {*special, *(added or {})}, has_bytes=has_bytes),
        }

    def _decoder(self, *, has_bytes: bool) -> dict[str, Any]:
        steps: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": METASPACE}, "content": " "}]
        steps += [{"type": "ByteFallback"}] if has_bytes else []
        steps += [{"type": "Fuse"}]
        steps += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if self.adds_prefix else []
        return {"type": "Sequence", "decoders": steps}

    def _model(
        self,
        names: Mapping[str, int],
        scores: Mapping[str, float],
        unknown: str,
        special: Container[str],
        *,
        has_bytes: bool,
    ) -> dict[str, Any]:
        texts = sorted(names, key=lambda text: names[text])
        if self.is_bpe:
            known = [scores.get(text) for text in texts]
            return {
                "type": "BPE",
                "unk_token": unknown,
                "fuse_unk": True,
                "byte_fallback": has_bytes,
                "vocab": dict(names),
                "merges": [list(pair) for pair in merges_of(texts, known)],
            }
        # What only the other side has is hidden behind NUL: under its own name a text would match it.
        vocab = [
            [text if text in scores or text in special or _BYTE_NAME.fullmatch(text) else f"\0{text}", score]
            for text, score in ((text, scores.get(text, _NEVER)) for text in texts)
        ]
        return {"type": "Unigram", "unk_id": names[unknown], "vocab": vocab, "byte_fallback": has_bytes}


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and values of the fields of a Protocol Buffers message."""
    position = 0
    while position < len(content):
        key, position = _varint(content, position)
        match key & 7:
            case 0:
                value, position = _varint(content, position)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 5:
                size = 4
            case 2:
                size, position = _varint(content, position)
            case kind:
                raise ValueError(f"field type {kind}")
        if position + size > len(content):
            raise ValueError("it ends early")
        yield key >> 3, content[position : position + size]
        position += size


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
        if shift > 63:
            raise ValueError("a number is too long")


def read_llama2c_tokenizer(path: Path, n_ids: int) -> dict[str, Any]:
    """The tokenizer.bin of llama2.c, which has the texts and scores of Llama's SentencePiece model."""
    try:
        content = read_bounded(path, _MAX_BYTES)
        pieces, position = [], 4
        for number in range(n_ids):
            score, size = struct.unpack_from("<fi", content, position)
            raw = content[position + 8 : position + 8 + size]
            if size < 0 or len(raw) < size:
                raise ValueError("it ends early")
            pieces.append(_llama2c_piece(number, raw, score))
            position += 8 + size
    except (OSError, ValueError, struct.error, BoundsError) as error:
        raise BundleError(_("{path} is not a tokenizer of llama2.c: {reason}.", path=path, reason=error)) from None
    return Pieces(pieces, is_bpe=True, removes_spaces=False).tokenizer()


def _llama2c_piece(number: int, raw: bytes, score: float) -> Piece:
    if number < 3:
        return Piece(("<unk>", "<s>", "</s>")[number], 0.0, _UNKNOWN if number == 0 else _CONTROL)
    if number < 3 + 256:
        return Piece(f"<0x{number - 3:02X}>", 0.0, _BYTE)
    return Piece(raw.decode("utf-8", "replace").replace(" ", METASPACE), score)
