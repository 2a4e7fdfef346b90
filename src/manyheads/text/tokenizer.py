"""Text ⇄ tokens ⇄ ids: a subword vocabulary learnt from the user's own text by SentencePiece.

Nothing is ever unknown and nothing is ever changed: text is not normalized, and a character outside the
vocabulary is spelt by its UTF-8 bytes, so `decode(encode(text)) == text` for every text that UTF-8 can hold.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sentencepiece

from manyheads.errors import BundleError
from manyheads.text.subword_sampling import SubwordSampler
from manyheads.text.tokenizer_training import BOS, EOS, METASPACE, PAD, UNK, TokenizerSettings, to_utf8, train_model

__all__ = ["BOS", "EOS", "METASPACE", "PAD", "UNK", "Token", "Tokenizer", "TokenizerSettings"]

_ENOUGH_FOR_THREADS = 1000  # texts
_NEAR = 8  # tokens: what is further back does not change how the next are decoded
# What another's tokenizer would lose: runs of spaces, the space sign itself, the rare, the full-width, controls.
_PROBE = "  a▁▁ 😀，\t\0 "

Processor = sentencepiece.SentencePieceProcessor
EncodeBatch = Callable[[Processor, list[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text and where it stands: `original[start:end]`, counted in characters.

    `text` is the token as the vocabulary writes it: ▁ for a space, <0xE2> for a byte. The space before a word
    belongs to the word's first token. The bytes of one character all carry that character's span. A ▁ that
    SentencePiece put before the text on its own account has the empty span (0, 0).
    """

    text: str
    id: int
    start: int
    end: int


class Tokenizer:
    """A learnt vocabulary. Its bytes are an ordinary SentencePiece model that other tools can read.

    SentencePiece cannot tell a ▁ in the text from a space. So that character is kept from it: the text is
    split there, and the three UTF-8 bytes of ▁ are put between the parts, which it decodes as they are.
    """

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._processor = Processor(model_proto=blob)
        # The parts after a ▁ do not begin a text, so they get no space of SentencePiece's own in front.
        self._inner = Processor(model_proto=blob)
        self._inner.override_normalizer_spec(add_dummy_prefix=False)
        self._metaspace_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in METASPACE.encode()]
        # Whether SentencePiece puts a space before a text: not where every token is a character.
        self.has_prefix = self._processor.encode(" ") != self._inner.encode(" ")

    @classmethod
    def train(cls, lines: Iterable[str], settings: TokenizerSettings, seed: int = 1) -> "Tokenizer":
        """Learn from `lines`, read once; the same lines, settings and seed give the same bytes on any machine."""
        return cls.from_bytes(train_model(lines, settings, seed))

    @classmethod
    def from_file(cls, path: Path | str) -> "Tokenizer":
        """Read what `to_bytes` gave."""
        try:
            blob = Path(path).read_bytes()
        except OSError as error:
            raise BundleError(f"{path}: the tokenizer cannot be read ({error.strerror}).") from None
        return cls.from_bytes(blob, name=str(path))

    @classmethod
    def from_bytes(cls, blob: bytes, name: str = "tokenizer.model") -> "Tokenizer":
        """Restore what `to_bytes` gave; `name` is what an error calls it."""
        damaged = f"{name} is damaged, or is not a SentencePiece model. Copy the bundle again or train it anew."
        if not blob:
            raise BundleError(damaged)
        try:
            tokenizer = cls(blob)
            special = [tokenizer._processor.piece_to_id(text) for text in ("<pad>", "<unk>", "<s>", "</s>")]
            ours = special == [PAD, UNK, BOS, EOS] and tokenizer.decode(tokenizer.encode(_PROBE)) == _PROBE
        except (RuntimeError, IndexError):
            raise BundleError(damaged) from None
        if not ours:
            raise BundleError(
                f"{name} is a SentencePiece model, but not one that manyheads made: its special tokens differ, "
                "or it alters text. Use the tokenizer.model of a manyheads bundle."
            )
        return tokenizer

    def to_bytes(self) -> bytes:
        """The whole tokenizer, as a file would hold it."""
        return self._blob

    @property
    def vocab_size(self) -> int:
        """How many tokens there are; ids run from 0 to one less."""
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without BOS and EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without BOS and EOS; many at once is much faster than one by one."""
        threads = -1 if len(texts) >= _ENOUGH_FOR_THREADS else 1
        return self._encode(texts, lambda processor, batch: processor.encode(batch, num_threads=threads))

    def encode_continuation(self, text: str) -> list[int]:
        """The ids of a text that follows another in the same line: no space is put before it."""
        return self._encode([METASPACE + text], lambda processor, batch: processor.encode(batch))[0][
            len(self._metaspace_ids) :
        ]

    def sample_batch(self, texts: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Like `encode_batch`, each text split at random: a pure function of its arguments, in every process.

        `strength` is what `TokenizerSettings.sampling` describes; 0 gives `encode_batch`.
        """
        if strength == 0:
            return self.encode_batch(texts)

        rng = random.Random(seed)
        rows = []
        for number, text in enumerate(texts, start=1):
            to_utf8(text, f"Text {number}")
            first, *rest = text.split(METASPACE)
            row = self._sampler.sample(first, strength, rng, begins=self.has_prefix)
            for part in rest:
                row += self._metaspace_ids + self._sampler.sample(part, strength, rng, begins=False)
            rows.append(row)
        return rows

    @cached_property
    def _sampler(self) -> SubwordSampler:
        return SubwordSampler(self._processor)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; PAD, BOS and EOS vanish, bytes that are not UTF-8 become U+FFFD."""
        return str(self._processor.decode([int(i) for i in ids]))

    def decode_continuation(self, before: Sequence[int], ids: Iterable[int]) -> str:
        """The text that ids add to those before them, which end with a whole character."""
        near = [int(i) for i in before[-_NEAR:]]
        return self.decode([*near, *ids])[len(self.decode(near)) :]

    def byte_of(self, token_id: int) -> int | None:
        """The byte that a token stands for, if it is not text."""
        return int(self.id_to_token(token_id)[1:-1], 16) if self._processor.is_byte(token_id) else None

    def id_to_token(self, token_id: int) -> str:
        """A token as the vocabulary writes it: ▁ for a space, <0xE2> for a byte."""
        return str(self._processor.id_to_piece(token_id))

    def decode_batch(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(row) for row in rows]

    def tokenize(self, text: str) -> list[Token]:
        """The tokens of one text, each with its position in it."""
        return list(self.iter_tokens(text))

    def tokenize_batch(self, texts: Sequence[str]) -> list[list[Token]]:
        """The tokens of each text; many at once is much faster than one by one."""
        return [list(self.tokens_from_ids(ids)) for ids in self.encode_batch(texts)]

    def iter_tokens(self, text: str) -> Iterator[Token]:
        """The tokens of one text one after another, for texts of which not all should be in memory."""
        return self.tokens_from_ids(self.encode(text))

    def tokens_from_ids(self, ids: Sequence[int], *, is_continuation: bool = False) -> Iterator[Token]:
        """The tokens with these ids, and where each stands in the text that `decode` makes of them.

        With `is_continuation` they follow others in the same line, and their first space is text.
        """
        # A space that SentencePiece put before the text is not of it; it puts none before a ▁, which is bytes.
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

    def _encode(self, texts: Sequence[str], encode: EncodeBatch) -> list[list[int]]:
        for number, text in enumerate(texts, start=1):
            to_utf8(text, f"Text {number}")
        parts = [text.split(METASPACE) for text in texts]
        rows = encode(self._processor, [first for first, *_ in parts])
        after = [part for _, *rest in parts for part in rest]
        inner = iter(encode(self._inner, after) if after else [])
        for row, (_, *rest) in zip(rows, parts, strict=True):
            for _ in rest:
                row += self._metaspace_ids + next(inner)
        return rows
