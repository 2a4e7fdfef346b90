"""`ImportedTokenizer`: the tokenizer of an imported model, run by the `tokenizers` library.

Everything in manyheads counts on PAD = 0, UNK = 1, BOS = 2 and EOS = 3. `Numbering` moves the special tokens of another
vocabulary to these ids, and the rows of the model's embedding move with them: the model computes the same. Its bytes
are a JSON object with tokenizer.json, the special tokens, and what is before and after a text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tokenizers

from manyheads.errors import BundleError, DataError, ManyheadsError
from manyheads.messages import _
from manyheads.text.markup.copyable_spans import Placeholders
from manyheads.text.tokens.surfaces import Surfaces
from manyheads.text.tokens.tokenizer import Token, Tokenizer
from manyheads.text.tokens.tokenizer_training import BOS, EOS, METASPACE, PAD, UNK, to_utf8

FORMAT = 1
_MIN_TEXTS_FOR_THREADS = 500
_N_CONTEXT_TOKENS = 8  # earlier tokens do not affect how the next ones are decoded
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class SpecialIds:
    """The ids of another vocabulary that take the places of ours; None where it has no such token.

    A masked token takes the place of UNK: an unknown word keeps an id of its own.
    """

    pad: int | None
    mask: int | None
    bos: int | None
    eos: int | None


class Numbering:
    """Our ids for those of another vocabulary of `n_theirs` tokens: special tokens first, the others in their order.

    A token that is special in several ways, such as GPT-2's end of text, gets more than one of our ids, and EOS stands
    in for a special token that they lack. Only one of these ids can be generated: `is_copy` tells the others.
    """

    def __init__(self, special: SpecialIds, n_theirs: int) -> None:
        places = {EOS: special.eos, BOS: special.bos, UNK: special.mask, PAD: special.pad}
        owners: dict[int, int] = {}
        for place, theirs in places.items():
            if theirs is not None:
                owners.setdefault(theirs, place)
        instead = next((theirs for theirs in places.values() if theirs is not None), 0)
        self.theirs = [instead if (own := places[place]) is None else own for place in range(EOS + 1)]
        self.is_copy = [owners.get(theirs) != place for place, theirs in enumerate(self.theirs)]
        self.theirs += [number for number in range(n_theirs) if number not in owners]
        self.is_copy += [False] * (len(self.theirs) - len(self.is_copy))
        self.ours = [0] * n_theirs
        for place, theirs in enumerate(self.theirs):
            if not self.is_copy[place]:
                self.ours[theirs] = place

    def __len__(self) -> int:
        return len(self.theirs)


class ImportedTokenizer(Tokenizer):
    """The tokenizer of an imported model: the ids of the `tokenizers` library, renumbered.

    Unlike ours, it may alter text: lower-case it, drop spaces, replace rare characters by an unknown token. Spans of
    tokens are those in the original text.
    """

    folds_case = False
    has_prefix = True
    is_unigram = False

    def __init__(self, blob: bytes) -> None:  # replaces that of SentencePiece
        content = json.loads(blob)
        self._blob = blob
        self._content: dict[str, Any] = content["tokenizer"]
        special = SpecialIds(**content["special"])
        self.numbering = Numbering(special, int(content["n_ids"]))
        self.opens, self.leads = (tuple(map(int, content[name])) for name in ("opens", "leads"))
        self.closes = EOS if content["is_closed"] else None
        self._reader: Any = _make_inner(self._content)
        self._target: dict[str, Any] | None = content.get("target")
        self._writer = self._reader if self._target is None else _make_inner(self._target)
        known = self._reader.get_vocab(with_added_tokens=True).values()
        if known and max(known) >= len(self.numbering.ours):
            raise ValueError(f"id {max(known)} is beyond {len(self.numbering.ours)}")
        unknown = self._reader.token_to_id(str(self._content["model"].get("unk_token") or ""))
        # A text that spells out the padding token must not hide its own end.
        self._unknown = EOS if unknown is None else self.numbering.ours[unknown]

    @classmethod
    def make(
        cls,
        content: Mapping[str, Any],
        special: SpecialIds,
        n_ids: int,
        *,
        opens: Sequence[int] = (),
        leads: Sequence[int] = (),
        is_closed: bool = False,
        target: Mapping[str, Any] | None = None,
        name: str = "tokenizer.json",
    ) -> "ImportedTokenizer":
        """Make the tokenizer of a model with `n_ids` ids from the object in tokenizer.json.

        `target` is another one for the texts that the model writes, with the same ids.
        """
        whole = {
            "format": FORMAT,
            "special": {each: getattr(special, each) for each in ("pad", "mask", "bos", "eos")},
            "n_ids": n_ids,
            "opens": list(opens),
            "leads": list(leads),
            "is_closed": is_closed,
            "tokenizer": {**content, "truncation": None, "padding": None},
        }
        if target is not None:
            whole["target"] = dict(target)
        return cls.from_json(json.dumps(whole, ensure_ascii=False).encode(), name)

    @classmethod
    def from_json(cls, blob: bytes, name: str) -> "ImportedTokenizer":
        """Load a tokenizer from the bytes of `to_bytes`; error messages refer to it as `name`."""
        with one_line_errors(name):
            return cls(blob)

    @cached_property
    def target(self) -> Tokenizer:
        """The tokenizer of the texts that the model writes."""
        if self._target is None:
            return self
        whole = {**json.loads(self._blob), "tokenizer": self._target, "target": None}
        return type(self)(json.dumps(whole, ensure_ascii=False).encode())

    def __reduce__(self) -> tuple[type["ImportedTokenizer"], tuple[bytes]]:
        return type(self), (self._blob,)

    @property
    def content(self) -> Mapping[str, Any]:
        """The object in tokenizer.json."""
        return self._content

    @property
    def vocab_size(self) -> int:
        """The number of ids, with those of the model's embedding that no token uses."""
        return len(self.numbering)

    @property
    def placeholders(self) -> Placeholders:
        """None."""
        return Placeholders(())

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """None."""
        return ()

    @property
    def scores(self) -> list[float | None]:
        """SentencePiece's scores: it has none."""
        return [None] * self.vocab_size

    @cached_property
    def surfaces(self) -> Surfaces:
        """The bytes that each id stands for; none for a special token."""
        names = self._names
        special = {*range(EOS + 1), *(number for number, name in enumerate(names) if not name)}
        special |= {self.numbering.ours[number] for number in self._reader.get_added_tokens_decoder()}
        own = [b"" if i in special else name.replace(METASPACE, " ").encode() for i, name in enumerate(names)]
        byte_ids = [number for number in range(len(names)) if self.byte_of(number) is not None]
        for number in byte_ids:
            own[number] = bytes((self.byte_of(number) or 0,))
        return Surfaces(own, byte_ids, has_prefix=self._kind != "byte-level")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, without those before and after it."""
        return self._encode_with(self._reader, texts)

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each word as it is within a text, after a space."""
        return self._encode_with(self._with_prefix, words)

    def encode_continuation(self, text: str) -> list[int]:
        """Return the token ids of a text that continues another on the same line, without a space before it."""
        return self._encode_with(self._without_prefix, [text])[0]

    def sample_batch(self, texts: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Like `encode_batch`; subword sampling is refused, since the tokens of another vocabulary are fixed."""
        if strength:
            raise DataError(_("tokenizer.sampling is for tokenizers that manyheads trains. Use 0 with this bundle."))
        return self.encode_batch(texts)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; special tokens are removed, and invalid UTF-8 becomes U+FFFD."""
        theirs = self.numbering.theirs
        return str(self._writer.decode([theirs[int(number)] for number in ids if int(number) > EOS]))

    def decode_batch(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Return the text of each row of token ids."""
        return [self.decode(row) for row in rows]

    def byte_of(self, token_id: int) -> int | None:
        """Return the byte that a byte token encodes, or None for any other token."""
        byte = _BYTE.fullmatch(self._names[token_id])
        return int(byte[1], 16) if byte else None

    def ends_inside_character(self, ids: Sequence[int]) -> bool:
        """Return whether these ids end with an incomplete UTF-8 character; a token may have several of its bytes."""
        return self.decode(ids[-4:]).endswith(_REPLACEMENT)

    def id_to_token(self, token_id: int) -> str:
        """Return a token as our vocabularies have it: ▁ where a word begins, <0xE2> for a byte."""
        return self._names[token_id]

    def tokenize_batch(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, each with its span in the text."""
        return self._tokenize_with(self._reader, texts)

    def iter_tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text."""
        return iter(self.tokenize_batch([text])[0])

    def word_tokens(self, word: str) -> Iterator[Token]:
        """Yield the tokens of a word as `encode_words` encodes it."""
        return iter(self._tokenize_with(self._with_prefix, [word])[0])

    def tokens_from_ids(self, ids: Sequence[int], *, is_continuation: bool = False) -> Iterator[Token]:
        """Yield the tokens with these ids, with their spans in the text that `decode` returns for them."""
        ids = [int(number) for number in ids]
        position, first = 0, 0  # the first token since the last complete character, and where its text begins
        n_complete = 0
        for number, token_id in enumerate(ids):
            context = ids[max(0, first - _N_CONTEXT_TOKENS) : first]
            if is_continuation and not context:
                context = [self._word_id]
            text = self.decode([*context, *ids[first : number + 1]])[len(self.decode(context)) :]
            yield Token(self._names[token_id], token_id, position + n_complete, position + len(text))
            if text.endswith(_REPLACEMENT):
                n_complete = len(text.rstrip(_REPLACEMENT))
            else:
                position, first, n_complete = position + len(text), number + 1, 0

    @cached_property
    def _word_id(self) -> int:
        """A token that any text may follow."""
        return next((number for number, name in enumerate(self._names) if name == f"{METASPACE}a"), EOS + 1)

    @cached_property
    def _kind(self) -> str:
        """How tokens show where a word begins."""
        if self._content["model"].get("type") == "WordPiece":
            return "word-piece"
        parts = json.dumps([self._content.get("pre_tokenizer"), self._content.get("decoder")])
        return "byte-level" if '"ByteLevel"' in parts else "metaspace"

    @cached_property
    def _names(self) -> list[str]:
        by_id = {
            number: token
            for inner in (self._reader, self._writer)  # a token of one side only begins with NUL on the other
            for token, number in inner.get_vocab(with_added_tokens=True).items()
            if not token.startswith("\0")
        }
        added = self._reader.get_added_tokens_decoder()
        name_of = {"word-piece": self._word_piece_name, "byte-level": _byte_level_name}.get(self._kind, str)
        return [
            by_id.get(theirs, "") if theirs in added else name_of(by_id.get(theirs, ""))
            for theirs in self.numbering.theirs
        ]

    def _word_piece_name(self, token: str) -> str:
        prefix = str(self._content["model"].get("continuing_subword_prefix", "##"))
        return token.removeprefix(prefix) if token.startswith(prefix) and token != prefix else METASPACE + token

    @cached_property
    def _with_prefix(self) -> Any:
        return _make_inner(_prefixed(self._content, is_prefixed=True))

    @cached_property
    def _without_prefix(self) -> Any:
        return _make_inner(_prefixed(self._content, is_prefixed=False))

    def _read(self, token_id: int) -> int:
        return self._unknown if token_id == PAD else token_id

    def _tokenize_with(self, inner: Any, texts: Sequence[str]) -> list[list[Token]]:
        _check(texts)
        ours, names = self.numbering.ours, self._names
        return [
            [
                Token(names[ours[number]], self._read(ours[number]), *span)
                for number, span in zip(row.ids, row.offsets, strict=True)
            ]
            for row in _encodings(inner, texts)
        ]

    def _encode_with(self, inner: Any, texts: Sequence[str]) -> list[list[int]]:
        _check(texts)
        ours = self.numbering.ours
        return [[self._read(ours[number]) for number in row.ids] for row in _encodings(inner, texts)]


@contextmanager
def one_line_errors(name: str) -> Iterator[None]:
    """Turn whatever the `tokenizers` library raises for a bad file into one line; a panic of Rust is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, ManyheadsError):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BundleError(
            _("{name} is damaged or is not a tokenizer that `tokenizers` reads: {reason}.", name=name, reason=reason)
        ) from None


def _make_inner(content: Mapping[str, Any]) -> Any:
    inner = tokenizers.Tokenizer.from_str(json.dumps(content))
    inner.no_truncation()
    inner.no_padding()
    return inner


def _encodings(inner: Any, texts: Sequence[str]) -> list[Any]:
    if len(texts) > _MIN_TEXTS_FOR_THREADS:
        return list(inner.encode_batch(list(texts), add_special_tokens=False))
    return [inner.encode(text, add_special_tokens=False) for text in texts]


def _check(texts: Sequence[str]) -> None:
    for number, text in enumerate(texts, start=1):
        to_utf8(text, f"Text {number}")


def _prefixed(value: Any, *, is_prefixed: bool) -> Any:
    """The object in tokenizer.json, adding a space before a text or adding none."""
    if isinstance(value, list):
        return [_prefixed(each, is_prefixed=is_prefixed) for each in value]
    if not isinstance(value, dict) or value.get("type") in ("BPE", "WordPiece", "Unigram"):
        return value
    kept = {name: _prefixed(each, is_prefixed=is_prefixed) for name, each in value.items()}
    match value.get("type"):
        case "ByteLevel" if "use_regex" in value or "add_prefix_space" in value:
            kept["add_prefix_space"] = is_prefixed
        case "Metaspace":
            kept["prepend_scheme"] = "always" if is_prefixed else "never"
            kept.pop("add_prefix_space", None)
        case "Sequence" if not is_prefixed and isinstance(value.get("normalizers"), list):
            kept["normalizers"] = [each for each in kept["normalizers"] if each.get("type") != "Prepend"]
    return kept


def _byte_table() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for, as GPT-2 assigns them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTES = _byte_table()


def _byte_level_name(token: str) -> str:
    """A byte-level token as text, with ▁ for spaces; as its bytes if they are not whole characters."""
    if any(character not in _BYTES for character in token):
        return token
    content = bytes(_BYTES[character] for character in token)
    try:
        return content.decode().replace(" ", METASPACE)
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in content)
