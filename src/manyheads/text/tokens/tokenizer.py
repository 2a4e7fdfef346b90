"""`Tokenizer`: text ⇄ tokens ⇄ ids, with a subword vocabulary that SentencePiece learns from the training text.

Tokenization is lossless. Text is not normalized, and a character outside the vocabulary is encoded as its UTF-8
bytes, so `decode(encode(text)) == text` for every text that can be encoded as UTF-8. Only a tokenizer trained with
`lowercase` folds case and width; lengths and spans stay those of the original text.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sentencepiece

from manyheads.bounded_files import BoundsError, read_bounded
from manyheads.errors import BundleError
from manyheads.messages import Message, _
from manyheads.text.markup.copyable_spans import Placeholders, placeholder_symbols
from manyheads.text.tokens.subword_sampling import SubwordSampler
from manyheads.text.tokens.surfaces import Surfaces
from manyheads.text.tokens.tokenizer_training import (
    BOS,
    EOS,
    LOWERCASE,
    METASPACE,
    PAD,
    UNK,
    TokenizerSettings,
    fold,
    to_utf8,
    train_sentencepiece,
)

__all__ = ["BOS", "EOS", "METASPACE", "PAD", "UNK", "Token", "Tokenizer", "TokenizerSettings"]

_MIN_TEXTS_FOR_THREADS = 500
_MAX_BYTES = 100_000_000  # of a model file; a vocabulary of a million tokens takes about 20 MB
_N_CONTEXT_TOKENS = 8  # earlier tokens do not affect how the next ones are decoded
# Text that other SentencePiece models alter: repeated spaces, ▁, rare, full-width and control characters.
_PROBE = "  a▁▁ 😀，\t\0 "
# Appended to a model, it sets normalizer_spec.add_dummy_prefix (fields 3 and 3 of sentencepiece_model.proto) to false:
# Protocol Buffers merges a message that occurs twice, and the last value wins. SentencePiece 0.2.3 has no call for it.
_WITHOUT_PREFIX = b"\x1a\x02\x18\x00"

Processor = sentencepiece.SentencePieceProcessor
EncodeBatch = Callable[[Processor, list[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text and its span in characters: `original[start:end]`.

    `text` is the token as it is in the vocabulary: ▁ for a space, <0xE2> for a byte. The space before a word belongs
    to the word's first token. All byte tokens of one character have that character's span. A ▁ that SentencePiece
    adds before the text has the empty span (0, 0).
    """

    text: str
    id: int
    start: int
    end: int


class Tokenizer:
    """A trained tokenizer. Its bytes are an ordinary SentencePiece model that other tools can read.

    SentencePiece does not distinguish a ▁ in the text from a space. Therefore the text is split at ▁ before encoding,
    and the byte tokens of ▁ are inserted between the parts; SentencePiece decodes them correctly.
    """

    opens: tuple[int, ...] = ()  # the ids before a source; some imported models read them
    leads: tuple[int, ...] = ()  # the ids between BOS and a target; some imported models begin every output with them
    closes: int | None = None  # the id after a text that an encoder reads: EOS for models like BERT

    @property
    def target(self) -> "Tokenizer":
        """The tokenizer of the texts that a model writes; some imported models have another one for them."""
        return self

    @property
    def n_framing(self) -> int:
        """The positions of an encoder that are not for the text: BOS and what closes it."""
        return 1 if self.closes is None else 2

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._processor = Processor(model_proto=blob)
        # SentencePiece must not add a space before the parts that follow a ▁.
        self._inner = Processor(model_proto=blob + _WITHOUT_PREFIX)
        self._metaspace_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in METASPACE.encode()]
        self.folds_case = bool(self._processor.is_control(self._processor.piece_to_id(LOWERCASE)))
        # Whether SentencePiece adds a space before a text; character models do not.
        self.has_prefix = self._processor.encode(" ") != self._inner.encode(" ")

    @classmethod
    def train(cls, lines: Iterable[str], settings: TokenizerSettings, seed: int = 1) -> "Tokenizer":
        """Train on `lines`, which are read once; equal arguments give identical bytes on every machine.

        Another version of SentencePiece may choose other tokens; those of a trained tokenizer stay the same.
        """
        return cls.from_bytes(train_sentencepiece(lines, settings, seed))

    @classmethod
    def from_file(cls, path: Path | str) -> "Tokenizer":
        """Load a tokenizer from a file that holds the bytes of `to_bytes`."""
        try:
            blob = read_bounded(Path(path), _MAX_BYTES)
        except OSError as error:
            raise BundleError(
                _("{path}: the tokenizer cannot be read ({reason}).", path=path, reason=error.strerror)
            ) from None
        except BoundsError as error:
            raise BundleError(_("{path}: the tokenizer cannot be read ({reason}).", path=path, reason=error)) from None
        return cls.from_bytes(blob, name=str(path))

    @classmethod
    def from_bytes(cls, blob: bytes, name: str = "tokenizer.model") -> "Tokenizer":
        """Load a tokenizer from the bytes of `to_bytes`; error messages refer to it as `name`."""
        damaged = Message(
            "{name} is damaged or is not a SentencePiece model. Copy the bundle again, or train it again.", name=name
        )
        if not blob:
            raise BundleError(str(damaged))
        if blob.startswith(b"{"):
            from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer  # it is a subclass

            return ImportedTokenizer.from_json(blob, name)
        try:
            tokenizer = cls(blob)
            special = [tokenizer._processor.piece_to_id(text) for text in ("<pad>", "<unk>", "<s>", "</s>")]
            is_compatible = special == [PAD, UNK, BOS, EOS] and tokenizer.decode(tokenizer.encode(_PROBE)) == (
                fold(_PROBE) if tokenizer.folds_case else _PROBE
            )
        except (RuntimeError, IndexError, UnicodeError):  # its errors may quote bytes that are not UTF-8
            raise BundleError(str(damaged)) from None
        if not is_compatible:
            raise BundleError(
                _(
                    "{name} is a SentencePiece model that manyheads did not train: its special tokens differ, or "
                    "it alters text. Use the tokenizer.model of a manyheads bundle.",
                    name=name,
                )
            )
        return tokenizer

    def to_bytes(self) -> bytes:
        """Return the tokenizer as the contents of a SentencePiece model file."""
        return self._blob

    @property
    def vocab_size(self) -> int:
        """The number of tokens; ids run from 0 to `vocab_size` - 1."""
        return int(self._processor.vocab_size())

    @cached_property
    def placeholders(self) -> Placeholders:
        """The placeholder tokens; none unless the tokenizer was trained with some."""
        n_placeholders = 0
        while self._processor.piece_to_id(placeholder_symbols(n_placeholders + 1)[-1]) != UNK:
            n_placeholders += 1
        return Placeholders(tuple(placeholder_symbols(n_placeholders)))

    @cached_property
    def placeholder_ids(self) -> tuple[int, ...]:
        """The ids of the placeholder tokens."""
        return tuple(self._processor.piece_to_id(symbol) for symbol in self.placeholders.symbols)

    @cached_property
    def surfaces(self) -> Surfaces:
        """The bytes that each id stands for."""
        names = [self.id_to_token(token_id) for token_id in range(self.vocab_size)]
        known = dict.fromkeys((*names[: EOS + 1], LOWERCASE), b"")
        known |= {symbol: Surfaces.placeholder(number) for number, symbol in enumerate(self.placeholders.symbols)}
        own = [known[name] if name in known else name.replace(METASPACE, " ").encode() for name in names]
        byte_ids = [token_id for token_id in range(self.vocab_size) if self._processor.is_byte(token_id)]
        for token_id in byte_ids:
            own[token_id] = bytes((int(names[token_id][1:-1], 16),))
        return Surfaces(own, byte_ids, has_prefix=self.has_prefix)

    @cached_property
    def scores(self) -> list[float | None]:
        """SentencePiece's score of each token that it matches in a text; None for bytes and special tokens."""
        processor = self._processor
        return [
            None
            if processor.is_byte(token_id) or processor.is_control(token_id) or processor.is_unknown(token_id)
            else float(processor.get_score(token_id))
            for token_id in range(self.vocab_size)
        ]

    @property
    def is_unigram(self) -> bool:
        """Whether a text is split by a unigram language model; BPE scores its tokens by their rank, −0, −1, −2, …"""
        known = [score for score in self.scores if score is not None]
        return any(not score.is_integer() for score in known)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without BOS and EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, without BOS and EOS; in threads if there are many."""
        if len(texts) >= _MIN_TEXTS_FOR_THREADS:
            return self._encode(texts, lambda processor, batch: processor.encode(batch, num_threads=-1))
        # A list is encoded in a new thread, whatever num_threads is. On a busy machine it waits for a core, for 5 ms.
        return self._encode(texts, lambda processor, batch: [processor.encode(text) for text in batch])

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each word as it is within a text, after a space."""
        return self.encode_batch(words)

    def encode_continuation(self, text: str) -> list[int]:
        """Return the token ids of a text that continues another on the same line, without a space before it."""
        return self._encode([METASPACE + text], lambda processor, batch: [processor.encode(text) for text in batch])[0][
            len(self._metaspace_ids) :
        ]

    def sample_batch(self, texts: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Like `encode_batch`, with subword sampling: equal arguments give equal results in every process.

        `strength` is described at `TokenizerSettings.sampling`; 0 is `encode_batch`.
        """
        if strength == 0:
            return self.encode_batch(texts)

        rng = random.Random(seed)
        rows = []
        for number, text in enumerate(texts, start=1):
            to_utf8(text, f"Text {number}")
            first, *rest = self._folded(text).split(METASPACE)
            row = self._sampler.sample(first, strength, rng, add_prefix=self.has_prefix)
            for part in rest:
                row += self._metaspace_ids + self._sampler.sample(part, strength, rng, add_prefix=False)
            rows.append(row)
        return rows

    @cached_property
    def _sampler(self) -> SubwordSampler:
        return SubwordSampler(self._processor, self.placeholders.symbols)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; PAD, BOS and EOS are removed, and invalid UTF-8 becomes U+FFFD."""
        return str(self._processor.decode([int(i) for i in ids]))

    def decode_continuation(self, before: Sequence[int], ids: Iterable[int]) -> str:
        """Return the text that `ids` add to the text of `before`, which must end with a complete character."""
        context = [int(i) for i in before[-_N_CONTEXT_TOKENS:]]
        return self.decode([*context, *ids])[len(self.decode(context)) :]

    def byte_of(self, token_id: int) -> int | None:
        """Return the byte that a byte token encodes, or None for any other token."""
        return int(self.id_to_token(token_id)[1:-1], 16) if self._processor.is_byte(token_id) else None

    def ends_inside_character(self, ids: Sequence[int]) -> bool:
        """Return whether these ids end with an incomplete UTF-8 character."""
        for n_bytes, token_id in enumerate(reversed(ids[-3:]), start=1):
            byte = self.byte_of(token_id)
            if byte is None or byte < 0x80:
                return False
            if byte >= 0xC0:  # a lead byte gives the number of bytes of its character
                return n_bytes < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        return False

    def id_to_token(self, token_id: int) -> str:
        """Return a token as it is in the vocabulary: ▁ for a space, <0xE2> for a byte."""
        return str(self._processor.id_to_piece(token_id))

    def decode_batch(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Return the text of each row of token ids."""
        lists = [[int(i) for i in row] for row in rows]
        if len(lists) >= _MIN_TEXTS_FOR_THREADS:  # as in `encode_batch`
            return list(self._processor.decode(lists, num_threads=-1))
        return [self.decode(row) for row in lists]

    def tokenize(self, text: str) -> list[Token]:
        """Return the tokens of a text, each with its span."""
        return list(self.iter_tokens(text))

    def tokenize_batch(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text; much faster than one text at a time."""
        return [list(self.tokens_from_ids(ids)) for ids in self.encode_batch(texts)]

    def iter_tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text one by one, for texts whose tokens should not all be in memory."""
        return self.tokens_from_ids(self.encode(text))

    def word_tokens(self, word: str) -> Iterator[Token]:
        """Yield the tokens of a word as `encode_words` encodes it."""
        return self.iter_tokens(word)

    def tokens_from_ids(self, ids: Sequence[int], *, is_continuation: bool = False) -> Iterator[Token]:
        """Yield the tokens with these ids, with their spans in the text that `decode` returns for them.

        With `is_continuation`, the ids continue others on the same line, and a leading space is part of the text.
        """
        # The space that SentencePiece adds before a text is not part of it. It adds none before a byte token.
        has_prefix = (
            self.has_prefix and not is_continuation and bool(ids) and self.id_to_token(ids[0]).startswith(METASPACE)
        )
        position = -1 if has_prefix else 0
        for token_id in ids:
            name, byte = self.id_to_token(token_id), self.byte_of(token_id)
            if byte is None:
                start, position = position, position + len(name)
            else:
                if not 0x80 <= byte < 0xC0:  # not a continuation byte of UTF-8: a new character
                    position += 1
                start = position - 1
            yield Token(name, token_id, max(start, 0), position)

    def _folded(self, text: str) -> str:
        return fold(text) if self.folds_case else text

    def _encode(self, texts: Sequence[str], encode: EncodeBatch) -> list[list[int]]:
        for number, text in enumerate(texts, start=1):
            to_utf8(text, f"Text {number}")
        parts = [self._folded(text).split(METASPACE) for text in texts]
        rows = encode(self._processor, [first for first, *_ in parts])
        after = [part for _, *rest in parts for part in rest]
        inner = iter(encode(self._inner, after) if after else [])
        for row, (_first, *rest) in zip(rows, parts, strict=True):
            for _part in rest:
                row += self._metaspace_ids + next(inner)
        return rows
